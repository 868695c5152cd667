// The rules of the InfiniBand model, simulated flit by flit: slow and plain, for tests only.
//
// Every flit that leaves or arrives, every block that is freed and every credit that arrives is a
// separate change at its own instant. The engine is compared with this reference.
#pragma once

#include <functional>
#include <tuple>
#include <utility>

#include "infiniband/flit_state_test.hpp"

namespace daqloom::infiniband::reference {

/// A packet handed to its source host. A host sends in order of time, and of index at equal times.
struct Injection {
    base::Time at;
    NodeIndex source = 0;
    NodeIndex destination = 0;
    base::Bytes bytes = 0;  ///< on the wire, headers included
    VirtualLane lane = 0;
};

struct Delivery {
    bool delivered = false;
    base::Time at;  ///< when its last flit arrived at the destination
};

struct Outcome {
    std::vector<Delivery> packets;  ///< in the order of the injections
    std::map<std::pair<NodeIndex, PortNumber>, OutputCounters> outputs;  ///< of all cabled ports
    std::uint64_t discarded = 0;  ///< without route, routed to another host, or too long first
    bool stalled = false;         ///< packets are left that can never move
    base::Time end;               ///< of the last change of anything
};

namespace detail {

class Simulation {
  public:
    Simulation(const FabricConfig& config, const std::vector<Injection>& injections)
        : config_(config), injections_(injections), finished_(injections.size(), false) {
        for (NodeIndex host = 0; host < config.hosts; ++host) {
            nodes_.emplace_back(1, config.lanes);
        }
        for (const PortNumber ports : config.switch_ports) {
            nodes_.emplace_back(ports, config.lanes);
        }
        for (const Cable& cable : config.cables) {
            Link& there = links_.emplace_back(cable.a, cable.b, cable, config);
            Link& back = links_.emplace_back(cable.b, cable.a, cable, config);
            there.reverse = &back;
            back.reverse = &there;
            for (Link* link : {&there, &back}) {
                Link*& output = nodes_.at(link->from.node).outputs.at(link->from.port);
                require(output == nullptr && link->from.port != 0, "a port has one cable");
                output = link;
            }
        }
        outcome_.packets.resize(injections.size());
    }

    Outcome run() {
        for (std::size_t packet = 0; packet < injections_.size(); ++packet) {
            at(injections_[packet].at, injections_[packet].source, [=, this] { inject(packet); });
        }
        while (!agenda_.empty()) {
            const auto instant = agenda_.extract(agenda_.begin());
            pass_time_until(instant.key());
            std::set<NodeIndex> changed;
            for (const Change& change : instant.mapped()) {
                change.happen();
                changed.insert(change.node);
            }
            for (const NodeIndex node : changed) {
                arbitrate(node);
                classify_waits(node);
            }
            check_blocks();
        }
        conclude();
        return outcome_;
    }

  private:
    /// A change at one node at one instant, after which the node arbitrates.
    struct Change {
        NodeIndex node;
        std::function<void()> happen;
    };

    void at(base::Time when, NodeIndex node, std::function<void()> happen) {
        require(when >= now_, "nothing happens in the past");
        agenda_[when].push_back({node, std::move(happen)});
    }
    /// Makes a node arbitrate at `when`, because time alone makes something possible.
    void look_again(base::Time when, NodeIndex node) {
        at(when, node, [] {});
    }

    [[nodiscard]] bool is_host(NodeIndex node) const { return node < config_.hosts; }
    [[nodiscard]] base::Bytes length(const Passage& passage) const {
        return injections_[passage.packet].bytes;
    }
    [[nodiscard]] VirtualLane lane(const Passage& passage) const {
        return injections_[passage.packet].lane;
    }
    [[nodiscard]] std::int64_t flits(const Passage& passage) const {
        return (length(passage) + kBlockBytes - 1) / kBlockBytes;
    }
    /// Bytes of the packet up to the end of this flit.
    [[nodiscard]] base::Bytes end_of(const Passage& passage, std::int64_t flit) const {
        return std::min(kBlockBytes * (flit + 1), length(passage));
    }

    std::deque<PassagePointer>& queue(NodeIndex node, PortNumber input, VirtualLane lane,
                                      PortNumber output) {
        const bool fifo = is_host(node) || config_.input_queue == InputQueue::fifo;
        return nodes_[node].inputs[input].queues[lane][fifo ? 0 : output];
    }

    // Packets come in.

