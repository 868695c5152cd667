// Nodes on a simulated fabric, for any protocol: each node has a processor, which sends and
// receives messages one after the other, a clock, and one port of the fabric.
//
// Units of a protocol live on nodes and write letters to each other. A letter becomes a task of its
// sender's processor, then a message of the fabric, and a task of its receiver's processor when
// that has noticed it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "infiniband/hosts.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"
#include "sim/fingerprint.hpp"
#include "sim/histogram.hpp"

namespace daqloom::infiniband {

inline constexpr base::Bytes kOffsetBytes = 8;  ///< of a size or an offset in a message

struct ClusterConfig {
    FabricConfig fabric;
    HostConfig host;

    /// Time of the processor for a message, sent or received: LogGP's o.
    base::Time message_cost;
    /// From the end of a transfer until the processor notices.
    base::Time polling_delay;
    /// Of the adapter and the software, from a message's task until its first packet.
    base::DelayDistribution latency;
    base::Bytes control_bytes = 32;  ///< of a message without data, sizes or offsets
    ServiceLevel data_service_level = 0;
    ServiceLevel control_service_level = 0;
    base::BitRate local_rate;  ///< of copies within a node; 0: they take no time

    /// Of clocks: standard deviations over the nodes.
    base::Time clock_offset;
    double clock_drift = 0;  ///< seconds per second

    base::Time duration = base::milliseconds(10);
    base::Time warmup;
    std::uint64_t seed = 1;
};

/// The clock of a node, with offset and drift.
struct NodeClock {
    base::Time offset;
    double rate = 1;  ///< its seconds per second

    [[nodiscard]] base::Time local(base::Time now) const {
        return offset + base::Time{static_cast<std::int64_t>(
                            std::llround(static_cast<double>(now.ps) * rate))};
    }
    /// The first instant at which it shows `local` or more.
    [[nodiscard]] base::Time global(base::Time local) const {
        return base::Time{static_cast<std::int64_t>(
                   std::ceil(static_cast<double>((local - offset).ps) / rate))} +
               base::Time{1};
    }
};

/// Letters carry `Content`. The driver of a run is told
/// - `on_letter(letter, now)`: it is here, and its receiver's processor has taken it in;
/// - `on_written(letter, now)`: its sender knows that the data are where they belong;
/// - `on_event(event)`: one that it has put into `events()` itself.
template <class Content>
class Cluster {
  public:
    static constexpr std::uint32_t kTask = Hosts::kFirstOtherEvent;  ///< index: task done
    static constexpr std::uint32_t kNoticed = kTask + 1;             ///< index: task to be begun
    static constexpr std::uint32_t kFirstOtherEvent = kTask + 2;

    struct Letter {
        std::uint32_t from = 0;  ///< node
        std::uint32_t to = 0;    ///< node
        base::Bytes bytes = 0;
        bool is_data = false;  ///< else a control message
        Content content{};
        std::optional<ServiceLevel> service_level{};  ///< else that of data, or of control messages
    };

    /// `hosts`: that of each node.
    static base::expected<std::unique_ptr<Cluster>> make(const ClusterConfig& config,
                                                         const std::vector<NodeIndex>& hosts) {
        std::unique_ptr<Cluster> cluster(new Cluster(config));
        auto network = Network::make(config.fabric, cluster->events_);
        if (!network) {
            return tl::unexpected(network.error());
        }
        cluster->network_ = std::make_unique<Network>(std::move(*network));
        cluster->hosts_ =
            std::make_unique<Hosts>(config.host, config.fabric.hosts, config.fabric.lanes,
                                    *cluster->network_, cluster->events_);
        base::Table<NodeIndex, bool> taken(config.fabric.hosts, false);
        base::RandomStream clocks(config.seed, "clocks");
        for (const NodeIndex host : hosts) {
            if (!taken.contains(host) || taken[host]) {
                return base::failure(
                    fmt::format("node {} is host {}, which is not there or another node's",
                                cluster->nodes_.size(), host.value()));
            }
            taken[host] = true;
            Node node;
            node.host = host;
            node.clock.offset =
                base::Time::from_seconds(clocks.normal(0, config.clock_offset.seconds()));
            node.clock.rate = 1 + clocks.normal(0, config.clock_drift);
            cluster->nodes_.push_back(node);
        }
        return cluster;
    }

