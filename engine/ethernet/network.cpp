#include "ethernet/network.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "ethernet/flow_hash.hpp"

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

base::expected<void> Network::build(const NetworkConfig& config, Bytes frame) {
    DAQLOOM_CHECK(validate(config, frame));
    const network::Graph& graph = config;
    quantum_ = frame + kWireOverhead;
    for (std::size_t i = 0; i < config.switches.size(); ++i) {
        add_switch(config.switches[i], graph.switch_ports[i]);
    }
    host_links_.assign(graph.hosts, LinkIndex::none());
    std::vector<bool> changes(2 * graph.cables.size(), false);
    for (const LinkChange& change : config.changes) {
        changes[change.link.value()] = true;
    }
    for (std::size_t number = 0; number < graph.cables.size(); ++number) {
        const network::Cable& cable = graph.cables[number];
        for (const auto& [from, to] : {std::pair{cable.a, cable.b}, std::pair{cable.b, cable.a}}) {
            const std::size_t link = ports_.size();
            Wiring wiring;
            if (graph.is_host(from.node)) {
                host_links_[from.node] = LinkIndex(link);
            } else {
                wiring.from_switch = graph.switch_of(from.node);
                wiring.from_port = static_cast<std::uint16_t>(from.port - 1);
            }
            if (!graph.is_host(to.node)) {
                wiring.to_switch = graph.switch_of(to.node);
                wiring.to_port = static_cast<std::uint16_t>(to.port - 1);
            }
            const Bytes bucket = config.buckets.empty() ? 0 : config.buckets[number];
            const std::string name =
                config.link_names.empty() ? std::string() : config.link_names[link];
            add_link({cable.rate, cable.delay, config.host_schedule, changes[link], bucket}, wiring,
                     name);
            DAQLOOM_REFUSE_IF(
                bucket > 0 && ports_.back().is_scheduled(),
                "link {} has a shaper's bucket, and its frames do not leave first-in first-out "
                "for the whole run; remove the bucket, or use one class and no faults or pause "
                "frames",
                name.empty() ? std::to_string(link) : name);
        }
    }
    if (config.host_jitter > 0) {
        jitters_.resize(ports_.size());
        for (const NodeIndex host : host_links_.indices()) {
            if (const LinkIndex link = host_links_[host]; link != LinkIndex::none()) {
                jitters_[link].emplace(
                    config.host_jitter,
                    base::SmallStream(config.seed, fmt::format("host jitter {}", host.value())));
            }
        }
    }
    for (const LossConfig& loss : config.losses) {
        inject_loss(loss, base::RandomStream(config.seed, fmt::format("loss.{}", losses_.size())));
    }
    errors_ = base::RandomStream(config.seed, "bit errors");
    changes_ = config.changes;
    reroutings_ = config.reroutings;
    set_routes(graph.forwarding, graph.groups);
    start_software_switches();
    return {};
}

/// Sets the forwarding of all switches, from routes in the format of network::Graph.
void Network::set_routes(const std::vector<network::Route>& forwarding,
                         const std::vector<network::PortGroup>& groups) {
    const std::size_t hosts = host_links_.size();
    // By switch: the value in `SwitchNode::routes` for each route: none, a port or a group.
    base::Table<SwitchIndex, std::vector<std::uint32_t>> names(switches_.size());
    for (const SwitchIndex at : names.indices()) {
        switches_[at].groups.resize(1);
        names[at].push_back(kGroups);
        for (const LinkIndex link : switches_[at].port_links) {
            names[at].push_back(link == LinkIndex::none() ? kGroups : link.value());
        }
    }
    for (const network::PortGroup& group : groups) {
        const SwitchIndex at(group.node.value() - hosts);
        std::vector<LinkIndex> links;
        for (const network::PortNumber port : group.ports) {
            links.push_back(switches_[at].port_links[port - 1U]);
        }
        names[at].push_back(route_by(switches_[at], links));
    }
    for (const SwitchIndex at : names.indices()) {
        base::Table<NodeIndex, std::uint32_t>& routes = switches_[at].routes;
        routes.resize(hosts);
        for (const NodeIndex host : routes.indices()) {
            routes[host] = names[at][forwarding[at.value() * hosts + host.value()]];
        }
    }
}