    void inject(std::size_t packet) {
        const Injection& injection = injections_[packet];
        require(is_host(injection.source) && is_host(injection.destination) &&
                    injection.bytes >= 1 && injection.lane < config_.lanes,
                "a packet goes from host to host, of a byte or more, on a lane that exists");
        auto passage = std::make_shared<Passage>();
        passage->packet = packet;
        passage->output = 1;
        passage->ready = now_;
        queue(injection.source, 1, injection.lane, 1).push_back(passage);
        started_[flow(packet)].push_back(packet);
    }

    void flit_arrives(Link& link, const PassagePointer& passage, std::int64_t flit) {
        require(passage->arrived == flit && passage->arrival[flit] == now_,
                "flits arrive one after the other, when they must");
        ++passage->arrived;
        Blocks& blocks = link.blocks[lane(*passage)];
        --blocks.on_wire;
        ++blocks.held;
        if (is_host(link.to.node)) {
            consume(link, *passage, flit);
        } else if (flit == 0) {
            enter_switch(link, passage);
        }
    }

    void consume(Link& link, const Passage& passage, std::int64_t flit) {
        const bool last = flit == flits(passage) - 1;
        if (config_.credit_release == CreditRelease::per_block) {
            release(link, lane(passage), 1);
        } else if (last) {
            release(link, lane(passage), flits(passage));
        }
        if (last) {
            const bool right = injections_[passage.packet].destination == link.to.node;
            right ? deliver(passage.packet) : discard(passage.packet);
        }
    }

    void enter_switch(Link& link, const PassagePointer& passage) {
        const NodeIndex node = link.to.node;
        passage->output = route(node, injections_[passage->packet].destination);
        const Link* output = passage->output < nodes_[node].outputs.size()
                                 ? nodes_[node].outputs[passage->output]
                                 : nullptr;
        if (output == nullptr) {
            discard(passage->packet);
            release_as_it_leaves(link, passage, link.clock);
            return;
        }
        const std::int64_t last = flits(*passage) - 1;
        base::Time in_time = now_;  // for the first flit, the last full one and the last one
        for (const std::int64_t flit : {std::max<std::int64_t>(last - 1, 0), last}) {
            in_time = std::max(in_time, passage->arrival[flit] - output->clock(kBlockBytes * flit));
        }
        passage->ready = in_time + config_.switch_latency;
        look_again(passage->ready, node);
        auto& waiting = queue(node, link.to.port, lane(*passage), passage->output);
        waiting.push_back(passage);
        if (waiting.size() == 1) {
            become_first(link, waiting);
        }
    }

    /// Starts the lifetime of the packet at the head of a switch's queue.
    void become_first(Link& input, std::deque<PassagePointer>& waiting) {
        if (config_.head_of_queue_lifetime == base::Time::zero()) {
            return;
        }
        const PassagePointer first = waiting.front();
        const base::Time end = std::max(now_, first->ready) + config_.head_of_queue_lifetime;
        at(end, input.to.node, [this, first, &input, &waiting] {
            if (!waiting.empty() && waiting.front() == first) {
                expire(input, waiting);
            }
        });
    }

    void expire(Link& input, std::deque<PassagePointer>& waiting) {
        const PassagePointer passage = waiting.front();
        waiting.pop_front();
        ++nodes_[input.to.node].outputs[passage->output]->counters.discards;
        discard(passage->packet);
        release_as_it_leaves(input, passage, input.clock);
        if (!waiting.empty()) {
            become_first(input, waiting);
        }
    }

    [[nodiscard]] PortNumber route(NodeIndex node, NodeIndex destination) const {
        return config_.forwarding.at(std::size_t{node - config_.hosts} * config_.hosts +
                                     destination);
    }

    /// Frees the buffer at the end of `input` while the packet leaves it from now on, at `clock`.
    void release_as_it_leaves(Link& input, const PassagePointer& passage, base::WireClock clock) {
        const NodeIndex node = input.to.node;
        if (config_.credit_release == CreditRelease::at_tail) {
            at(now_ + clock(length(*passage)), node,
               [=, this, &input] { release(input, lane(*passage), flits(*passage)); });
            return;
        }
        for (std::int64_t flit = 0; flit < flits(*passage); ++flit) {
            at(now_ + clock(end_of(*passage, flit)), node, [=, this, &input] {
                require(passage->arrived > flit, "a block is freed after its flit has arrived");
                release(input, lane(*passage), 1);
            });
        }
    }

    void release(Link& input, VirtualLane lane, std::int64_t count) {
        Blocks& blocks = input.blocks[lane];
        blocks.held -= count;
        blocks.unannounced += count;
        if (blocks.next_update > now_) {
            look_again(blocks.next_update, input.to.node);
        }
    }

