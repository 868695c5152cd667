// The switch without its ports: frames enter, are classified by their headers, wait in the rings of
// their egress ports, and leave at the pace of their ring.
//
//   frame ──> headers ──> flow table, rules ──> ring ──> (OutputQueues) ──> port
//                │           └ none: address ─> ring of that port and class
//                └ learned         └ unknown ─> those of all ports, or none
//
// The caller owns the frames behind the handles. It passes in frames and times, and implements:
//   out.drop(handle)           releases the frame
//   out.copy(handle) -> handle returns a further handle to the same frame
//   out.mark(handle)           sets Congestion Experienced if the IP header allows it
//   out.pause(port, on)        pauses, or resumes, the link partner of the port
//   out.share_with(core, message)  sends a message to another core: see Share
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/action.hpp"
#include "softswitch/flow_cache.hpp"
#include "softswitch/flow_table.hpp"
#include "softswitch/headers.hpp"
#include "softswitch/mac_table.hpp"
#include "softswitch/match_table.hpp"
#include "softswitch/meters.hpp"
#include "softswitch/output_queues.hpp"
#include "softswitch/packet.hpp"
#include "softswitch/pauses.hpp"

namespace daqloom::softswitch {

/// Limits on frames from one port that affect other ports; 0: no limit.
struct PortLimits {
    DAQLOOM_FIELDS(PortLimits,
                   (std::uint32_t, floods, "Frames a second that go to all other ports."),
                   (std::uint32_t, addresses, "Addresses learned at a time."))
};

struct ForwarderConfig {
    DAQLOOM_FIELDS(ForwarderConfig,
                   (OutputConfig, output,
                    "Rings. The first ones, for frames without a rule, are one for each port and "
                    "class, port by port. Untagged frames have class 0."),
                   (std::uint32_t, classes, "Classes of each port.", 1),
                   (MacTableConfig, addresses, "Table of addresses."),
                   (std::vector<PortLimits>, limits, "Limits of each port; empty: no limits."),
                   (std::uint32_t, most_flow_entries, "Capacity of the flow table of controllers."),
                   (std::uint32_t, most_meters, "Number of meters of controllers."),
                   (bool, floods_unknown, "Frames to unknown addresses are flooded, else dropped.",
                    true),
                   (PortIndex, mirror,
                    "Port that gets copies of frames into mirrored rings; none: -1.",
                    PortIndex::none()))
    std::uint32_t most_rules = 65'536;
    Share share;
};

/// Counters of frames by their ingress port, since the start of the switch.
struct PortCounters {
    DAQLOOM_FIELDS(PortCounters, (std::uint64_t, packets, "Frames received."),
                   (std::uint64_t, bytes, "Bytes of the frames received."),
                   (std::uint64_t, flooded, "Frames sent to all other ports."),
                   (std::uint64_t, mirrored, "Frames copied to the mirror port."),
                   (std::uint64_t, malformed, "Frames dropped: no Ethernet header."),
                   (std::uint64_t, link_local, "Frames dropped: link-local destination."),
                   (std::uint64_t, by_rule, "Frames dropped by a rule."),
                   (std::uint64_t, metered, "Frames dropped: rate of a meter exceeded."),
                   (std::uint64_t, unknown, "Frames dropped: unknown destination address."),
                   (std::uint64_t, storm, "Frames dropped: flood limit of the port exceeded."),
                   (std::uint64_t, not_learned,
                    "Frames whose source was not learned: address limit of the port or the table "
                    "reached."),
                   (std::uint64_t, back, "Frames dropped: egress port equal to the ingress port."),
                   (std::uint64_t, full, "Frames, and copies of frames, dropped: ring full."))
};

/// A frame from a port.
struct Arrival {
    std::uint64_t handle = 0;
    std::span<const std::uint8_t> frame;  ///< bytes to classify, from the destination address on
    std::uint32_t bytes = 0;              ///< length of the whole frame
};

class Forwarder {
  public:
    static constexpr std::size_t kMostInBatch = 64;

    static base::expected<Forwarder> make(const ForwarderConfig& config);

