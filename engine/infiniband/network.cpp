#include "infiniband/network.hpp"

#include <fmt/format.h>

#include <utility>

namespace daqloom::infiniband {

namespace {

constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 20) - 1;  ///< limit of an event's kind
constexpr PortNumber kMostPorts = 254;                             ///< InfiniBand's own limit
constexpr std::uint32_t kMostNodes = 65'536;
constexpr std::uint32_t kMostLanes = 15;

base::expected<void> check_tables(const FabricConfig& config) {
    for (const auto* table : {&config.arbitration.high, &config.arbitration.low}) {
        for (const LaneWeight& entry : *table) {
            DAQLOOM_REFUSE_IF(entry.lane.value() >= config.lanes,
                              "virtual lane {} in an arbitration table; there are {}",
                              entry.lane.value(), config.lanes);
        }
    }
    for (const VirtualLane lane : config.service_lanes) {
        DAQLOOM_REFUSE_IF(lane.value() >= config.lanes,
                          "a service level on virtual lane {}; there are {}", lane.value(),
                          config.lanes);
    }
    DAQLOOM_REFUSE_IF(LaneArbiter(config.arbitration).lanes() == 0,
                      "the arbitration tables serve no virtual lane");
    return {};
}

/// Checks the changes; a link must stay down for longer than the delay of its wire.
base::expected<void> check_changes(const FabricConfig& config) {
    std::vector<base::Time> dark(2 * config.cables.size(), base::Time::never());
    base::Time last;
    for (const LinkChange& change : config.changes) {
        DAQLOOM_REFUSE_IF(
            change.link >= dark.size() || change.at < last || !(change.bit_errors >= 0) ||
                change.bit_errors > 1 || change.link_retry < base::Time::zero(),
            "a change of link {} at {} s; expected one of {} links, in the order of time, with "
            "a share of bit errors of 0 to 1",
            change.link, change.at.seconds(), dark.size());
        last = change.at;
        const Cable& cable = config.cables[change.link / 2];
        const base::Time gone =
            cable.delay + base::WireClock(cable.rate)(config.credit_update_bytes);
        DAQLOOM_REFUSE_IF(change.what == LinkChange::What::rate &&
                              (change.rate.bps < 1'000'000 || change.rate.bps > 8'000'000'000'000),
                          "link {} changes to {} b/s; expected 1 Mb/s to 8 Tb/s", change.link,
                          change.rate.bps);
        DAQLOOM_REFUSE_IF(
            change.what == LinkChange::What::up && dark[change.link] != base::Time::never() &&
                change.at <= dark[change.link] + gone,
            "link {} is up again {} s after it broke; expected more than the {} s of its "
            "delay and a credit update",
            change.link, (change.at - dark[change.link]).seconds(), gone.seconds());
        if (change.what == LinkChange::What::dark || change.what == LinkChange::What::down) {
            dark[change.link] = std::min(dark[change.link], change.at);
        } else if (change.what == LinkChange::What::up) {
            dark[change.link] = base::Time::never();
        }
    }
    for (const network::Rerouting& rerouting : config.reroutings) {
        DAQLOOM_CHECK(network::validate(config, rerouting));
        DAQLOOM_REFUSE_IF(!rerouting.groups.empty(),
                          "groups of ports; a forwarding table names single ones");
    }
    return {};
}

base::expected<void> check(const FabricConfig& config) {
    DAQLOOM_CHECK(network::validate(config));
    DAQLOOM_REFUSE_IF(config.nodes() > kMostNodes,
                      "{} hosts and {} switches; expected at most {} nodes", config.hosts,
                      config.switches(), kMostNodes);
    DAQLOOM_REFUSE_IF(config.lanes < 1 || config.lanes > kMostLanes,
                      "{} virtual lanes; expected 1 to {}", config.lanes, kMostLanes);
    DAQLOOM_REFUSE_IF(config.buffer_blocks < 1 || config.buffer_blocks > kMostBlocks,
                      "buffers of {} blocks; expected 1 to {}", config.buffer_blocks, kMostBlocks);
    DAQLOOM_REFUSE_IF(
        config.crossbar_speedup < 1 || config.crossbar_iterations < 1 ||
            config.switch_latency <= base::Time::zero() ||
            config.credit_update_interval < base::Time::zero() || config.credit_update_bytes < 1 ||
            config.head_of_queue_lifetime < base::Time::zero(),
        "crossbar speed-up and iterations, switch latency and credit update bytes have to be "
        "above 0, the interval of credit updates and the lifetime at the head of a queue 0 or "
        "more");
    for (const PortNumber ports : config.switch_ports) {
        DAQLOOM_REFUSE_IF(ports > kMostPorts, "a switch of {} ports; expected {} at most", ports,
                          kMostPorts);
    }
    for (const Cable& cable : config.cables) {
        DAQLOOM_REFUSE_IF(cable.delay <= base::Time::zero() || cable.rate.bps > 8'000'000'000'000,
                          "a cable's delay has to be above 0, its rate 1 Mb/s to 8 Tb/s");
    }
    DAQLOOM_REFUSE_IF(!config.groups.empty(),
                      "groups of ports; a forwarding table names single ones");
    DAQLOOM_CHECK(check_changes(config));
    return check_tables(config);
}

}  // namespace