    /// Runs until `until`, or until no event is left.
    template <class Driver>
    void run(base::Time until, Driver& driver) {
        while (!events_.empty() && events_.next_time() <= until) {
            const sim::Event event = events_.pop();
            now_ = event.at;
            ++sim_events_;
            fingerprint_.add(event);
            switch (event.kind & Network::kKindMask) {
                case kTask:
                    do_task(event.index, event.at, driver);
                    break;
                case kNoticed:
                    queue_task(letters_[event.index / 4].letter.to, event.index, event.at);
                    break;
                default:
                    if ((event.kind & Network::kKindMask) >= kFirstOtherEvent) {
                        driver.on_event(event);
                    } else {
                        hosts_->on_event(event, *this);
                    }
            }
            if (events_.empty() || events_.next_time() != now_) {
                hosts_->settle(now_, *this);
            }
        }
        now_ = until;
        network_->finish(until);
    }

    /// A letter within a node is copied and needs no processor time.
    void send(const Letter& letter, base::Time now) {
        const std::uint32_t place = put(letter);
        if (letter.from != letter.to) {
            queue_task(letter.from, 4 * place + kSend, now);
        } else if (letter.is_data) {
            const base::Time end =
                now + (config_.local_rate.bps > 0 ? copy_(letter.bytes) : base::Time::zero());
            events_.push({end, kTask, 4 * place + kReceive});
            events_.push({end, kTask, 4 * place + kComplete});
        } else {
            events_.push({now, kTask, 4 * place + kReceive});
        }
    }

    [[nodiscard]] base::Time now() const { return now_; }
    [[nodiscard]] sim::EventQueue& events() { return events_; }
    [[nodiscard]] const sim::EventQueue& events() const { return events_; }
    [[nodiscard]] const Network& network() const { return *network_; }
    [[nodiscard]] const NodeClock& clock(std::uint32_t node) const { return nodes_[node].clock; }
    [[nodiscard]] std::uint64_t sim_events() const { return sim_events_; }
    /// A hash of all events processed, in order: when, of which kind, and of what.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_.value(); }
    /// Sent over the fabric.
    [[nodiscard]] std::uint64_t control_messages() const { return control_messages_; }
    [[nodiscard]] std::size_t letters_under_way() const { return letters_.size() - free_.size(); }
    /// Spent on messages, all nodes together.
    [[nodiscard]] base::Time processor_used() const { return processor_used_; }
    [[nodiscard]] const RetryCounters& retries() const { return hosts_->retries(); }
    /// The latency from the post of data to another node until the sender has the completion, for
    /// completions after the warm-up.
    [[nodiscard]] const sim::Histogram& write_latency() const { return write_latency_; }

    /// Checks the conservation of packets, credits and messages; a packet without a route is an
    /// error.
    [[nodiscard]] base::expected<void> check_conservation() const {
        if (auto books = hosts_->check_conservation(); !books) {
            return books;
        }
        if (auto books = network_->check_conservation(now_); !books) {
            return books;
        }
        if (network_->unrouted() > 0) {
            return base::defect(fmt::format("{} packets had no route", network_->unrouted()));
        }
        return {};
    }

  private:
    /// A letter has up to three tasks; the number of a task is letter · 4 + part.
    enum Part : std::uint32_t { kSend, kReceive, kComplete };
    static constexpr std::uint64_t kData = std::uint64_t{1} << 32;  ///< in the tag of a message

    struct Node {
        NodeIndex host;
        base::Time processor_free;
        NodeClock clock;
    };
    struct Post {
        Letter letter;
        std::uint8_t ends = 1;  ///< of its parts, still to come
        base::Time posted;
    };

