#include "systems/flow_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "transport/udp/endpoints.hpp"

namespace daqloom::systems {

using base::Time;

namespace {

constexpr std::uint64_t most_outstanding = std::uint64_t{1} << 23;  ///< over all sources
constexpr double latest_ps = 1e18;                                  ///< 11 days

}  // namespace

base::expected<FlowTraffic> FlowTraffic::make(const FlowsConfig& config, std::uint64_t seed,
                                              const network::Graph& graph,
                                              const transport::Transport& transport) {
    FlowTraffic traffic;
    traffic.config_ = config;
    std::uint64_t outstanding = 0;
    for (const Flow& flow : config.flows) {
        DAQLOOM_CHECK(traffic.check(flow, transport));
        outstanding += std::uint64_t{flow.outstanding} * flow.sources.size();
    }
    DAQLOOM_REFUSE_IF(outstanding > most_outstanding,
                      "flows: {} messages may be outstanding, all sources together; give fewer, "
                      "{} at most",
                      outstanding, most_outstanding);
    const std::size_t flows = config.flows.size();
    traffic.latency_.resize(flows);
    traffic.counted_.resize(flows);
    traffic.counted_before_.resize(flows);
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
        traffic.add_senders(flow, seed, graph, transport);
    }
    return traffic;
}

void FlowTraffic::start(Carrier& carrier) {
    for (std::uint32_t index = 0; index < senders_.size(); ++index) {
        supply(index, Time::zero(), carrier);
    }
}

void FlowTraffic::begin_counting() {
    counted_before_ = counted_;
    warm_ = true;
}

base::expected<void> FlowTraffic::check(const Flow& flow,
                                        const transport::Transport& transport) const {
    const std::size_t nodes = config_.flow_hosts.size();
    const auto fails = [&](const std::string& why) {
        return base::failure(fmt::format("flow {}: {}", flow.name, why));
    };
    if (flow.destination != Flow::kAnyOther && flow.destination >= nodes) {
        return fails(fmt::format("node {} of {} as its destination", flow.destination, nodes));
    }
    for (const std::uint32_t node : flow.sources) {
        if (node >= nodes) {
            return fails(fmt::format("node {} of {} as a source", node, nodes));
        }
        if (node == flow.destination || nodes < 2) {
            return fails(fmt::format("node {} would send to itself", node));
        }
    }
    if (flow.outstanding < 1) {
        return fails("no message may be outstanding; expected 1 at least");
    }
    if (flow.is_datagram && transport.udp() == nullptr) {
        return fails("UDP over InfiniBand is not simulated; expected the transport of the system");
    }
    if (!(flow.load >= 0 && flow.load <= 1)) {
        return fails(fmt::format("a load of {}; expected 0 to 1", flow.load));
    }
    return {};
}

void FlowTraffic::add_senders(std::uint32_t flow, std::uint64_t seed, const network::Graph& graph,
                              const transport::Transport& transport) {
    const Flow& given = config_.flows[flow];
    const std::vector<double> interval_ps = intervals_ps(given, graph, transport);
    for (const std::uint32_t place : given.sources) {
        Sender sender{
            .flow = flow,
            .place = place,
            .interval_ps = interval_ps[place],
            .random = base::RandomStream(seed, fmt::format("flow {} {}", given.name, place))};
        set_due(sender);
        senders_.push_back(std::move(sender));
    }
}

/// Mean time between messages of a source, by place in `flow_hosts`.
std::vector<double> FlowTraffic::intervals_ps(const Flow& flow, const network::Graph& graph,
                                              const transport::Transport& transport) const {
    if (flow.load == 0) {
        return std::vector<double>(config_.flow_hosts.size(),
                                   static_cast<double>(flow.interval.ps));
    }
    base::Table<network::NodeIndex, double> of_host(graph.hosts, latest_ps);
    const base::Bytes bytes = flow.is_datagram ? transport.udp()->bytes_on_wire(flow.bytes)
                                               : transport.bytes_on_wire(flow.bytes);
    for (const network::Cable& cable : graph.cables) {
        for (const network::End end : {cable.a, cable.b}) {
            if (of_host.contains(end.node)) {
                of_host[end.node] = 8e12 * static_cast<double>(bytes) /
                                    static_cast<double>(cable.rate.bps) / flow.load;
            }
        }
    }
    std::vector<double> of_place;
    for (const network::NodeIndex host : config_.flow_hosts) {
        of_place.push_back(std::min(of_host[host], latest_ps));
    }
    return of_place;
}