std::uint32_t Network::route_by(SwitchNode& node, std::span<const LinkIndex> links) {
    if (links.size() == 1) {
        return links.front().value();
    }
    node.groups.emplace_back(links.begin(), links.end());
    return kGroups + static_cast<std::uint32_t>(node.groups.size() - 1);
}

Time Network::empty_latency(NodeIndex from, NodeIndex to, Bytes bytes) const {
    Time sum{};
    LinkIndex at = host_links_[from];
    for (std::size_t hops = 0; at != LinkIndex::none() && hops <= switches_.size(); ++hops) {
        const FifoPort& link = ports_[at];
        sum += link.delay() + link.alone(bytes);
        if (link.wiring().to_host()) {
            return sum;
        }
        const SwitchNode& node = switches_[link.wiring().to_switch];
        const std::uint32_t route = node.routes[to];
        at = route < kGroups                        ? LinkIndex(route)
             : node.groups[route - kGroups].empty() ? LinkIndex::none()
                                                    : node.groups[route - kGroups].front();
    }
    return Time::zero();  // no route
}

SwitchIndex Network::add_switch(const SwitchConfig& config, std::uint32_t ports) {
    const SwitchNode added(config, ports);
    return switches_.push_back(added);
}

LinkIndex Network::add_link(const LinkConfig& config, const Wiring& wiring, std::string name) {
    const LinkIndex index = ports_.push_back(FifoPort(config, wiring));
    names_.push_back(std::move(name));
    ScheduledPortConfig scheduled{.schedule = config.schedule, .quantum = quantum_};
    if (!wiring.from_host()) {
        SwitchNode& node = switches_[wiring.from_switch];
        node.port_links[wiring.from_port] = index;
        if (!node.is_software) {  // a software switch schedules its rings
            scheduled.schedule = node.buffer.config().schedule;
        }
        if (node.buffer.config().model == BufferModel::voq) {
            scheduled.inputs = static_cast<std::uint32_t>(node.port_links.size());
            scheduled.queue_limit = node.buffer.config().port_limit;
        }
    }
    if (scheduled.needed() || config.changes || may_be_paused(wiring)) {
        schedule(index, scheduled);
    }
    if (config.changes && !wiring.from_host()) {
        switches_[wiring.from_switch].takes_all = false;  // while the link is down
    }
    return index;
}

/// Puts a ScheduledPort in front of a link, to decide when frames leave.
void Network::schedule(LinkIndex link, const ScheduledPortConfig& config) {
    schedulers_.resize(ports_.size());
    schedulers_[link] = std::make_unique<ScheduledPort>(config);
    ports_[link].set_scheduled();
}

void Network::route(SwitchIndex at, NodeIndex host, std::span<const LinkIndex> links) {
    SwitchNode& node = switches_[at];
    while (!node.routes.contains(host)) {
        node.routes.push_back(kGroups);
    }
    node.routes[host] = route_by(node, links);
}

void Network::inject_loss(const LossConfig& loss, base::RandomStream random) {
    losses_.push_back({loss, std::move(random)});
    watched_ = true;
}

void Network::begin_counting(Time now, Time end, std::size_t bins) {
    before_ = totals();
    record_occupancy(now, end, bins);
}

