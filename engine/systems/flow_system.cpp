#include "systems/flow_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace daqloom::systems {

using base::Time;

namespace {

constexpr std::uint64_t most_outstanding = std::uint64_t{1} << 23;  ///< of all sources together
constexpr double latest_ps = 1e18;                                  ///< 11 days

}  // namespace

base::expected<std::unique_ptr<FlowSystem>> FlowSystem::make(const FlowSystemConfig& config) {
    std::unique_ptr<FlowSystem> system(new FlowSystem(config));
    if (auto placed = system->place(config, config.hosts); !placed) {
        return tl::unexpected(placed.error());
    }
    std::uint64_t outstanding = 0;
    for (const Flow& flow : config.flows) {
        if (auto checked = system->check(flow); !checked) {
            return tl::unexpected(checked.error());
        }
        outstanding += std::uint64_t{flow.outstanding} * flow.sources.size();
    }
    if (outstanding > most_outstanding) {
        return base::failure(
            fmt::format("flows: {} messages may be outstanding, all sources together; give fewer, "
                        "{} at most",
                        outstanding, most_outstanding));
    }
    const std::size_t flows = config.flows.size();
    system->latency_.resize(flows);
    system->counted_.resize(flows);
    system->counted_before_.resize(flows);
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
        system->add_senders(flow);
    }
    system->nodes().events().push({config.warmup, kWarm, 0});
    for (std::uint32_t index = 0; index < system->senders_.size(); ++index) {
        system->supply(index, Time::zero());
    }
    return system;
}

base::expected<void> FlowSystem::check(const Flow& flow) const {
    const std::size_t nodes = config_.hosts.size();
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
    if (!(flow.load >= 0 && flow.load <= 1)) {
        return fails(fmt::format("a load of {}; expected 0 to 1", flow.load));
    }
    return {};
}

void FlowSystem::add_senders(std::uint32_t flow) {
    const Flow& given = config_.flows[flow];
    const std::vector<double> interval_ps = intervals_ps(given);
    for (const std::uint32_t node : given.sources) {
        Sender sender{.flow = flow,
                      .node = node,
                      .interval_ps = interval_ps[node],
                      .random = base::RandomStream(config_.seed,
                                                   fmt::format("flow {} {}", given.name, node))};
        set_due(sender);
        senders_.push_back(std::move(sender));
    }
}

/// By node.
std::vector<double> FlowSystem::intervals_ps(const Flow& flow) const {
    if (flow.load == 0) {
        return std::vector<double>(config_.hosts.size(), static_cast<double>(flow.interval.ps));
    }
    const network::Graph& graph = graph_of(config_);
    base::Table<NodeIndex, double> of_host(graph.hosts, latest_ps);
    const base::Bytes bytes = transport().bytes_on_wire(flow.bytes);
    for (const network::Cable& cable : graph.cables) {
        for (const network::End end : {cable.a, cable.b}) {
            if (of_host.contains(end.node)) {
                of_host[end.node] = 8e12 * static_cast<double>(bytes) /
                                    static_cast<double>(cable.rate.bps) / flow.load;
            }
        }
    }
    std::vector<double> of_node;
    for (const NodeIndex host : config_.hosts) {
        of_node.push_back(std::min(of_host[host], latest_ps));
    }
    return of_node;
}

/// Posts what is due as long as there is room.
void FlowSystem::supply(std::uint32_t index, Time now) {
    Sender& sender = senders_[index];
    const Flow& flow = config_.flows[sender.flow];
    while (sender.outstanding < flow.outstanding &&
           (flow.messages == 0 || sender.posted < flow.messages)) {
        if (sender.due > now) {
            if (!sender.is_awaited) {
                sender.is_awaited = true;
                ++awaited_;
                nodes().events().push({sender.due, kDue, index});
            }
            return;
        }
        post(index, now);
    }
}