base::expected<Network> Network::make(const FabricConfig& config, sim::EventQueue& events) {
    DAQLOOM_CHECK(check(config));
    Network network(config, events);
    for (const Cable& cable : config.cables) {
        const PortIndex a = network.port_index(cable.a);
        const PortIndex b = network.port_index(cable.b);
        for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
            network.outputs_[from].peer = to;
            network.outputs_[from].clock = base::WireClock(cable.rate);
            network.outputs_[from].delay = cable.delay;
        }
    }
    network.set_forwarding(config.forwarding);
    network.plan_changes(config);
    return network;
}

/// Sets the forwarding table, whose index is switch · hosts + destination.
void Network::set_forwarding(const std::vector<network::Route>& routes) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
        const NodeIndex node(hosts_ + i / hosts_);
        const PortNumber port = routes[i];
        const bool leads =
            port != 0 && outputs_[port_index({node, port})].peer != PortIndex::none();
        forwarding_[i] = leads ? port - 1U : kNoPlace;
    }
}

Network::Network(const FabricConfig& config, sim::EventQueue& events)
    : events_(events),
      hosts_(config.hosts),
      lanes_(config.lanes),
      speedup_(config.crossbar_speedup),
      iterations_(config.crossbar_arbiter == CrossbarArbiter::islip ? config.crossbar_iterations
                                                                    : 0),
      per_block_(config.credit_release == CreditRelease::per_block),
      by_output_(config.input_queue == InputQueue::virtual_output ? 1 : 0),
      buffer_blocks_(config.buffer_blocks),
      latency_(config.switch_latency),
      update_interval_(config.credit_update_interval),
      update_bytes_(config.credit_update_bytes),
      lifetime_(config.head_of_queue_lifetime),
      forwarding_(config.forwarding.size()),
      errors_(config.seed, "bit errors") {
    std::size_t queues = 0;
    std::uint32_t ports = 0;
    std::uint32_t widest = 1;
    for (const NodeIndex node :
         base::IndexRange<NodeIndex>(config.hosts + config.switch_ports.size())) {
        const std::uint32_t own = is_host(node) ? 1 : config.switch_ports[node.value() - hosts_];
        first_port_.push_back(PortIndex(ports));
        ports_.push_back(own);
        lane_stride_.push_back(by_output_ == 1 ? own : 1);
        for (std::uint32_t place = 0; place < own; ++place) {
            Output out;
            out.node = node;
            out.place = place;
            outputs_.push_back(out);
            arbiters_.push_back(LaneArbiter(config.arbitration));
            first_queue_.push_back(queues);
            queues += std::size_t{lanes_} * lane_stride_.back();
        }
        ports += own;
        widest = std::max(widest, own);
    }
    const std::size_t both = std::size_t{ports} * lanes_;
    turn_.assign(ports_.size(), 0);
    active_.assign(ports, 0);
    drains_.resize(per_block_ ? ports : 0);
    requested_ = PortSets<PortIndex>(ports, widest);
    credits_.assign(both, buffer_blocks_);
    returning_.assign(both, 0);
    served_.assign(both, kNoPlace);
    accounts_.resize(both);
    lane_counters_.resize(both);
    offers_ = PortSets<PortLane>(both, widest);
    queues_.resize(queues);
    lifetimes_.resize(lifetime_ > base::Time::zero() ? queues : 0);
    dirty_ = PortSets<NodeIndex>(ports_.size(), widest);
    if (iterations_ > 0) {
        islip_ = Islip(ports_.size(), ports, widest);
        able_ = PortSets<NodeIndex>(ports_.size(), widest);
        granted_.resize(widest);
    }
}