/// Posts the due messages of a sender while fewer than `outstanding` of them await completion.
void FlowTraffic::supply(std::uint32_t index, Time now, Carrier& carrier) {
    Sender& sender = senders_[index];
    const Flow& flow = config_.flows[sender.flow];
    while (sender.outstanding < flow.outstanding &&
           (flow.messages == 0 || sender.posted < flow.messages)) {
        if (sender.due > now) {
            if (!sender.is_awaited) {
                sender.is_awaited = true;
                ++awaited_;
                carrier.wake(index, sender.due);
            }
            return;
        }
        post(index, now, carrier);
    }
}

void FlowTraffic::post(std::uint32_t index, Time now, Carrier& carrier) {
    Sender& sender = senders_[index];
    const Flow& flow = config_.flows[sender.flow];
    std::uint32_t to = flow.destination;
    if (to == Flow::kAnyOther) {
        const auto hosts = static_cast<std::uint32_t>(config_.flow_hosts.size());
        to = static_cast<std::uint32_t>((sender.place + 1 + sender.random.uniform_int(hosts - 1)) %
                                        hosts);
    }
    carrier.carry({.from = sender.place,
                   .to = to,
                   .bytes = flow.bytes,
                   .service_level = flow.service_level,
                   .is_datagram = flow.is_datagram,
                   .number = under_way_.put({.sender = index, .posted = now})},
                  now);
    ++posted_;
    ++sender.posted;
    ++sender.outstanding;
    set_due(sender);
}

/// Sets the time of the next message. Rounding errors of regular intervals do not add up.
void FlowTraffic::set_due(Sender& sender) const {
    const Flow& flow = config_.flows[sender.flow];
    sender.offset_ps = flow.is_poissonian
                           ? sender.offset_ps + sender.random.exponential(sender.interval_ps)
                           : sender.interval_ps * static_cast<double>(sender.posted);
    sender.due = flow.start + Time{std::llround(std::min(sender.offset_ps, latest_ps))};
}

void FlowTraffic::on_received(std::uint32_t message, Time now) {
    const UnderWay& received = under_way_[message];
    const Sender& sender = senders_[received.sender];
    FlowCount& count = counted_[sender.flow];
    ++count.messages;
    count.bytes += config_.flows[sender.flow].bytes;
    if (warm_) {
        latency_[sender.flow].record(now - received.posted);
    }
    if (recording_) {
        recorded_.push_back({received.posted, now, sender.place, sender.flow});
    }
    end(message);
}

void FlowTraffic::on_written(std::uint32_t message, Time now, Carrier& carrier) {
    const std::uint32_t sender = under_way_[message].sender;
    end(message);
    ++completed_;
    --senders_[sender].outstanding;
    supply(sender, now, carrier);
}

void FlowTraffic::on_lost(std::uint32_t message) {
    ++counted_[senders_[under_way_[message].sender].flow].lost;
    end(message);
}

void FlowTraffic::end(std::uint32_t message) {
    if (--under_way_[message].ends == 0) {
        under_way_.release(message);
    }
}

void FlowTraffic::on_due(std::uint32_t sender, Time now, Carrier& carrier) {
    senders_[sender].is_awaited = false;
    --awaited_;
    supply(sender, now, carrier);
}

std::vector<FlowCount> FlowTraffic::counted() const {
    std::vector<FlowCount> after = counted_;
    for (std::size_t flow = 0; flow < after.size(); ++flow) {
        after[flow] = base::since(after[flow], counted_before_[flow]);
    }
    return after;
}

base::expected<void> FlowTraffic::check_conservation() const {
    std::uint64_t outstanding = 0;
    for (const Sender& sender : senders_) {
        outstanding += sender.outstanding;
    }
    if (posted_ != completed_ + outstanding) {
        return base::defect(fmt::format("{} messages were posted, {} completed, {} are under way",
                                        posted_, completed_, outstanding));
    }
    std::uint64_t arrived = 0;
    for (const FlowCount& count : counted_) {
        arrived += count.messages + count.lost;
    }
    // A message may complete at the sender before or after it arrives at the receiver.
    const std::uint64_t here = under_way_.in_use();
    const bool balanced = arrived <= posted_ && here >= posted_ - std::min(arrived, completed_) &&
                          here <= 2 * posted_ - arrived - completed_;
    if (!balanced) {
        return base::defect(fmt::format(
            "{} messages were posted, {} have arrived or are lost, {} completed, {} are under way",
            posted_, arrived, completed_, here));
    }
    return {};
}

}  // namespace daqloom::systems