Report Network::totals() const {
    Report all;
    all.injected_losses = lost_frames_;
    all.cut = cut_frames_;
    all.marks = marks_;
    all.pauses = pauses_;
    for (const LinkIndex i : ports_.indices()) {
        const LinkCounters& counted = ports_[i].counters();
        all.links.push_back({counted.frames, counted.ack_frames, counted.wire_bytes(),
                             ports_[i].rate(), link_drops(i)});
        all.drops += all.links.back().drops;
        if (const ScheduledPort* port = scheduler(i); port != nullptr && port->has_classes()) {
            for (std::uint8_t each = 0; each < kTrafficClasses; ++each) {
                const ClassCounters& its = port->counters(TrafficClass(each));
                all.classes.push_back(
                    {i, TrafficClass(each), its.frames, its.wire_bytes, its.drops});
            }
        }
    }
    return all;
}

Report Network::report(Time now) {
    if (!before_) {
        return {};
    }
    finish_recording(now);
    Report counted = base::since(totals(), *before_);
    for (std::size_t i = 0; i < counted.links.size(); ++i) {
        counted.links[i].frames -= before_->links[i].frames;
        counted.links[i].ack_frames -= before_->links[i].ack_frames;
        counted.links[i].wire_bytes -= before_->links[i].wire_bytes;
        counted.links[i].drops -= before_->links[i].drops;
    }
    std::uint32_t classes = 0;  // a bit for each that had frames
    for (std::size_t i = 0; i < counted.classes.size(); ++i) {
        ClassReport& its = counted.classes[i];
        its.frames -= before_->classes[i].frames;
        its.wire_bytes -= before_->classes[i].wire_bytes;
        its.drops -= before_->classes[i].drops;
        classes |= its.is_empty() ? 0U : 1U << its.traffic_class.value();
    }
    std::erase_if(counted.classes, [classes](const ClassReport& its) {
        return its.is_empty() || std::has_single_bit(classes);
    });
    for (const SwitchNode& node : switches_) {
        const sim::TimeSeries::Peak peak = node.occupancy->peak();
        counted.switches.push_back(
            {peak.value, peak.at, node.least_buffer ? node.least_buffer->peak().value : 0});
    }
    return counted;
}

std::size_t Network::memory() const {
    std::size_t all = sacks_.memory();
    for (const FifoPort& port : ports_) {
        all += port.memory();
    }
    for (const auto& scheduler : schedulers_) {
        all += scheduler ? scheduler->memory() : 0;
    }
    for (const SwitchCores& each : software_) {
        all += each.itself ? each.itself->memory() : 0;
    }
    return all;
}

std::uint64_t Network::packet_hops() const {
    std::uint64_t hops = 0;
    for (const FifoPort& link : ports_) {
        hops += link.counters().frames;
    }
    return hops;
}

std::uint64_t Network::ack_hops() const {
    std::uint64_t hops = 0;
    for (const FifoPort& link : ports_) {
        hops += link.counters().ack_frames;
    }
    return hops;
}

void Network::record_occupancy(Time now, Time end, std::size_t bins) {
    for (SwitchNode& node : switches_) {
        settle(node, now);
        node.occupancy.emplace(now, end, bins);
        if (node.buffer.config().model == BufferModel::shared_memory) {
            node.least_buffer.emplace(now, end, bins);
        }
        node.occupancy->set(now, node.buffer.held());
    }
}

/// Records the exact occupancy at the beginning of each bin.
void Network::sample_occupancy(Time now, std::uint32_t kind) {
    for (SwitchNode& node : switches_) {
        settle(node, now);
        node.occupancy->set(now, node.buffer.held());
    }
    events_.push({now + switches_.front().occupancy->bin_width(), kind, 0});
}

void Network::finish_recording(Time now) {
    for (SwitchNode& node : switches_) {
        settle(node, now);
        if (node.occupancy) {
            node.occupancy->finish(now);
        }
        if (node.least_buffer) {
            node.least_buffer->finish(now);
        }
    }
}

Bytes Network::settled_occupancy(SwitchIndex index, Time now) {
    settle(switches_[index], now);
    return switches_[index].buffer.held();
}

std::uint64_t Network::link_drops(LinkIndex index) const {
    const Wiring wiring = ports_[index].wiring();
    return wiring.from_host() ? 0
                              : switches_[wiring.from_switch].buffer.port(wiring.from_port).drops;
}