    // Packets come to an end.

    [[nodiscard]] std::tuple<NodeIndex, NodeIndex, VirtualLane> flow(std::size_t packet) const {
        const Injection& injection = injections_[packet];
        return {injection.source, injection.destination, injection.lane};
    }

    void deliver(std::size_t packet) {
        require(started_[flow(packet)].front() == packet,
                "packets of a source, destination and lane keep their order");
        outcome_.packets[packet] = {true, now_};
        finish(packet);
    }

    void discard(std::size_t packet) {
        ++outcome_.discarded;
        finish(packet);
    }

    void finish(std::size_t packet) {
        std::deque<std::size_t>& order = started_[flow(packet)];
        const auto place = std::find(order.begin(), order.end(), packet);
        require(place != order.end(), "a packet comes to one end");
        order.erase(place);
        finished_[packet] = true;
    }

    // Packets and credit updates go out.

    void arbitrate(NodeIndex index) {
        Node& node = nodes_[index];
        if (config_.crossbar_arbiter == CrossbarArbiter::islip && !is_host(index)) {
            send_updates(node);
            match_as_long_as_there_is_more(node);
            return;
        }
        for (bool sent_something = true; sent_something;) {
            sent_something = false;
            const std::uint64_t first = node.sent % node.ports();
            for (std::uint64_t step = 0; step < node.ports(); ++step) {
                Link* output = node.outputs[1 + (first + step) % node.ports()];
                if (output != nullptr && output->busy_until <= now_) {
                    sent_something |= send_update(*output) || send_packet(*output);
                }
            }
        }
    }

    void send_updates(Node& node) {
        for (Link* output : node.outputs) {
            if (output != nullptr && output->busy_until <= now_) {
                send_update(*output);
            }
        }
    }

    /// Ports whose output is idle and could send a packet now.
    std::set<PortNumber> able_outputs(Node& node) {
        std::set<PortNumber> able;
        for (PortNumber port = 1; port <= node.ports(); ++port) {
            Link* output = node.outputs[port];
            if (output != nullptr && output->busy_until <= now_ &&
                output->arbiter.open(able_lanes(*output))) {
                able.insert(port);
            }
        }
        return able;
    }

    /// Matches if an output has become able to send, and again if the packets behind the matched
    /// ones make an output able to send.
    void match_as_long_as_there_is_more(Node& node) {
        for (;;) {
            const std::set<PortNumber> before = std::exchange(node.left_over, able_outputs(node));
            if (std::ranges::includes(before, node.left_over)) {
                return;
            }
            match(node, node.left_over);
            std::erase_if(node.left_over,
                          [&](PortNumber port) { return node.outputs[port]->busy_until > now_; });
        }
    }

    /// Runs one matching by iSLIP (McKeown 1999, section II) among these outputs.
    void match(Node& node, const std::set<PortNumber>& all) {
        for (std::uint32_t iteration = 1; iteration <= config_.crossbar_iterations; ++iteration) {
            // Grant: for each input, the outputs that chose it, and for which lanes they did so.
            std::map<PortNumber, std::map<PortNumber, Lanes>> grants;
            for (const PortNumber port : able_outputs(node)) {
                if (!all.contains(port)) {
                    continue;
                }
                Link& output = *node.outputs[port];
                const Lanes lanes = able_lanes(output);
                LaneArbiter undecided = output.arbiter;
                grants[next_input(output, undecided.choose(lanes))][port] = lanes;
            }
            // Accept: inputs accept as many grants as their speedup allows, behind their pointers.
            for (auto& [port, granted] : grants) {
                Input& input = node.inputs[port];
                const PortNumber last = input.last_output;
                for (PortNumber step = 1; step <= node.ports(); ++step) {
                    const auto to = static_cast<PortNumber>(1 + (last + step - 1) % node.ports());
                    if (granted.contains(to) && input.sending < config_.crossbar_speedup) {
                        Link& output = *node.outputs[to];
                        const VirtualLane lane = output.arbiter.choose(granted[to]);
                        if (iteration == 1) {
                            output.last_input[lane] = port;
                            input.last_output = to;
                        }
                        send_first(output, port, lane);
                    }
                }
            }
        }
    }

