// The fabric: a packet moves from buffer to buffer when there are credits for all of its blocks.
//
//   sender's output ──► wire ──► input buffer ──► crossbar ──► output ──► ...
//          ▲                          │ freed
//          └──── credit update ◄──────┘ on the reverse wire
//
// Virtual cut-through: a packet starts only when there are credits for all of its blocks, so its
// transmission never pauses. Two events, for its head and its tail, therefore determine the times
// of all its flits. All events of one instant are processed before the affected outputs arbitrate
// (`settle`).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/random.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "infiniband/credit_account.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/islip.hpp"
#include "infiniband/lane_arbiter.hpp"
#include "infiniband/link_change.hpp"
#include "infiniband/packet.hpp"
#include "infiniband/port_set.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {

/// The cause for which an idle output waits; PortXmitWait counts the time for both causes.
enum class PortWait : std::uint8_t { nothing, credits, crossbar };

/// Counters of one output, as switches have them.
struct OutputCounters {
    DAQLOOM_FIELDS(OutputCounters, (std::uint64_t, packets, "Packets sent."),
                   (base::Bytes, bytes, "Bytes of the packets sent."),
                   (std::uint64_t, credit_updates, "Updates of credits sent."),
                   (base::Time, wait_credits,
                    "Time idle while a packet that could cross lacked credits."),
                   (base::Time, wait_crossbar,
                    "Time idle while packets waited for inputs that sent elsewhere, or that no "
                    "matching chose."),
                   (std::uint64_t, discards, "Packets whose head-of-queue lifetime was over."),
                   (std::uint64_t, dropped, "Packets dropped as the link was down."),
                   (std::uint64_t, cut,
                    "Packets lost on the wire, by bit errors or as the link went down."))
};

/// Counters of one lane of an output; a lane without weight is never counted as waiting.
struct LaneCounters {
    DAQLOOM_FIELDS(
        LaneCounters, (base::Bytes, bytes, "Bytes sent, by output and virtual lane."),
        (base::Time, wait,
         "Time that the output was idle and had packets of this lane, by output and virtual lane."))
};

class Network {
  public:
    using Packet = infiniband::Packet;

    /// Kinds of event that a network schedules, in the lowest eight bits; the owner of the event
    /// queue passes due events back to the network.
    enum EventKind : std::uint32_t {
        kTry = 0,           ///< index: output that may have become able to send
        kTail = 1,          ///< index: output; the packet's last byte has left
        kCredits = 2,       ///< index: output; the kind's higher bits: lane, blocks
        kUpdate = 3,        ///< index: input that may send an update; higher bits: lane
        kArrived = 4,       ///< index: packet whose last byte is where it is delivered or discarded
        kLifetimeOver = 5,  ///< index: input; higher bits: lane, place of the output: the queue
        kReceived = 6,      ///< index: packet that its host held in the input buffer
        kChange = 7,        ///< index: of the change of a link or, beyond these, of tables
        kFirstOtherEvent = 8,
    };
    static constexpr std::uint32_t kKindMask = 0xff;

    /// `events` outlives the network.
    static base::expected<Network> make(const FabricConfig& config, sim::EventQueue& events);

    /// Makes packets hold their whole input buffer at a host until a time, which a call of
    /// `hosts.receive(packet, now)` returns when the last byte of the packet arrives.
    void let_hosts_hold() { hosts_hold_ = true; }

    /// Queues a packet of a host. The caller sets its destination, bytes, lane, tag and PSN.
    /// Packets of a lane leave in the order of these calls.
    void inject(NodeIndex host, const Packet& packet, base::Time now);

    /// Processes one event. Calls `hosts.on_delivered(packet, now)` when the last byte of a packet
    /// is at its destination.
    template <class Hosts>
    void on_event(const sim::Event& event, Hosts& hosts);

    /// Lets every affected output arbitrate; called when no event of this instant is left. Calls
    /// `hosts.on_departure(host, packet, now)` when a packet begins to leave its host; the host may
    /// inject the next packet in this call.
    template <class Hosts>
    void settle(base::Time now, Hosts& hosts) {
        for (std::size_t i = 0; i < touched_.size(); ++i) {
            const NodeIndex node = touched_[i];
            iterations_ == 0 || is_host(node) ? arbitrate(node, now, hosts)
                                              : match(node, now, hosts);
        }
        touched_.clear();
    }