    friend class Hosts;

    explicit Cluster(const ClusterConfig& config)
        : config_(config),
          data_lane_(lane_of(config.data_service_level)),
          control_lane_(lane_of(config.control_service_level)),
          copy_(config.local_rate.bps > 0 ? config.local_rate : base::gigabits_per_second(1)),
          latency_(config.seed, "host latency") {}

    std::uint32_t put(const Letter& letter) {
        const Post post{letter, static_cast<std::uint8_t>(letter.is_data ? 2 : 1), {}};
        if (free_.empty()) {
            letters_.push_back(post);
            return static_cast<std::uint32_t>(letters_.size() - 1);
        }
        const std::uint32_t place = free_.back();
        free_.pop_back();
        letters_[place] = post;
        return place;
    }

    void queue_task(std::uint32_t node, std::uint32_t task, base::Time now) {
        base::Time& free = nodes_[node].processor_free;
        free = std::max(free, now) + config_.message_cost;
        processor_used_ += config_.message_cost;
        events_.push({free, kTask, task});
    }

    template <class Driver>
    void do_task(std::uint32_t task, base::Time now, Driver& driver) {
        const std::uint32_t place = task / 4;
        if (task % 4 == kSend) {
            post(place, now);
            return;
        }
        const Letter letter = letters_[place].letter;
        if (task % 4 == kComplete && letter.from != letter.to && now >= config_.warmup) {
            write_latency_.record(now - letters_[place].posted);
        }
        if (--letters_[place].ends == 0) {
            free_.push_back(place);
        }
        if (task % 4 == kReceive) {
            driver.on_letter(letter, now);
        } else {
            driver.on_written(letter, now);
        }
    }

    void post(std::uint32_t place, base::Time now) {
        const Letter& letter = letters_[place].letter;
        letters_[place].posted = now;
        Message message;
        message.source = nodes_[letter.from].host;
        message.destination = nodes_[letter.to].host;
        message.bytes = letter.bytes;
        message.immediate = true;
        message.lane = letter.service_level ? lane_of(*letter.service_level)
                       : letter.is_data     ? data_lane_
                                            : control_lane_;
        message.tag = place | (letter.is_data ? kData : 0);
        control_messages_ += letter.is_data ? 0 : 1;
        hosts_->post(message, config_.latency.draw(latency_), now);
    }

    // ---- of the hosts

    void on_received(MessageIndex index, base::Time now) {
        const auto place = static_cast<std::uint32_t>(hosts_->message(index).tag);
        events_.push({now + config_.polling_delay, kNoticed, 4 * place + kReceive});
    }
    void on_completed(MessageIndex index, base::Time now) {
        const std::uint64_t tag = hosts_->message(index).tag;
        if ((tag & kData) != 0) {
            const auto place = static_cast<std::uint32_t>(tag);
            events_.push({now + config_.polling_delay, kTask, 4 * place + kComplete});
        }
    }

    /// Its letter never completes.
    void on_failed(MessageIndex, base::Time) {}

    [[nodiscard]] VirtualLane lane_of(ServiceLevel level) const {
        const std::vector<VirtualLane>& lanes = config_.fabric.service_lanes;
        return level < lanes.size() ? lanes[level] : VirtualLane();
    }

    ClusterConfig config_;
    VirtualLane data_lane_;
    VirtualLane control_lane_;
    sim::EventQueue events_;
    std::unique_ptr<Network> network_;
    std::unique_ptr<Hosts> hosts_;
    std::vector<Node> nodes_;
    std::vector<Post> letters_;
    std::vector<std::uint32_t> free_;
    base::WireClock copy_;
    base::RandomStream latency_;
    base::Time now_;
    base::Time processor_used_;
    sim::Histogram write_latency_;
    std::uint64_t control_messages_ = 0;
    std::uint64_t sim_events_ = 0;
    sim::Fingerprint fingerprint_;
};

}  // namespace daqloom::infiniband