    /// Sends a credit update for the first lane with an update that is due.
    bool send_update(Link& output) {
        for (Blocks& blocks : output.reverse->blocks) {
            if (blocks.unannounced == 0 || blocks.next_update > now_) {
                continue;
            }
            const std::int64_t count = std::exchange(blocks.unannounced, 0);
            blocks.announced += count;
            blocks.next_update = now_ + config_.credit_update_interval;
            output.busy_until = now_ + output.clock(config_.credit_update_bytes);
            look_again(output.busy_until, output.from.node);
            at(output.busy_until + output.delay, output.to.node, [count, &blocks] {
                blocks.announced -= count;
                blocks.credits += count;
            });
            return true;
        }
        return false;
    }

    bool send_packet(Link& output) {
        const Lanes lanes = able_lanes(output);
        if (!output.arbiter.open(lanes)) {
            return false;
        }
        const VirtualLane lane = output.arbiter.choose(lanes);
        const PortNumber input = next_input(output, lane);
        output.last_input[lane] = input;
        send_first(output, input, lane);
        return true;
    }

    /// Lanes of which some input could send a packet.
    Lanes able_lanes(Link& output) {
        Lanes lanes;
        for (VirtualLane lane = 0; lane < config_.lanes; ++lane) {
            if (next_input(output, lane) != 0) {
                lanes.insert(lane);
            }
        }
        return lanes;
    }

    void send_first(Link& output, PortNumber input, VirtualLane lane) {
        std::deque<PassagePointer>& waiting =
            queue(output.from.node, input, lane, output.from.port);
        const PassagePointer passage = waiting.front();
        waiting.pop_front();
        if (!is_host(output.from.node) && !waiting.empty()) {
            become_first(*nodes_[output.from.node].outputs[input]->reverse, waiting);
        }
        output.arbiter.sent(flits(*passage), length(*passage));
        transmit(output, input, passage);
    }

    /// The input that is to send on this lane; 0: none can.
    PortNumber next_input(Link& output, VirtualLane lane) {
        const PortNumber ports = nodes_[output.from.node].ports();
        for (PortNumber step = 0; step < ports; ++step) {
            const auto input =
                static_cast<PortNumber>(1 + (output.last_input[lane] + step) % ports);
            const Passage* first = first_ready(output, input, lane);
            if (first != nullptr && crossbar_free(output.from.node, input) &&
                output.blocks[lane].credits >= flits(*first)) {
                return input;
            }
        }
        return 0;
    }

    /// The packet at the head of the input's queue, if the packet is ready and for this output.
    const Passage* first_ready(const Link& output, PortNumber input, VirtualLane lane) {
        const auto& waiting = queue(output.from.node, input, lane, output.from.port);
        if (waiting.empty() || waiting.front()->output != output.from.port ||
            waiting.front()->ready > now_) {
            return nullptr;
        }
        return waiting.front().get();
    }

    [[nodiscard]] bool crossbar_free(NodeIndex node, PortNumber input) const {
        return is_host(node) || nodes_[node].inputs[input].sending < config_.crossbar_speedup;
    }

    void transmit(Link& output, PortNumber input_port, const PassagePointer& passage) {
        const NodeIndex node = output.from.node;
        const base::Time start = now_;
        const base::Bytes bytes = length(*passage);

        require(output.busy_until <= now_, "an output sends one thing at a time");
        output.busy_until = start + output.clock(bytes);
        output.counters.packets += 1;
        output.counters.bytes += bytes;
        output.counters.lane_bytes[lane(*passage)] += bytes;
        nodes_[node].sent += 1;

        Blocks& blocks = output.blocks[lane(*passage)];
        blocks.credits -= flits(*passage);
        blocks.on_wire += flits(*passage);

        auto next = std::make_shared<Passage>();
        next->packet = passage->packet;
        for (std::int64_t flit = 0; flit < flits(*passage); ++flit) {
            const base::Time left = start + output.clock(end_of(*passage, flit));
            next->arrival.push_back(left + output.delay);
            at(left, node, [=, this, &output] { flit_leaves(output, *passage, flit, start); });
            at(left + output.delay, output.to.node,
               [=, this, &output] { flit_arrives(output, next, flit); });
        }

        Input& input = nodes_[node].inputs[input_port];
        input.sending += 1;
        require(is_host(node) || input.sending <= config_.crossbar_speedup,
                "an input has so many ways into the crossbar");
        at(output.busy_until, node, [=, this, &input] {
            if (input.sending-- == config_.crossbar_speedup) {
                nodes_[node].left_over.clear();  // a busy input is free: all take part again
            }
        });
        if (!is_host(node)) {
            release_as_it_leaves(*nodes_[node].outputs[input_port]->reverse, passage, output.clock);
        }
    }