void FlowSystem::post(std::uint32_t index, Time now) {
    Sender& sender = senders_[index];
    const Flow& flow = config_.flows[sender.flow];
    std::uint32_t to = flow.destination;
    if (to == Flow::kAnyOther) {
        const auto nodes = static_cast<std::uint32_t>(config_.hosts.size());
        to = static_cast<std::uint32_t>((sender.node + 1 + sender.random.uniform_int(nodes - 1)) %
                                        nodes);
    }
    const Letter letter{.from = sender.node,
                        .to = to,
                        .bytes = flow.bytes,
                        .is_data = true,
                        .completes = true,
                        .content = {index, now},
                        .service_level = flow.service_level};
    nodes().send(letter, now);
    ++posted_;
    ++sender.posted;
    ++sender.outstanding;
    set_due(sender);
}

/// When the next message is due. Even intervals are summed up before they are rounded.
void FlowSystem::set_due(Sender& sender) const {
    const Flow& flow = config_.flows[sender.flow];
    sender.offset_ps = flow.is_poissonian
                           ? sender.offset_ps + sender.random.exponential(sender.interval_ps)
                           : sender.interval_ps * static_cast<double>(sender.posted);
    sender.due = flow.start + Time{std::llround(std::min(sender.offset_ps, latest_ps))};
}

void FlowSystem::on_letter(const Letter& letter, Time now) {
    const Sender& sender = senders_[letter.content.sender];
    FlowReport::Count& count = counted_[sender.flow];
    ++count.messages;
    count.bytes += letter.bytes;
    if (warm_) {
        latency_[sender.flow].record(now - letter.content.posted);
    }
    if (recording_) {
        recorded_.push_back({letter.content.posted, now, sender.node, sender.flow});
    }
}

void FlowSystem::on_written(const Letter& letter, Time now) {
    ++completed_;
    --senders_[letter.content.sender].outstanding;
    supply(letter.content.sender, now);
}

void FlowSystem::on_event(const sim::Event& event) {
    switch (event.kind) {
        case kDue:
            senders_[event.index].is_awaited = false;
            --awaited_;
            supply(event.index, event.at);
            break;
        case kWarm:
            transport().begin_counting(event.at, config_.duration, config_.bins);
            counted_before_ = counted_;
            processor_before_ = nodes().processor_used();
            counted_from_ = event.at;
            warm_ = true;
            break;
        default:
            break;
    }
}

bool FlowSystem::stalled() const {
    return nodes().letters_under_way() > 0 &&
           nodes().events().size() == awaited_ + (warm_ ? 0U : 1U);
}

FlowReport FlowSystem::report() const {
    FlowReport after{now() - counted_from_, counted_, nodes().processor_used()};
    after.processor = after.processor - processor_before_;
    for (std::size_t flow = 0; flow < counted_.size(); ++flow) {
        after.flows[flow].messages -= counted_before_[flow].messages;
        after.flows[flow].bytes -= counted_before_[flow].bytes;
    }
    return after;
}

base::expected<void> FlowSystem::check_conservation() const {
    if (auto books = transport().check_conservation(); !books) {
        return books;
    }
    std::uint64_t outstanding = 0;
    for (const Sender& sender : senders_) {
        outstanding += sender.outstanding;
    }
    if (posted_ != completed_ + outstanding) {
        return base::defect(fmt::format("{} messages were posted, {} completed, {} are under way",
                                        posted_, completed_, outstanding));
    }
    std::uint64_t arrived = 0;
    for (const FlowReport::Count& count : counted_) {
        arrived += count.messages;
    }
    // A sender may know of a message before its receiver's processor does, or after.
    const std::uint64_t here = nodes().letters_under_way();
    const bool balanced = arrived <= posted_ && here >= posted_ - std::min(arrived, completed_) &&
                          here <= 2 * posted_ - arrived - completed_;
    if (!balanced) {
        return base::defect(
            fmt::format("{} messages were posted, {} have arrived, {} completed, {} are under way",
                        posted_, arrived, completed_, here));
    }
    return {};
}

}  // namespace daqloom::systems