    /// Takes in at most `kMostInBatch` frames from a port.
    template <class Out>
    void in(std::span<const Arrival> batch, PortIndex ingress, base::Time now, Out& out) {
        PortCounters& counted = counters_[ingress.value()];
        for (std::size_t i = 0; i < batch.size(); ++i) {
            keys_[i].set(batch[i].frame, ingress);
            flows_.prefetch(keys_[i]);
        }
        std::size_t count = 0;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const Arrival& arrival = batch[i];
            counted.bytes += arrival.bytes;
            const FlowKey& key = keys_[i];
            RingIndex ring = RingIndex::none();
            const FlowCache::Flow* known = key.is_flow ? flows_.find(key, now) : nullptr;
            if (known == nullptr) [[unlikely]] {
                ring = classify(arrival, key, ingress, now, counted, out);
            } else if (known->entry == FlowIndex::none() ||
                       passes(known->entry, arrival, now, counted, out)) [[likely]] {
                ring = known->ring;
            }
            if (ring != RingIndex::none()) [[likely]] {
                packets_[count++] = {arrival.handle, arrival.bytes, ring};
                queues_.prefetch(ring);
                if (mirrors_ > 0 && is_mirrored_[ring.value()]) [[unlikely]] {
                    copy_to_mirror(arrival, ingress, now, counted, out);
                }
            }
        }
        counted.packets += batch.size();
        if (share_.cores > 1) [[unlikely]] {
            count = keep_own(count, ingress, out);
        }
        queue({packets_.data(), count}, now, counted, out);
        if (pauses_.any()) [[unlikely]] {
            for (std::size_t i = 0; i < count; ++i) {
                pauses_.on_frame(packets_[i].ring, ingress, queues_, out);
            }
        }
    }
    /// Takes a message from another core.
    template <class Out>
    void on_message(const Message& message, base::Time now, Out& out) {
        if (message.what == Message::What::frame) {
            queue(std::span(&message.packet, 1), now, counters_[message.ingress.value()], out);
        } else {
            std::ignore = addresses_.learn({message.packet.handle},
                                           static_cast<std::uint16_t>(message.packet.bytes),
                                           message.ingress, now);
        }
    }
    /// Advances the clock; must be called before `out`.
    void advance(base::Time now) { queues_.advance(now); }
    /// Ends the pauses of ports whose rings have drained; must be called periodically.
    template <class Out>
    void update_pauses(Out& out) {
        if (pauses_.any()) {
            pauses_.update(queues_, out);
        }
    }
    /// Writes the handles of the frames that a port sends now to `handles`; returns their number.
    std::size_t out(PortIndex port, base::Time now, std::span<std::uint64_t> handles) {
        return queues_.out(port, now, handles);
    }
    [[nodiscard]] base::Time next_due() const { return queues_.next_due(); }

    // ---- changes of the configuration while the switch runs
    /// Sets a rule, see MatchTable. Returns false if the table is full.
    bool set_rule(const Match& match, std::uint16_t priority, const Action& action);
    bool remove_rule(const Match& match, std::uint16_t priority) {
        flows_.forget();
        return rules_.remove(match, priority);
    }
    /// Sets a flow entry, see FlowTable.
    bool set_flow(FlowIndex index, const FlowEntry& entry);
    void remove_flow(FlowIndex index) {
        flows_.forget();
        flow_table_.remove(index);
    }
    /// Returns false if there is no such meter.
    bool set_meter(MeterIndex index, const MeterConfig& config);
    /// Fixes an address at a port, see MacTable.
    bool fix_address(MacAddress address, std::uint16_t vlan, PortIndex port) {
        flows_.forget();
        return addresses_.fix(address, vlan, port);
    }
    bool forget_address(MacAddress address, std::uint16_t vlan) {
        flows_.forget();
        return addresses_.forget(address, vlan);
    }
    /// Removes all addresses learned at a port, because its link is down.
    void forget_port(PortIndex port) {
        flows_.forget();
        addresses_.forget_port(port);
    }
    /// Sets the number of packets above which a ring pauses the ports that send to it; 0: never.
    void set_pause(RingIndex ring, std::uint32_t packets) { pauses_.set_threshold(ring, packets); }
    /// Sets whether frames for this ring are copied to the mirror port, if there is a mirror port.
    /// Frames that the ring drops are copied as well.
    void set_mirrored(RingIndex ring, bool is_mirrored);
    /// Returns false if there is no such port.
    bool set_limits(PortIndex port, const PortLimits& limits);
    [[nodiscard]] OutputQueues& queues() { return queues_; }