void Network::settle(SwitchNode& node, Time now) {
    for (std::uint32_t port = 0; port < node.port_links.size(); ++port) {
        settle_port(node, port, now);
    }
}

void Network::mark(SwitchNode& node, std::uint32_t port, Frame& frame, Time now) {
    if (!frame.has(kEcnCapable)) {
        return;
    }
    settle_port(node, port, now);
    if (node.buffer.port(port).held > node.buffer.config().ecn_threshold) {
        frame.mark(kCongestionExperienced);
        ++marks_;
    }
}

LinkIndex Network::pick(const SwitchNode& node, std::uint32_t group, const Frame& frame, Time now) {
    const std::vector<LinkIndex>& links = node.groups[group];
    if (links.empty()) [[unlikely]] {
        ++unrouted_frames_;
        unrouted_bytes_ += frame.bytes;
        forget(frame, now);
        return LinkIndex::none();
    }
    return links[link_of_flow(frame.to, node.buffer.config().hash_seed,
                              static_cast<std::uint32_t>(links.size()))];
}

void Network::drop(SwitchNode& node, std::uint32_t port, LinkIndex out, const Frame& frame,
                   Time now) {
    node.buffer.count_drop(port, frame.bytes);
    if (ports_[out].is_scheduled()) {
        schedulers_[out]->count_drop(frame.traffic_class());
    }
    if (observer_ != nullptr) {
        observer_->on_drop(out, frame, now);
    }
    forget(frame, now);
}

Frame& Network::append_scheduled(LinkIndex link, TrafficClass traffic_class, std::uint16_t input,
                                 Bytes bytes, Time now) {
    ScheduledPort& port = *schedulers_[link];
    if (port.is_free(traffic_class, now)) {
        return begin_scheduled(link, traffic_class, bytes, now);
    }
    Frame& frame = port.append(traffic_class, input, bytes);
    frame.at = Time::never();
    wake(link, now);
    return frame;
}

void Network::send_scheduled(LinkIndex link, std::uint16_t input, const Frame& frame, Time now) {
    fill(append_scheduled(link, frame.traffic_class(), input, frame.bytes, now), frame);
}

Frame& Network::append_late(FifoPort& port, LinkIndex index, Bytes bytes, Time now) {
    HostJitter& jitter = *jitters_[index];
    const Time wire = port.on_wire(bytes);
    Frame& frame = port.append(bytes, jitter.start(now, port.free_at(), wire));
    frame.at = jitter.arrival(frame.at, wire);
    if (port.size() == 1) {
        events_.push({frame.at, kDelivery, index.value()});
    }
    return frame;
}

Frame& Network::begin_scheduled(LinkIndex link, TrafficClass traffic_class, Bytes bytes, Time now) {
    FifoPort& port = ports_[link];
    Frame& frame = jitters_.empty() || !port.wiring().from_host()
                       ? append(port, link, bytes, now)
                       : append_late(port, link, bytes, now);
    schedulers_[link]->begin(traffic_class, bytes, now, ports_[link].free_at());
    return frame;
}

void Network::wake(LinkIndex link, Time now) {
    if (const std::optional<Time> at = schedulers_[link]->wake(now)) {
        events_.push({*at, kPortFree, link.value()});
    }
}

const Frame* Network::on_port_free(LinkIndex link, Time now) {
    if (link.value() >= kGoesOn) [[unlikely]] {
        if (link.value() >= kCores) {
            on_switch_turn(link.value() - kCores, now);
        } else {
            on_pause(LinkIndex(link.value() % kGoesOn), link.value() >= kHolds, now);
        }
        return nullptr;
    }
    const std::optional<Frame> next = schedulers_[link]->next();
    const Wiring wiring = ports_[link].wiring();
    if (!wiring.from_host() && switches_[wiring.from_switch].is_software) {
        const SoftwareSwitch& software = *software_[wiring.from_switch].itself;
        wake_switch(wiring.from_switch, software.core_of(wiring.from_port), now);
    }
    if (!next) {
        return nullptr;
    }
    Frame& begun = begin_scheduled(link, next->traffic_class(), next->bytes, now);
    fill(begun, *next);
    wake(link, now);
    return &begun;
}

