// State of a fabric in the flit-by-flit simulator: links with their credits, the packets that wait
// at ports, and the state of lane arbitration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband::reference {

/// Plain numbers, so that the reference shares only the configuration with the engine.
using NodeIndex = std::uint32_t;
using VirtualLane = std::uint8_t;

struct PlainEnd {
    explicit PlainEnd(End end) : node(end.node.value()), port(end.port) {}

    NodeIndex node;
    PortNumber port;
};

/// Counters of one end of a cable: packets, bytes, and time idle while packets waited.
struct OutputCounters {
    std::uint64_t packets = 0;
    std::int64_t bytes = 0;  ///< of packets; credit updates do not count
    base::Time wait_credits;
    base::Time wait_crossbar;
    std::uint64_t discards = 0;  ///< packets that were first of their queue for too long
    std::map<VirtualLane, std::int64_t> lane_bytes;
    std::map<VirtualLane, base::Time> lane_wait;  ///< while the end stands idle
};

namespace detail {

inline void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "flit reference: %s\n", what);
        std::abort();
    }
}

using Lanes = std::set<VirtualLane>;

/// One table of lane arbitration: the entry that has the turn and the blocks left in the turn.
struct LaneTable {
    explicit LaneTable(const std::vector<LaneWeight>& table)
        : entries(table), current(table.empty() ? 0 : table.size() - 1) {}

    [[nodiscard]] bool open(const Lanes& candidates) const {
        return std::any_of(entries.begin(), entries.end(), [&](const LaneWeight& entry) {
            return entry.weight > 0 && candidates.contains(entry.lane.value());
        });
    }

    /// Gives the turn to a candidate; the table must be open for one of the candidates.
    VirtualLane choose(const Lanes& candidates) {
        if (rest > 0 && candidates.contains(entries[current].lane.value())) {
            return entries[current].lane.value();
        }
        do {
            current = (current + 1) % entries.size();
        } while (entries[current].weight == 0 ||
                 !candidates.contains(entries[current].lane.value()));
        rest = entries[current].weight;
        return entries[current].lane.value();
    }

    std::vector<LaneWeight> entries;
    std::size_t current;
    std::int64_t rest = 0;
};

struct LaneArbiter {
    explicit LaneArbiter(const LaneArbitration& tables)
        : high(tables.high), low(tables.low), limit(tables.high_limit) {}

    [[nodiscard]] bool open(const Lanes& candidates) const {
        return high.open(candidates) || low.open(candidates);
    }

    /// Is open for the candidates.
    VirtualLane choose(const Lanes& candidates) {
        const bool within_limit =
            limit == 255 || sent_high < std::max<base::Bytes>(1, limit * base::Bytes{4096});
        turn = high.open(candidates) && (!low.open(candidates) || within_limit) ? &high : &low;
        return turn->choose(candidates);
    }

    /// The chosen lane has sent a packet.
    void sent(std::int64_t blocks, base::Bytes bytes) {
        turn->rest -= blocks;
        sent_high = turn == &high ? sent_high + bytes : 0;
    }

    LaneTable high;
    LaneTable low;
    std::int64_t limit;
    base::Bytes sent_high = 0;
    LaneTable* turn = nullptr;
};

/// A packet's passage: its way over one cable and through the node at the end of the cable.
struct Passage {
    std::size_t packet = 0;
    PortNumber output = 0;
    base::Time ready;
    std::vector<base::Time> arrival;  ///< of each flit; empty at the source
    std::int64_t arrived = 0;         ///< flits so far
};
using PassagePointer = std::shared_ptr<Passage>;

/// Numbers of blocks of one input buffer and virtual lane, by their state; their sum is constant.
struct Blocks {
    std::int64_t credits = 0;                     ///< the sender may use them
    std::int64_t on_wire = 0;                     ///< taken for flits that have not arrived
    std::int64_t held = 0;                        ///< occupied by flits
    std::int64_t unannounced = 0;                 ///< free, the sender does not know
    std::int64_t announced = 0;                   ///< in updates on the way to the sender
    base::Time next_update = base::Time::zero();  ///< may not start earlier
};

enum class Wait { nothing, credits, crossbar };

/// One direction of a cable: the output at its beginning, the input buffers at its end.
struct Link {
    Link(End begin, End end, const Cable& cable, const FabricConfig& config)
        : from(begin),
          to(end),
          clock(cable.rate),
          delay(cable.delay),
          blocks(config.lanes, Blocks{.credits = config.buffer_blocks}),
          arbiter(config.arbitration),
          last_input(config.lanes, 0) {}

    PlainEnd from;
    PlainEnd to;
    base::WireClock clock;
    base::Time delay;
    Link* reverse = nullptr;
    std::vector<Blocks> blocks;  ///< by lane

    base::Time busy_until;
    LaneArbiter arbiter;
    std::vector<PortNumber> last_input;  ///< served, by lane; of iSLIP, where its pointer is
    Wait wait = Wait::nothing;
    OutputCounters counters;
};

/// Packets that wait at a port: arrived packets at a switch, packets to be sent at a host.
struct Input {
    std::uint32_t sending = 0;   ///< packets at the moment
    PortNumber last_output = 0;  ///< of iSLIP: accepted in a first iteration
    /// Indexed by lane, then by output port (virtual_output) or 0 (fifo).
    std::vector<std::vector<std::deque<PassagePointer>>> queues;
};

struct Node {
    explicit Node(std::size_t ports, std::uint32_t lanes) : outputs(ports + 1), inputs(ports + 1) {
        for (Input& input : inputs) {
            input.queues.assign(lanes, std::vector<std::deque<PassagePointer>>(ports + 1));
        }
    }

    [[nodiscard]] PortNumber ports() const { return static_cast<PortNumber>(outputs.size() - 1); }

    std::vector<Link*> outputs;  ///< by port, from 1; null: no cable
    std::vector<Input> inputs;   ///< by port, from 1
    std::uint64_t sent = 0;      ///< packets
    /// Outputs that could still send a packet after iSLIP's matching.
    std::set<PortNumber> left_over;
};

}  // namespace detail

}  // namespace daqloom::infiniband::reference