    /// Checks that a flit which leaves has been at the switch for the switch's latency.
    void flit_leaves(const Link& output, const Passage& passage, std::int64_t flit,
                     base::Time start) {
        if (is_host(output.from.node)) {
            return;
        }
        require(passage.arrived > flit, "a flit leaves after it has arrived");
        const base::Time began = start + output.clock(kBlockBytes * flit);
        const base::Time rounding{2};
        require(began + rounding >= passage.arrival[flit] + config_.switch_latency,
                "a flit leaves when the switch's latency is over, or later");
    }

    // Time passes.

    void pass_time_until(base::Time instant) {
        for (Link& link : links_) {
            if (link.wait == Wait::credits) {
                link.counters.wait_credits += instant - now_;
            } else if (link.wait == Wait::crossbar) {
                link.counters.wait_crossbar += instant - now_;
            }
            for (VirtualLane lane = 0; lane < config_.lanes; ++lane) {
                if (link.wait != Wait::nothing && has_ready(link, lane)) {
                    link.counters.lane_wait[lane] += instant - now_;
                }
            }
        }
        now_ = instant;
    }

    void classify_waits(NodeIndex node) {
        for (Link* output : nodes_[node].outputs) {
            if (output != nullptr) {
                output->wait = output->busy_until > now_ ? Wait::nothing : wait_of_idle(*output);
            }
        }
    }

    Wait wait_of_idle(const Link& output) {
        if (nodes_[output.from.node].left_over.contains(output.from.port)) {
            return Wait::crossbar;
        }
        Wait wait = Wait::nothing;
        for (PortNumber input = 1; input <= nodes_[output.from.node].ports(); ++input) {
            for (VirtualLane lane = 0; lane < config_.lanes; ++lane) {
                const Passage* first = first_ready(output, input, lane);
                if (first == nullptr) {
                    continue;
                }
                if (!crossbar_free(output.from.node, input)) {
                    wait = Wait::crossbar;
                } else if (output.blocks[lane].credits < flits(*first)) {
                    return Wait::credits;
                }
            }
        }
        return wait;
    }

    /// Whether a packet of the lane is there, and the lane is in a table of arbitration.
    bool has_ready(const Link& output, VirtualLane lane) {
        const auto serves = [&](const LaneWeight& entry) {
            return entry.lane.value() == lane && entry.weight > 0;
        };
        const LaneArbitration& tables = config_.arbitration;
        if (std::ranges::none_of(tables.high, serves) && std::ranges::none_of(tables.low, serves)) {
            return false;
        }
        for (PortNumber input = 1; input <= nodes_[output.from.node].ports(); ++input) {
            if (first_ready(output, input, lane) != nullptr) {
                return true;
            }
        }
        return false;
    }

    void check_blocks() const {
        for (const Link& link : links_) {
            for (const Blocks& b : link.blocks) {
                require(b.credits >= 0, "credits are never negative");
                require(b.on_wire >= 0 && b.held >= 0 && b.unannounced >= 0 && b.announced >= 0,
                        "there are no negative blocks");
                require(b.held <= config_.buffer_blocks, "no buffer holds more than it can");
                require(b.credits + b.on_wire + b.held + b.unannounced + b.announced ==
                            config_.buffer_blocks,
                        "no block gets lost");
            }
        }
    }

    void conclude() {
        outcome_.end = now_;
        outcome_.stalled = std::find(finished_.begin(), finished_.end(), false) != finished_.end();
        for (const Link& link : links_) {
            outcome_.outputs[{link.from.node, link.from.port}] = link.counters;
            for (const Blocks& b : link.blocks) {
                require(b.on_wire + b.unannounced + b.announced == 0,
                        "when all is quiet, every free block is known to the sender");
                require(outcome_.stalled || b.held == 0, "buffers are empty at the end");
            }
        }
    }

    const FabricConfig& config_;
    const std::vector<Injection>& injections_;
    std::deque<Link> links_;
    std::vector<Node> nodes_;
    base::Time now_;
    std::map<base::Time, std::vector<Change>> agenda_;
    /// Packets under way by flow (source, destination, lane), in the order of injection.
    std::map<std::tuple<NodeIndex, NodeIndex, VirtualLane>, std::deque<std::size_t>> started_;
    std::vector<bool> finished_;
    Outcome outcome_;
};

}  // namespace detail

/// Runs until no event is left. The configuration must be valid, the injections' times 0 or later,
/// and routes free of loops (a packet would circle for ever). Aborts with a message if an invariant
/// of the simulation is violated.
inline Outcome run(const FabricConfig& config, const std::vector<Injection>& injections) {
    return detail::Simulation(config, injections).run();
}

}  // namespace daqloom::infiniband::reference