void Network::inject(NodeIndex host, const Packet& packet, base::Time now) {
    const PortIndex port = first_port_[host];
    Packet sent = packet;
    sent.ready = now;
    sent.blocks = static_cast<std::uint16_t>((packet.bytes + kBlockBytes - 1) / kBlockBytes);
    const PacketIndex place = packets_.put(sent);
    PacketQueue& waiting = queue(port, packet.lane, 0);
    const bool first = waiting.empty();
    waiting.push(packets_, place);
    ++injected_;
    if (first) {
        await(port, port, sent, now);
    }
}

/// Handles the head of a packet that comes in from `wire`.
void Network::enter(PortIndex input, PacketIndex place, base::Time begin, const Output& wire) {
    Packet& packet = packets_[place];
    accounts_[on(input, packet.lane)].taken += packet.blocks;
    const base::Time head =
        begin + wire.delay + wire.clock(std::min<base::Bytes>(packet.bytes, kBlockBytes));
    const base::Time tail = begin + wire.delay + wire.clock(packet.bytes);
    const NodeIndex node = outputs_[input].node;
    if (is_host(node)) {
        packet.end = input;
        events_.push({tail, kArrived, place.value()});
        if (per_block_ && !hosts_hold_) {
            begin_drain(
                input,
                {begin + wire.delay, wire.clock, place.value() | kEnds, packet.bytes, packet.lane},
                begin);
        }
        return;
    }
    const std::uint32_t to = route(node, packet.destination);
    if (to == kNoPlace) {
        unrouted_ += packet.is_bad ? 0 : 1;
        discard(input, place, head, wire);
        return;
    }
    const PortIndex output = first_port_[node] + to;
    // Cut-through to a faster output: each block must have arrived before it leaves. The critical
    // blocks are the last full block and the last one, which may be shorter.
    const base::Bytes full = kBlockBytes * std::max(packet.blocks - 1, 1);
    const base::WireClock& leaving = outputs_[output].clock;
    const base::Time last_full = begin + wire.delay +
                                 wire.clock(std::min<base::Bytes>(packet.bytes, full)) -
                                 leaving(full - kBlockBytes);
    const base::Time last = tail - leaving(kBlockBytes * (packet.blocks - 1));
    packet.ready = std::max({head, last_full, last}) + latency_;
    packet.place = static_cast<std::uint8_t>(to);
    PacketQueue& waiting = queue(input, packet.lane, to);
    const bool first = waiting.empty();
    waiting.push(packets_, place);
    if (first) {
        await(output, input, packet, begin);
    }
}

/// Discards a packet at a switch: its blocks become free from `head` on, at the rate of its wire.
void Network::discard(PortIndex input, PacketIndex place, base::Time head, const Output& wire) {
    Packet& packet = packets_[place];
    packet.end = input;
    events_.push({head + wire.clock(packet.bytes), kArrived, place.value()});
    if (per_block_) {
        begin_drain(input, {head, wire.clock, place.value() | kEnds, packet.bytes, packet.lane},
                    head);
    }
}