/// Counts a frame as lost at the far end of a link, which has already counted its delivery.
void Network::lose(LinkIndex link, const Frame& frame, Time now) {
    lost_bytes_ += frame.bytes;
    lost_at_hosts_ += ports_[link].wiring().to_host() ? frame.bytes : 0;
    forget(frame, now);
    if (observer_ != nullptr) {
        observer_->on_drop(link, frame, now);
    }
}

void Network::forget(const Frame& frame, Time now) {
    if (frame.has_sack()) {
        sacks_.release(frame.sack);
    }
    if (loss_observer_ != nullptr) {
        loss_observer_->on_frame_lost(frame, now);
    }
}

/// Reports an arrived frame to the observer and draws losses. Returns false for a lost frame.
bool Network::watch(LinkIndex index, const Frame& frame, Time now) {
    if (ports_[index].is_scheduled() && schedulers_[index]->has_lost_head()) {
        ++cut_frames_;
        lose(index, frame, now);
        return false;
    }
    if (!bit_errors_.empty() && bit_errors_[index] > 0) {
        const double bits = 8 * static_cast<double>(frame.bytes);
        if (errors_.uniform() < -std::expm1(bits * std::log1p(-bit_errors_[index]))) {
            ++cut_frames_;
            lose(index, frame, now);
            return false;
        }
    }
    for (InjectedLoss& loss : losses_) {
        if (loss.config.link != index || frame.payload == 0) {
            continue;
        }
        const bool periodic = loss.config.period != 0 && ++loss.frames % loss.config.period == 0;
        if (periodic || loss.random.uniform() < loss.config.probability) {
            ++lost_frames_;
            lose(index, frame, now);
            return false;
        }
    }
    if (observer_ != nullptr) {
        observer_->on_delivery(index, frame, now);
    }
    return true;
}

base::expected<void> Network::check_conservation() const {
    std::int64_t delivered = 0;
    std::int64_t inside = 0;
    for (const FifoPort& link : ports_) {
        delivered += link.wiring().to_host() ? link.counters().frame_bytes : 0;
        inside += link.bytes_inside();
    }
    for (const std::unique_ptr<ScheduledPort>& port : schedulers_) {
        inside += port != nullptr ? port->bytes_waiting() : 0;
    }
    for (const SwitchCores& each : software_) {
        inside += each.itself != nullptr ? each.itself->bytes_inside() : 0;
    }
    std::int64_t dropped = 0;
    for (const SwitchNode& node : switches_) {
        std::int64_t held = 0;
        for (const SwitchBuffer::Port& port : node.buffer.ports()) {
            dropped += port.dropped_bytes;
            held += port.held;
        }
        if (held != node.buffer.held()) {
            return base::defect(fmt::format("a switch holds {} B, its ports {} B together",
                                            node.buffer.held(), held));
        }
        const softswitch::SharedMemory& memory = node.buffer.memory();
        if (memory.taken() != memory.freed() + memory.held()) {
            return base::defect(fmt::format("{} cells were taken, but {} freed and {} are held",
                                            memory.taken(), memory.freed(), memory.held()));
        }
    }
    if (sent_bytes_ !=
        delivered - lost_at_hosts_ + inside + dropped + lost_bytes_ + unrouted_bytes_) {
        return base::defect(
            fmt::format("hosts sent {} B, but {} B were delivered, {} B are on the way, {} B were "
                        "dropped, {} B lost and {} B had no route",
                        sent_bytes_, delivered - lost_at_hosts_, inside, dropped, lost_bytes_,
                        unrouted_bytes_));
    }
    return {};
}

}  // namespace daqloom::ethernet