    [[nodiscard]] const OutputQueues& queues() const { return queues_; }
    [[nodiscard]] const MacTable& addresses() const { return addresses_; }
    [[nodiscard]] const MatchTable& rules() const { return rules_; }
    [[nodiscard]] const FlowTable& flow_table() const { return flow_table_; }
    [[nodiscard]] const Share& share() const { return share_; }
    [[nodiscard]] const Pauses& pauses() const { return pauses_; }
    [[nodiscard]] std::size_t ports() const { return counters_.size(); }
    [[nodiscard]] const PortCounters& counters(PortIndex port) const {
        return counters_[port.value()];
    }
    [[nodiscard]] PortIndex port_of(RingIndex ring) const { return port_of_[ring.value()]; }
    /// Ring of a port for frames that no rule matches.
    [[nodiscard]] RingIndex ring_of(PortIndex port, std::uint8_t priority) const {
        return RingIndex(port.value() * classes_ + std::min<std::uint32_t>(priority, classes_ - 1));
    }

  private:
    /// Validity of a cached flow: longest delay until an address is refreshed or seen to move.
    static constexpr base::Time kRemembered = base::milliseconds(1);
    static constexpr std::size_t kFlows = 16'384;

    struct Decision {
        RingIndex ring = RingIndex::none();            ///< none: all ports
        std::uint64_t PortCounters::*cause = nullptr;  ///< counter of drops; null: none
        std::uint8_t priority = 0;
        bool is_news = false;                 ///< whether the source is new at this port
        FlowIndex entry = FlowIndex::none();  ///< matching entry of the flow table
    };

    explicit Forwarder(const ForwarderConfig& config);

    /// Selects the ring of a frame, and learns the frame's source address.
    Decision decide(std::span<const std::uint8_t> frame, PortIndex ingress, base::Time now);
    [[nodiscard]] Decision by_rule(const Headers& headers, PortIndex ingress, base::Time now) const;
    [[nodiscard]] Decision by_address(const Headers& headers, PortIndex ingress,
                                      base::Time now) const;
    [[nodiscard]] Decision done(const Action& action, const Headers& headers) const;
    [[nodiscard]] bool is_there(const Action& action) const;
    /// Whether the flood limit of a port, a token bucket with the frames of 100 ms, admits one more
    /// frame.
    bool may_flood(PortIndex ingress, base::Time now);

    /// Counts a frame for its flow entry. Returns false if the entry's meter has dropped the frame.
    template <class Out>
    [[gnu::noinline]] bool passes(FlowIndex entry, const Arrival& arrival, base::Time now,
                                  PortCounters& counted, Out& out) {
        if (flow_table_.passes(entry, arrival.bytes, now)) {
            return true;
        }
        ++counted.metered;
        out.drop(arrival.handle);
        return false;
    }