/// Registers the packet at the head of a queue at `input` with its `output`, for arbitration.
void Network::await(PortIndex output, PortIndex input, const Packet& first, base::Time now) {
    Output& out = outputs_[output];
    offers_.add(on(output, first.lane), outputs_[input].place);
    out.requested |= only(first.lane);
    requested_.add(input, out.place);
    if (lifetime_ > base::Time::zero()) {
        begin_lifetime(output, input, first, now);
    }
    if (first.ready <= now) {
        touch(output);
    } else if (!out.sending || out.free_at < first.ready) {
        events_.push({first.ready, kTry, output.value()});
    }  // else the end of its packet is an event already
}

/// Unregisters `input` at `output`: no queue of this lane there has a first packet for the output.
void Network::forget(PortIndex output, PortIndex input, VirtualLane lane) {
    Output& out = outputs_[output];
    const std::uint32_t from = outputs_[input].place;
    offers_.remove(on(output, lane), from);
    if (offers_.empty(on(output, lane))) {
        out.requested &= ~only(lane);
    }
    for (const VirtualLane other : base::IndexRange<VirtualLane>(lanes_)) {
        if (offers_.has(on(output, other), from)) {
            return;
        }
    }
    requested_.remove(input, out.place);
}

void Network::begin_lifetime(PortIndex output, PortIndex input, const Packet& first,
                             base::Time now) {
    if (is_host(outputs_[input].node)) {
        return;
    }
    const std::uint32_t place = outputs_[output].place;
    const std::size_t number = queue_number(input, first.lane, place);
    lifetimes_[number].end = std::max(now, first.ready) + lifetime_;
    if (lifetimes_[number].timer == base::Time::never()) {
        set_lifetime_timer(number, input, first.lane, place);
    }  // else the pending event comes no later
}

void Network::set_lifetime_timer(std::size_t queue, PortIndex input, VirtualLane lane,
                                 std::uint32_t place) {
    lifetimes_[queue].timer = lifetimes_[queue].end;
    events_.push({lifetimes_[queue].end, kind(kLifetimeOver, lane, place), input.value()});
}

void Network::on_lifetime(PortIndex input, VirtualLane lane, std::uint32_t place, base::Time now) {
    const std::size_t number = queue_number(input, lane, place);
    PacketQueue& from = queues_[number];
    lifetimes_[number].timer = base::Time::never();
    if (from.empty()) {
        return;
    }
    if (now < lifetimes_[number].end) {
        set_lifetime_timer(number, input, lane, place);
        return;
    }
    const PacketIndex first = from.first;
    const NodeIndex node = outputs_[input].node;
    const PortIndex output = first_port_[node] + packets_[first].place;
    outputs_[output].counters.discards += packets_[first].is_bad ? 0 : 1;
    pop(from, output, input, lane, now);
    discard(input, first, now, outputs_[input]);
    if (!outputs_[output].sending) {
        touch(output);
    }
}

/// Marks outputs for arbitration if this input, which has changed, has ready packets for them.
void Network::touch_requested(PortIndex input, base::Time now) {
    const PortIndex first = first_port_[outputs_[input].node];
    requested_.each(input, [&](std::uint32_t place) {
        if (!outputs_[first + place].sending && offers_now(first + place, input, now)) {
            touch(first + place);
        }
    });
}

bool Network::offers_now(PortIndex output, PortIndex input, base::Time now) const {
    const Output& out = outputs_[output];
    for (LaneSet left = out.requested; left != 0; left &= left - 1) {
        const auto lane = first_of(left);
        if (offers_.has(on(output, lane), outputs_[input].place) &&
            packets_[queue(input, lane, out.place).first].ready <= now) {
            return true;
        }
    }
    return false;
}

/// Reviews the outputs of a switch that events have affected; returns whether an output has become
/// able to send a packet.
bool Network::review(NodeIndex node, base::Time now) {
    bool more = false;
    dirty_.each(node, [&](std::uint32_t place) {
        const PortIndex output = first_port_[node] + place;
        bool able = false;
        if (takes_packets(output, now)) {
            const Choice choice = choose(output, now);
            able = choice.candidates != 0;
            wait_for(output, able ? PortWait::crossbar : choice.waiting, choice.waiting_lanes, now);
        }
        more = more || (able && !able_.has(node, place));
        able ? able_.add(node, place) : able_.remove(node, place);
    });
    return more;
}