    [[nodiscard]] const OutputCounters& counters(End end) const {
        return outputs_[port_index(end)].counters;
    }
    [[nodiscard]] const LaneCounters& counters(End end, VirtualLane lane) const {
        return lane_counters_[on(port_index(end), lane)];
    }
    [[nodiscard]] std::uint64_t packet_hops() const { return packet_hops_; }
    /// Memory of packets (B).
    [[nodiscard]] std::size_t memory() const { return packets_.memory(); }
    [[nodiscard]] std::uint64_t injected() const { return injected_; }
    [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
    [[nodiscard]] std::uint64_t discarded() const { return discarded_; }
    /// Discarded packets for which a switch had no route.
    [[nodiscard]] std::uint64_t unrouted() const { return unrouted_; }
    /// Packets damaged by loss on a wire, and therefore dropped at their destination.
    [[nodiscard]] std::uint64_t bad() const { return bad_; }
    /// Packets dropped by outputs whose links were down.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    /// Whether links or tables change during the run.
    [[nodiscard]] bool changes() const { return !changes_.empty() || !reroutings_.empty(); }
    [[nodiscard]] std::uint64_t in_network() const { return packets_.in_use(); }

    /// Completes the counters: adds the waiting times of outputs up to `now`.
    void finish(base::Time now);

    /// Checks packets: injected = delivered + discarded + dropped + bad + still in the network.
    /// Checks blocks for every input and lane: credits, held blocks, and updates due and under way
    /// add up to the buffer. If a check fails, returns a sentence with the difference.
    [[nodiscard]] base::expected<void> check_conservation(base::Time now) const;

    /// Returns a deadlock: a cycle of outputs, each waiting for a buffer that only the next output
    /// can empty; empty if there is none. Called when packets are left but no event is.
    [[nodiscard]] std::vector<End> deadlock() const;

    [[nodiscard]] End end(PortIndex port) const {
        return {outputs_[port].node, static_cast<PortNumber>(outputs_[port].place + 1)};
    }

  private:
    /// Bit in a drain's number: the number is that of a packet that ends here, not of an output.
    static constexpr std::uint32_t kEnds = std::uint32_t{1} << 31;

    /// A virtual lane of a port.
    using PortLane = base::Index<struct PortLaneTag>;

    struct Output {
        base::WireClock clock;
        base::Time delay;
        base::Time free_at;  ///< earliest next transmission
        PortIndex peer = PortIndex::none();
        NodeIndex node;
        std::uint32_t place = 0;   ///< among the node's ports, from 0
        PortIndex input;           ///< input of the packet under way
        std::uint16_t blocks = 0;  ///< blocks of the packet under way
        VirtualLane lane;          ///< lane of the packet under way
        LinkState state = LinkState::up;
        bool sending = false;        ///< sending a packet, whose end is an event
        bool awaits_update = false;  ///< an update ends at free_at, which is an event
        PortWait waiting = PortWait::nothing;
        LaneSet due = 0;        ///< lanes of the input at this port that have an update to send
        LaneSet requested = 0;  ///< lanes in which an input's first packet is for this output
        LaneSet waiting_lanes = 0;
        base::Time waits_since;
        OutputCounters counters;
    };

    /// The head-of-queue lifetime of a queue.
    struct Lifetime {
        base::Time end;
        base::Time timer = base::Time::never();  ///< time of the event that checks it
    };

    /// A packet on a wire.
    struct OnWire {
        PacketIndex packet;
        std::uint8_t life = 0;  ///< life of the packet, which may have been dropped meanwhile
        base::Time tail;        ///< time of the tail at the far end
    };
    /// Additional state of a link that changes.
    struct Wire {
        base::Ring<OnWire> packets;  ///< latest packets; some may have arrived
        double bit_errors = 0;
        base::Time link_retry;
    };
    /// Credits of an output whose link is down: more than the packets that it drops can use.
    static constexpr std::int64_t kEndless = std::int64_t{1} << 40;

    /// Packets that an idle output could send.
    struct Choice {
        LaneSet candidates = 0;                ///< lanes with a packet that could be sent
        std::array<PortIndex, 16> inputs;      ///< by lane of `candidates`: input whose turn it is
        LaneSet waiting_lanes = 0;             ///< lanes with a packet
        PortWait waiting = PortWait::nothing;  ///< cause, if there is no candidate
    };

    Network(const FabricConfig& config, sim::EventQueue& events);

    /// An event's kind in the low bits, with a lane and then a number in the higher bits.
    static std::uint32_t kind(EventKind kind, VirtualLane lane, std::uint32_t more = 0) {
        return kind | std::uint32_t{lane.value()} << 8 | more << 12;
    }
    static VirtualLane lane_of(const sim::Event& event) {
        return VirtualLane((event.kind >> 8) & 0xf);
    }
    static std::uint32_t more_of(const sim::Event& event) { return event.kind >> 12; }

    [[nodiscard]] PortIndex port_index(End end) const {
        return first_port_[end.node] + (end.port - 1U);
    }
    [[nodiscard]] PortLane on(PortIndex port, VirtualLane lane) const {
        return PortLane(port.value() * lanes_ + lane.value());
    }
    [[nodiscard]] bool is_host(NodeIndex node) const { return node.value() < hosts_; }
    [[nodiscard]] std::size_t queue_number(PortIndex input, VirtualLane lane,
                                           std::uint32_t output) const {
        const NodeIndex node = outputs_[input].node;
        return first_queue_[input] + lane.value() * lane_stride_[node] + output * by_output_;
    }
    [[nodiscard]] PacketQueue& queue(PortIndex input, VirtualLane lane, std::uint32_t output) {
        return queues_[queue_number(input, lane, output)];
    }
    [[nodiscard]] const PacketQueue& queue(PortIndex input, VirtualLane lane,
                                           std::uint32_t output) const {
        return queues_[queue_number(input, lane, output)];
    }
    /// The port (counted from 0) by which a node forwards to a destination; kNoPlace without route.
    [[nodiscard]] std::uint32_t route(NodeIndex node, NodeIndex destination) const {
        return is_host(node)
                   ? 0
                   : forwarding_[std::size_t{node.value() - hosts_} * hosts_ + destination.value()];
    }

    void touch(PortIndex output) {
        const Output& out = outputs_[output];
        if (dirty_.empty(out.node)) {
            touched_.push_back(out.node);
        }
        dirty_.add(out.node, out.place);
    }

    template <class Hosts>
    void arbitrate(NodeIndex node, base::Time now, Hosts& hosts);
    template <class Hosts>
    void match(NodeIndex node, base::Time now, Hosts& hosts);
    bool review(NodeIndex node, base::Time now);
    bool grant(NodeIndex node, base::Time now);
    void retry(NodeIndex node);
    bool takes_packets(PortIndex output, base::Time now);
    [[nodiscard]] Choice choose(PortIndex output, base::Time now) const;
    template <class Hosts>
    void serve(PortIndex output, base::Time now, Hosts& hosts);
    template <class Hosts>
    void send(PortIndex output, PortIndex input, VirtualLane lane, base::Time now, Hosts& hosts);
    base::Time begin_on_wire(PortIndex output, PacketIndex place, base::Time now);
    void drop(PortIndex output, PacketIndex place);
    void cut(PortIndex output, PacketIndex place);
    void plan_changes(const FabricConfig& config);
    void on_change(std::uint32_t index);
    void apply(const LinkChange& change);
    void set_state(PortIndex output, LinkState state, base::Time now);
    void set_forwarding(const std::vector<network::Route>& routes);
    void enter(PortIndex input, PacketIndex place, base::Time begin, const Output& wire);
    void discard(PortIndex input, PacketIndex place, base::Time head, const Output& wire);
    void await(PortIndex output, PortIndex input, const Packet& first, base::Time now);
    void forget(PortIndex output, PortIndex input, VirtualLane lane);
    void pop(PacketQueue& from, PortIndex output, PortIndex input, VirtualLane lane,
             base::Time now);
    void begin_lifetime(PortIndex output, PortIndex input, const Packet& first, base::Time now);
    void set_lifetime_timer(std::size_t queue, PortIndex input, VirtualLane lane,
                            std::uint32_t place);
    void on_lifetime(PortIndex input, VirtualLane lane, std::uint32_t place, base::Time now);
    void touch_requested(PortIndex input, base::Time now);
    [[nodiscard]] bool offers_now(PortIndex output, PortIndex input, base::Time now) const;
    void send_update(PortIndex output, base::Time now);
    void release(PortIndex input, VirtualLane lane, std::int64_t blocks, std::uint32_t drain,
                 base::Time now);
    void begin_drain(PortIndex input, const Drain& drain, base::Time now);
    void request_update(PortIndex input, VirtualLane lane, base::Time now);
    bool lose_update(PortIndex output, VirtualLane lane, std::int64_t blocks);
    void set_timer(PortIndex input, VirtualLane lane, base::Time at);
    void on_timer(PortIndex input, VirtualLane lane, base::Time now);
    void wait_for(PortIndex output, PortWait what, LaneSet lanes, base::Time now);

    [[nodiscard]] std::int64_t freed(PortIndex input, VirtualLane lane, base::Time now) const {
        const std::int64_t whole = accounts_[on(input, lane)].freed;
        return per_block_ ? whole + drains_[input].freed(lane, now) : whole;
    }

    sim::EventQueue& events_;
    std::uint32_t hosts_;
    std::uint32_t lanes_;
    std::uint32_t speedup_;
    std::uint32_t iterations_;  ///< iterations of iSLIP; 0: outputs choose in turn
    bool per_block_;
    bool hosts_hold_ = false;
    std::uint32_t by_output_;  ///< 1: a queue for each output, 0: one for all
    std::int64_t buffer_blocks_;
    base::Time latency_;
    base::Time update_interval_;
    base::Bytes update_bytes_;
    base::Time lifetime_;

    // ---- by node

    base::Table<NodeIndex, PortIndex> first_port_;
    base::Table<NodeIndex, std::uint32_t> ports_;
    base::Table<NodeIndex, std::uint32_t> lane_stride_;
    base::Table<NodeIndex, std::uint32_t> turn_;  ///< packets sent, modulo ports
    std::vector<std::uint32_t> forwarding_;

    // ---- by port

    base::Table<PortIndex, Output> outputs_;
    base::Table<PortIndex, LaneArbiter> arbiters_;
    base::Table<PortIndex, std::size_t> first_queue_;
    base::Table<PortIndex, std::uint32_t> active_;  ///< packets that an input is sending
    base::Table<PortIndex, Drains> drains_;
    PortSets<PortIndex> requested_;  ///< outputs that the first packets of an input are for

    // ---- by port and virtual lane

    base::Table<PortLane, std::int64_t> credits_;
    base::Table<PortLane, std::int64_t> returning_;  ///< credits on their way to an output
    base::Table<PortLane, std::uint32_t> served_;    ///< the input served last
    base::Table<PortLane, CreditAccount> accounts_;
    base::Table<PortLane, LaneCounters> lane_counters_;
    PortSets<PortLane> offers_;  ///< inputs that have a first packet for an output

    std::vector<PacketQueue> queues_;
    std::vector<Lifetime> lifetimes_;  ///< by queue; empty without a limit
    PacketStore packets_;
    PortSets<NodeIndex> dirty_;  ///< outputs to be reviewed
    std::vector<NodeIndex> touched_;

    // ---- iSLIP; empty otherwise

    Islip islip_;
    PortSets<NodeIndex> able_;      ///< outputs that could send, but that no input chose
    std::vector<LaneSet> granted_;  ///< by place of an output: lanes to choose from

    // ---- changes during the run; empty otherwise

    std::vector<LinkChange> changes_;
    std::vector<network::Rerouting> reroutings_;
    std::vector<PortIndex> links_;  ///< the output of each link
    base::Table<PortIndex, Wire> wires_;
    base::RandomStream errors_;

    std::uint64_t injected_ = 0;
    std::uint64_t delivered_ = 0;
    std::uint64_t discarded_ = 0;
    std::uint64_t unrouted_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t bad_ = 0;
    std::uint64_t packet_hops_ = 0;
};

template <class Hosts>
void Network::on_event(const sim::Event& event, Hosts& hosts) {
    const PortIndex port(event.index);
    const PacketIndex place(event.index);
    switch (event.kind & kKindMask) {
        case kTry: {
            Output& out = outputs_[port];
            out.awaits_update = false;
            touch(port);
            break;
        }
        case kTail: {
            Output& out = outputs_[port];
            out.sending = false;
            if (!is_host(out.node)) {
                if (active_[out.input]-- == speedup_) {
                    touch_requested(out.input, event.at);
                    retry(out.node);
                }
                release(out.input, out.lane, out.blocks, port.value(), event.at);
            }
            if ((out.requested | out.due) != 0) {
                touch(port);
            }
            break;
        }
        case kCredits: {
            const auto lane = lane_of(event);
            const std::int64_t blocks = more_of(event);
            returning_[on(port, lane)] -= blocks;
            if (!wires_.empty() && lose_update(port, lane, blocks)) [[unlikely]] {
                break;
            }
            credits_[on(port, lane)] += blocks;
            if (holds(outputs_[port].requested, lane)) {
                touch(port);
            }
            break;
        }
        case kUpdate:
            on_timer(port, lane_of(event), event.at);
            break;
        case kArrived:
            if constexpr (requires { hosts.receive(packets_[place], event.at); }) {
                if (hosts_hold_ && is_host(outputs_[packets_[place].end].node) &&
                    !packets_[place].is_bad) {
                    const base::Time at = hosts.receive(packets_[place], event.at);
                    events_.push({at, kReceived, place.value()});
                    break;
                }
            }
            [[fallthrough]];
        case kReceived: {
            const Packet packet = packets_[place];
            release(packet.end, packet.lane, packet.blocks, place.value() | kEnds, event.at);
            packets_.release(place);
            if (packet.is_bad) [[unlikely]] {
                ++bad_;
            } else if (packet.end == first_port_[packet.destination]) {
                ++delivered_;
                hosts.on_delivered(packet, event.at);
            } else {
                ++discarded_;
            }
            break;
        }
        case kLifetimeOver:
            on_lifetime(port, lane_of(event), more_of(event), event.at);
            break;
        case kChange:
            on_change(event.index);
            break;
        default:
            break;
    }
}

/// Removes the first packet, which was for `output`, from a queue.
inline void Network::pop(PacketQueue& from, PortIndex output, PortIndex input, VirtualLane lane,
                         base::Time now) {
    from.pop(packets_);
    if (from.empty()) {
        forget(output, input, lane);
        return;
    }
    const NodeIndex node = outputs_[output].node;
    const Packet& next = packets_[from.first];
    const PortIndex to = first_port_[node] + next.place;
    if (to != output) {
        forget(output, input, lane);
    }
    await(to, input, next, now);
}

template <class Hosts>
void Network::arbitrate(NodeIndex node, base::Time now, Hosts& hosts) {
    const PortIndex first = first_port_[node];
    while (!dirty_.empty(node)) {
        const std::uint32_t begin = turn_[node];
        for (std::uint32_t p = dirty_.next(node, begin); p != kNoPlace;
             p = dirty_.next(node, p + 1)) {
            dirty_.remove(node, p);
            serve(first + p, now, hosts);
        }
        for (std::uint32_t p = dirty_.next(node, 0); p < begin; p = dirty_.next(node, p + 1)) {
            dirty_.remove(node, p);
            serve(first + p, now, hosts);
        }
    }
}

/// Matches outputs and inputs by iSLIP (islip.hpp), among all outputs that can send at this
/// instant. A matching is made if an output has become able to send, or a busy input can send
/// again; and once more if the packets behind those just matched make another output able to send.
template <class Hosts>
void Network::match(NodeIndex node, base::Time now, Hosts& hosts) {
    const PortIndex first_port = first_port_[node];
    while (review(node, now)) {
        for (std::uint32_t i = 0; i < iterations_ && grant(node, now); ++i) {
            islip_.accept(node, first_port, i == 0, [&](PortIndex input, std::uint32_t place) {
                if (active_[input] == speedup_) {
                    return false;
                }
                const PortIndex output = first_port + place;
                const VirtualLane lane = arbiters_[output].pick(granted_[place]);
                if (i == 0) {
                    served_[on(output, lane)] = outputs_[input].place;
                }
                able_.remove(node, place);
                send(output, input, lane, now, hosts);
                return true;
            });
        }
    }
    dirty_.clear(node);
}

/// Includes the outputs that a matching has left without a packet in the next matching.
inline void Network::retry(NodeIndex node) {
    able_.each(node, [&](std::uint32_t place) { touch(first_port_[node] + place); });
    able_.clear(node);
}

/// Whether the output is idle and sends a packet next; a credit update that is due is sent first.
inline bool Network::takes_packets(PortIndex output, base::Time now) {
    Output& out = outputs_[output];
    if (out.sending || out.state == LinkState::dark) {
        return false;
    }
    if (out.state == LinkState::down) [[unlikely]] {
        out.due = 0;  // until it is up
    }
    if (now < out.free_at || out.due != 0) {
        wait_for(output, PortWait::nothing, 0, now);
        if (now >= out.free_at) {
            send_update(output, now);
        }
        if ((out.requested | out.due) != 0 && !out.awaits_update) {
            out.awaits_update = true;
            events_.push({out.free_at, kTry, output.value()});
        }
        return false;
    }
    return true;
}

inline Network::Choice Network::choose(PortIndex output, base::Time now) const {
    const Output& out = outputs_[output];
    Choice choice;
    const bool host = is_host(out.node);
    const PortIndex first = first_port_[out.node];
    for (LaneSet left = out.requested & arbiters_[output].lanes(); left != 0; left &= left - 1) {
        const auto lane = first_of(left);
        const PortLane both = on(output, lane);
        const std::int64_t credits = credits_[both];
        // Round robin: first the inputs behind the one served last, then the inputs up to that one.
        const std::uint32_t begin = served_[both] + 1;
        bool wrapped = false;
        for (std::uint32_t i = offers_.next(both, begin);; i = offers_.next(both, i + 1)) {
            if (i == kNoPlace && !wrapped) {
                wrapped = true;
                i = offers_.next(both, 0);
            }
            if (i == kNoPlace || (wrapped && i >= begin)) {
                break;
            }
            const Packet& packet = packets_[queue(first + i, lane, out.place).first];
            if (packet.ready > now) {
                continue;
            }
            choice.waiting_lanes |= only(lane);
            if (!host && active_[first + i] == speedup_) {
                choice.waiting =
                    choice.waiting == PortWait::nothing ? PortWait::crossbar : choice.waiting;
            } else if (packet.blocks > credits) {
                choice.waiting = PortWait::credits;
            } else {
                choice.candidates |= only(lane);
                choice.inputs[lane.value()] = first + i;
                break;
            }
        }
    }
    return choice;
}

template <class Hosts>
void Network::serve(PortIndex output, base::Time now, Hosts& hosts) {
    if (!takes_packets(output, now)) {
        return;
    }
    const Choice choice = choose(output, now);
    if (choice.candidates == 0) {
        wait_for(output, choice.waiting, choice.waiting_lanes, now);
        return;
    }
    const VirtualLane lane = arbiters_[output].pick(choice.candidates);
    const PortIndex input = choice.inputs[lane.value()];
    served_[on(output, lane)] = outputs_[input].place;
    send(output, input, lane, now, hosts);
}

template <class Hosts>
void Network::send(PortIndex output, PortIndex input, VirtualLane lane, base::Time now,
                   Hosts& hosts) {
    Output& out = outputs_[output];
    PacketQueue& from = queue(input, lane, out.place);
    const PacketIndex place = from.first;
    const Packet packet = packets_[place];
    const PortLane both = on(output, lane);

    wait_for(output, PortWait::nothing, 0, now);
    const base::Time begin = wires_.empty() ? now : begin_on_wire(output, place, now);
    out.sending = true;
    out.free_at = begin + out.clock(packet.bytes);
    out.input = input;
    out.lane = lane;
    out.blocks = packet.blocks;
    arbiters_[output].sent(packet.bytes, packet.blocks);
    turn_[out.node] = turn_[out.node] + 1 == ports_[out.node] ? 0 : turn_[out.node] + 1;
    events_.push({out.free_at, kTail, output.value()});

    pop(from, output, input, lane, now);
    if (!is_host(out.node)) {
        if (per_block_) {
            begin_drain(input, {begin, out.clock, output.value(), packet.bytes, lane}, now);
        }
        if (++active_[input] == speedup_) {
            touch_requested(input, now);
        }
    }
    if (out.state == LinkState::down) [[unlikely]] {
        drop(output, place);
    } else {
        ++out.counters.packets;
        out.counters.bytes += packet.bytes;
        lane_counters_[both].bytes += packet.bytes;
        ++packet_hops_;
        credits_[both] -= packet.blocks;
        enter(out.peer, place, begin, out);
    }
    if (is_host(out.node)) {
        hosts.on_departure(out.node, packet, now);
    }
}

}  // namespace daqloom::infiniband