    /// Ring of a frame whose flow is not cached; none() if the frame was flooded or dropped.
    template <class Out>
    [[gnu::noinline]] RingIndex classify(const Arrival& arrival, const FlowKey& key,
                                         PortIndex ingress, base::Time now, PortCounters& counted,
                                         Out& out) {
        const Decision decision = decide(arrival.frame, ingress, now);
        if (decision.is_news && share_.cores > 1) [[unlikely]] {
            share_address(arrival.frame, ingress, out);
        }
        if (decision.entry != FlowIndex::none() &&
            !passes(decision.entry, arrival, now, counted, out)) {
            return RingIndex::none();
        }
        if (decision.cause != nullptr) {
            ++(counted.*decision.cause);
            out.drop(arrival.handle);
        } else if (decision.ring == RingIndex::none() && !may_flood(ingress, now)) {
            ++counted.storm;
            out.drop(arrival.handle);
        } else if (decision.ring == RingIndex::none()) {
            ++counted.flooded;
            flood(arrival, ingress, decision.priority, now, counted, out);
        } else if (key.is_flow) {
            flows_.put(key, decision.ring, decision.entry, now + kRemembered);
        }
        return decision.ring;
    }
    template <class Out>
    void queue(std::span<const Packet> packets, base::Time now, PortCounters& counted, Out& out) {
        struct Fate {
            void drop(std::uint64_t handle) {
                ++counted.full;
                out.drop(handle);
            }
            void mark(std::uint64_t handle) { out.mark(handle); }
            PortCounters& counted;
            Out& out;
        };
        queues_.in(packets, now, Fate{counted, out});
    }
    template <class Out>
    void queue(const Packet& packet, PortIndex ingress, base::Time now, PortCounters& counted,
               Out& out) {
        if (!hand_over(packet, ingress, out)) {
            queue(std::span(&packet, 1), now, counted, out);
        }
    }
    /// Sends a packet to the core that owns its ring; returns false if this core owns the ring.
    template <class Out>
    bool hand_over(const Packet& packet, PortIndex ingress, Out& out) {
        const std::uint32_t core = share_.core_of(port_of_[packet.ring.value()]);
        if (core == share_.number) {
            return false;
        }
        out.share_with(core, Message{packet, ingress});
        return true;
    }
    /// Passes on packets for other cores; returns the number of packets left for this core.
    template <class Out>
    [[gnu::noinline]] std::size_t keep_own(std::size_t count, PortIndex ingress, Out& out) {
        std::size_t left = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!hand_over(packets_[i], ingress, out)) {
                packets_[left++] = packets_[i];
            }
        }
        return left;
    }
    template <class Out>
    [[gnu::noinline]] void share_address(std::span<const std::uint8_t> frame, PortIndex ingress,
                                         Out& out) {
        const Headers headers = headers_of(frame);
        const Packet address{headers.source.value, headers.vlan, RingIndex{}};
        for (std::uint32_t core = 0; core < share_.cores; ++core) {
            if (core != share_.number) {
                out.share_with(core, Message{address, ingress, Message::What::address});
            }
        }
    }
    template <class Out>
    [[gnu::noinline]] void copy_to_mirror(const Arrival& arrival, PortIndex ingress, base::Time now,
                                          PortCounters& counted, Out& out) {
        ++counted.mirrored;
        queue({out.copy(arrival.handle), arrival.bytes, ring_of(mirror_, 0)}, ingress, now, counted,
              out);
    }
    template <class Out>
    void flood(const Arrival& arrival, PortIndex ingress, std::uint8_t priority, base::Time now,
               PortCounters& counted, Out& out) {
        if (ports() == 1) {
            out.drop(arrival.handle);
            return;
        }
        const PortIndex last(ports() - (ingress.value() + 1U == ports() ? 2U : 1U));
        for (PortIndex port{}; port < last; ++port) {
            if (port != ingress) {
                queue({out.copy(arrival.handle), arrival.bytes, ring_of(port, priority)}, ingress,
                      now, counted, out);
            }
        }
        queue({arrival.handle, arrival.bytes, ring_of(last, priority)}, ingress, now, counted, out);
    }

    /// Scratch arrays for a batch, kept as members so that they are not cleared for each batch.
    std::array<FlowKey, kMostInBatch> keys_{};
    std::array<Packet, kMostInBatch> packets_{};

    std::uint32_t classes_;
    Share share_;
    bool floods_unknown_;
    PortIndex mirror_;
    std::size_t mirrors_ = 0;        ///< mirrored rings
    std::vector<bool> is_mirrored_;  ///< of each ring
    OutputQueues queues_;
    std::vector<PortIndex> port_of_;  ///< of each ring
    Pauses pauses_;
    FlowCache flows_{kFlows};
    MacTable addresses_;
    FlowTable flow_table_;
    MatchTable rules_;
    std::vector<PortCounters> counters_;
    struct Floods {
        base::Time each;  ///< time between frames at the limit; zero: no limit
        TokenBucket bucket;
    };
    std::vector<Floods> floods_;  ///< of each port
};

}  // namespace daqloom::softswitch