/// Lets each output of a switch that can send grant to the next input, for the lane whose turn it
/// is; returns false if no output can send.
bool Network::grant(NodeIndex node, base::Time now) {
    bool granted = false;
    able_.each(node, [&](std::uint32_t place) {
        const PortIndex output = first_port_[node] + place;
        const Choice choice = choose(output, now);
        if (choice.candidates != 0) {
            const PortIndex input =
                choice.inputs[arbiters_[output].next(choice.candidates).value()];
            islip_.grant(node, input, outputs_[input].place, place);
            granted_[place] = choice.candidates;
            granted = true;
        }
    });
    return granted;
}

void Network::send_update(PortIndex output, base::Time now) {
    Output& out = outputs_[output];
    const auto lane = first_of(out.due);
    CreditAccount& account = accounts_[on(output, lane)];
    const std::int64_t all = freed(output, lane, now);
    const auto blocks = static_cast<std::uint32_t>(all - account.announced);
    account.announced = all;
    account.next_update = now + update_interval_;
    out.due &= ~only(lane);
    out.free_at = now + out.clock(update_bytes_);
    ++out.counters.credit_updates;
    returning_[on(out.peer, lane)] += blocks;
    events_.push({out.free_at + out.delay, kind(kCredits, lane, blocks), out.peer.value()});
    if (per_block_) {
        set_timer(output, lane, drains_[output].next(lane, now));
    }
}

/// Frees the last blocks of a packet; earlier blocks became free while the packet left (see Drain).
void Network::release(PortIndex input, VirtualLane lane, std::int64_t blocks, std::uint32_t drain,
                      base::Time now) {
    accounts_[on(input, lane)].freed += blocks;
    if (per_block_) {
        drains_[input].remove(drain);
    }
    request_update(input, lane, now);
}

void Network::begin_drain(PortIndex input, const Drain& drain, base::Time now) {
    drains_[input].add(drain);
    if (!holds(outputs_[input].due, drain.lane)) {
        set_timer(input, drain.lane, drains_[input].next(drain.lane, now));
    }
}

void Network::request_update(PortIndex input, VirtualLane lane, base::Time now) {
    Output& reverse = outputs_[input];
    CreditAccount& account = accounts_[on(input, lane)];
    if (holds(reverse.due, lane) || freed(input, lane, now) == account.announced) {
        return;
    }
    if (now < account.next_update) {
        set_timer(input, lane, account.next_update);
        return;
    }
    reverse.due |= only(lane);
    if (!reverse.sending) {
        touch(input);
    }
}

/// Schedules an event at `at` that checks for freed blocks, unless an earlier one is pending.
void Network::set_timer(PortIndex input, VirtualLane lane, base::Time at) {
    CreditAccount& account = accounts_[on(input, lane)];
    if (at == base::Time::never()) {
        return;
    }
    at = std::max(at, account.next_update);
    if (at < account.timer) {
        account.timer = at;
        events_.push({at, kind(kUpdate, lane), input.value()});
    }
}

void Network::on_timer(PortIndex input, VirtualLane lane, base::Time now) {
    CreditAccount& account = accounts_[on(input, lane)];
    if (account.timer != now) {
        return;  // replaced by an earlier one
    }
    account.timer = base::Time::never();
    request_update(input, lane, now);
    if (per_block_ && !holds(outputs_[input].due, lane)) {
        set_timer(input, lane, drains_[input].next(lane, now));
    }
}

void Network::wait_for(PortIndex output, PortWait what, LaneSet lanes, base::Time now) {
    Output& out = outputs_[output];
    if (out.waiting == PortWait::credits) {
        out.counters.wait_credits += now - out.waits_since;
    } else if (out.waiting == PortWait::crossbar) {
        out.counters.wait_crossbar += now - out.waits_since;
    }
    for (; out.waiting_lanes != 0; out.waiting_lanes &= out.waiting_lanes - 1) {
        const auto lane = first_of(out.waiting_lanes);
        lane_counters_[on(output, lane)].wait += now - out.waits_since;
    }
    out.waiting = what;
    out.waiting_lanes = lanes;
    out.waits_since = now;
}

