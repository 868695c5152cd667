#include "systems/ring/node_ring.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/random.hpp"
#include "base/ring.hpp"
#include "sim/event_queue.hpp"
#include "sim/time_series.hpp"

namespace daqloom::systems {

namespace {

using base::Time;

struct Transfer {
    std::uint32_t node;
    Time work;
};

/// A builder, which serves some nodes at equal rates while other nodes wait.
///
/// `attained_` is the work done for a node that has been served since the builder was last idle. A
/// transfer ends when `attained_` has grown by the transfer's work since its begin. Other transfers
/// therefore need no update when a transfer begins or ends.
class Builder {
  public:
    [[nodiscard]] bool is_idle() const { return served_.empty(); }
    /// End of the next transfer, unless another node arrives before.
    [[nodiscard]] Time next_end() const { return next_end_; }

    void begin(Transfer transfer, std::uint32_t writers, Time now) {
        if (writers != 0 && served_.size() == writers) {
            waiting_.push(transfer);
            return;
        }
        bring_to(now);
        serve(transfer);
        find_next_end(now);
    }

    /// Requires now == next_end(). Returns the node whose transfer has ended.
    std::uint32_t end(Time now) {
        bring_to(now);
        std::pop_heap(served_.begin(), served_.end(), std::greater<>());
        const std::uint32_t node = served_.back().node;
        served_.pop_back();
        if (!waiting_.empty()) {
            serve(waiting_.front());
            waiting_.pop();
        }
        find_next_end(now);
        return node;
    }

    /// Unfinished work of all nodes at the builder.
    [[nodiscard]] Time left(Time now) {
        bring_to(now);
        Time left;
        for (const Service& each : served_) {
            left += in_time(each.ends_at - attained_);
        }
        for (std::uint32_t place = 0; place < waiting_.size(); ++place) {
            left += waiting_[place].work;
        }
        return left;
    }

  private:
    struct Service {
        double ends_at;         ///< value of `attained_` at the end
        std::uint64_t arrival;  ///< transfers with equal ends end in the order of arrival
        std::uint32_t node;

        friend auto operator<=>(const Service&, const Service&) = default;
    };

    static Time in_time(double ps) { return {static_cast<std::int64_t>(std::llround(ps))}; }

    void serve(Transfer transfer) {
        const double ends_at = attained_ + static_cast<double>(transfer.work.ps);
        served_.push_back({ends_at, arrivals_++, transfer.node});
        std::push_heap(served_.begin(), served_.end(), std::greater<>());
    }

    void bring_to(Time now) {
        if (served_.empty()) {
            attained_ = 0;
        } else {
            attained_ +=
                static_cast<double>((now - since_).ps) / static_cast<double>(served_.size());
        }
        since_ = now;
    }

    void find_next_end(Time now) {
        if (served_.empty()) {
            next_end_ = Time::never();
            return;
        }
        const double left = std::max(0.0, served_.front().ends_at - attained_);
        next_end_ = now + in_time(left * static_cast<double>(served_.size()));
    }

    std::vector<Service> served_;  ///< a heap: the next transfer to end is in front
    base::Ring<Transfer> waiting_;
    double attained_ = 0;  ///< ps
    Time since_;           ///< time of `attained_`
    Time next_end_ = Time::never();
    std::uint64_t arrivals_ = 0;
};

class NodeRing {
  public:
    explicit NodeRing(const NodeRingConfig& config)
        : config_(config),
          nodes_(static_cast<std::uint32_t>(config.work.size())),
          builders_(nodes_),
          steps_(nodes_, 0),
          busy_(Time::zero(), config.duration, config.bins),
          delays_(config.seed, "delays"),
          work_(config.seed, "work") {}

    NodeRingReport play() {
        begin_all(Time::zero());
        for (sim::Event event = queue_.pop(); event.at < config_.duration; event = queue_.pop()) {
            if (event.kind == kArrives) {
                arrive(event.index, event.at);
            } else if (event.at == builders_[event.index].next_end()) {  // else outdated
                end(event.index, event.at);
            }
        }
        busy_.finish(config_.duration);
        for (Builder& builder : builders_) {
            report_.left += builder.left(config_.duration);
        }
        for (const sim::TimeSeries::Bin& bin : busy_.bins()) {
            report_.shares.push_back(bin.mean / nodes_);
        }
        return report_;
    }

  private:
    static constexpr std::uint32_t kArrives = 0;
    static constexpr std::uint32_t kEnds = 1;

    void begin_all(Time now) {
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            begin(node, now);
        }
    }

    void begin(std::uint32_t node, Time now) {
        for (const base::DelayDistribution& delay : config_.delays) {
            now += delay.draw(delays_);
        }
        queue_.push({now, kArrives, node});
    }

    void arrive(std::uint32_t node, Time now) {
        const auto at = static_cast<std::uint32_t>((node + steps_[node]++) % nodes_);
        const Time work = config_.work[node].draw(work_);
        report_.begun += work;
        Builder& builder = builders_[at];
        if (builder.is_idle()) {
            busy_.set(now, ++receiving_);
        }
        const Time before = builder.next_end();
        builder.begin({node, work}, config_.writers, now);
        if (builder.next_end() != before) {
            queue_.push({builder.next_end(), kEnds, at});
        }
    }

    void end(std::uint32_t at, Time now) {
        Builder& builder = builders_[at];
        const std::uint32_t node = builder.end(now);
        ++report_.transfers;
        if (builder.is_idle()) {
            busy_.set(now, --receiving_);
        } else {
            queue_.push({builder.next_end(), kEnds, at});
        }
        if (!config_.in_step) {
            begin(node, now);
        } else if (report_.transfers % nodes_ == 0) {
            begin_all(now);
        }
    }

    const NodeRingConfig& config_;
    std::uint32_t nodes_;
    std::vector<Builder> builders_;
    std::vector<std::uint64_t> steps_;  ///< by node
    sim::EventQueue queue_;
    sim::TimeSeries busy_;  ///< builders that receive
    std::int64_t receiving_ = 0;
    base::RandomStream delays_;
    base::RandomStream work_;
    NodeRingReport report_;
};

bool takes_time(const base::DelayDistribution& work) {
    return std::max(work.mean, work.spread) > Time::zero();
}

}  // namespace

base::expected<NodeRingReport> play_node_ring(const NodeRingConfig& config) {
    const std::size_t nodes = config.work.size();
    if (nodes == 0 || nodes > std::numeric_limits<std::uint32_t>::max()) {
        return base::failure("a ring of " + std::to_string(nodes) + " nodes; give at least one");
    }
    if (!std::all_of(config.work.begin(), config.work.end(), takes_time)) {
        return base::failure("a node of the ring has transfers that take no time; give their time");
    }
    if (config.duration <= Time::zero() || config.bins == 0) {
        return base::failure("the ring runs for " + std::to_string(config.duration.seconds()) +
                             " s in " + std::to_string(config.bins) +
                             " bins of time; give more than 0 of both");
    }
    return NodeRing(config).play();
}

}  // namespace daqloom::systems