void Network::finish(base::Time now) {
    for (const PortIndex output : outputs_.indices()) {
        wait_for(output, outputs_[output].waiting, outputs_[output].waiting_lanes, now);
    }
}

base::expected<void> Network::check_conservation(base::Time now) const {
    if (injected_ != delivered_ + discarded_ + dropped_ + bad_ + packets_.in_use()) {
        return base::defect(
            fmt::format("{} packets injected, {} delivered, {} discarded, {} dropped, {} lost on a "
                        "wire, {} on their way",
                        injected_, delivered_, discarded_, dropped_, bad_, packets_.in_use()));
    }
    for (const PortIndex port : outputs_.indices()) {
        const PortIndex peer = outputs_[port].peer;
        for (const VirtualLane lane :
             base::IndexRange<VirtualLane>(peer == PortIndex::none() ? 0 : lanes_)) {
            const CreditAccount& account = accounts_[on(peer, lane)];
            const std::int64_t free = freed(peer, lane, now);
            const std::int64_t held = account.taken - free;
            const bool is_endless = outputs_[port].state == LinkState::down;
            const std::int64_t credits = credits_[on(port, lane)] - (is_endless ? kEndless : 0);
            const std::int64_t returning = returning_[on(port, lane)];
            if (credits < 0 || returning < 0 || held < 0 || held > buffer_blocks_ ||
                free < account.announced ||
                credits + returning + held + free - account.announced != buffer_blocks_) {
                return base::defect(fmt::format(
                    "port {} of node {}, lane {}: {} credits, {} blocks held, {} free and not "
                    "announced, {} announced and not arrived do not make up a buffer of {}",
                    outputs_[port].place + 1, outputs_[port].node.value(), lane.value(), credits,
                    held, free - account.announced, returning, buffer_blocks_));
            }
        }
    }
    return {};
}

std::vector<End> Network::deadlock() const {
    enum class Mark : std::uint8_t { fresh, open, closed };
    // A lane of an output waits for the buffer at the other end, which waits for the outputs of its
    // packets. The search marks pairs of output and lane.
    base::Table<PortLane, Mark> marks(outputs_.size() * lanes_, Mark::fresh);
    struct Step {
        PortIndex output;
        VirtualLane lane;
        std::uint32_t next;  ///< next place to visit
    };
    for (const PortIndex start : outputs_.indices()) {
        for (const VirtualLane lane : base::IndexRange<VirtualLane>(lanes_)) {
            if (!holds(outputs_[start].requested, lane) || marks[on(start, lane)] != Mark::fresh) {
                continue;
            }
            std::vector<Step> path{{start, lane, 0}};
            marks[on(start, lane)] = Mark::open;
            while (!path.empty()) {
                Step& step = path.back();
                const PortIndex input = outputs_[step.output].peer;
                const NodeIndex node = outputs_[input].node;
                const PortIndex first = first_port_[node];
                PortIndex to = PortIndex::none();
                while (step.next < ports_[node] && to == PortIndex::none()) {
                    const PortIndex candidate = first + step.next++;
                    const bool waits = !is_host(node) &&
                                       offers_.has(on(candidate, step.lane), outputs_[input].place);
                    if (waits && marks[on(candidate, step.lane)] == Mark::open) {
                        std::vector<End> circle;
                        bool inside = false;
                        for (const Step& each : path) {
                            inside = inside || each.output == candidate;
                            if (inside) {
                                circle.push_back(end(each.output));
                            }
                        }
                        return circle;
                    }
                    if (waits && marks[on(candidate, step.lane)] == Mark::fresh) {
                        to = candidate;
                    }
                }
                if (to == PortIndex::none()) {
                    marks[on(step.output, step.lane)] = Mark::closed;
                    path.pop_back();
                } else {
                    marks[on(to, step.lane)] = Mark::open;
                    path.push_back({to, step.lane, 0});
                }
            }
        }
    }
    return {};
}

}  // namespace daqloom::infiniband
