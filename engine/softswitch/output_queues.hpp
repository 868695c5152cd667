// Output queues of the ports: a paced ring for each destination; its port serves the rings in turn.
//
//   packets ──> admission ──> ring ··· paced: timing wheel ···> due rings of port, class ──> port
//                  │                                            (deficit round robin)
//                  └─ dropped
//
// A ring is idle (empty), or waits in the wheel for the time of its next packet, or is due and in
// the list of its port and class. Classes have strict priority, the highest first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/packet.hpp"
#include "softswitch/ring_memory.hpp"
#include "softswitch/shared_memory.hpp"
#include "softswitch/timing_wheel.hpp"

namespace daqloom::softswitch {

inline constexpr std::uint32_t kClasses = 8;
/// Lower bound for paces, so that the time of a frame of 20 kB fits into 64 bits.
inline constexpr base::BitRate kLeastPace{20'000};
inline constexpr base::Bytes kMostRingBytes = (base::Bytes{1} << 32) - 65'536;

struct RingConfig {
    DAQLOOM_FIELDS(RingConfig, (PortIndex, port, "Port by which packets leave."),
                   (std::uint8_t, priority,
                    "Class of the port, below kClasses; the highest is served first."),
                   (base::BitRate, rate, "Pace of the packets with `overhead`; 0: none."),
                   (std::uint32_t, packets, "Capacity in packets.", 4096),
                   (base::Bytes, bytes, "Capacity in bytes.", kMostRingBytes),
                   (base::Bytes, mark_bytes,
                    "Bytes held above which packets are marked: congestion experienced; 0: never."))
};

struct OutputConfig {
    DAQLOOM_FIELDS(
        OutputConfig, (std::uint16_t, ports, "Number of ports.", 1),
        (std::vector<RingConfig>, rings, "Rings of all ports."),
        (std::int32_t, overhead,
         "Bytes added to each packet for its pace: 24 counts bits on the wire of Ethernet (check "
         "sequence, preamble and gap), -14 those of IP.",
         24),
        (SharedMemoryConfig, shared,
         "Emulated packet memory of a switch: rings also drop packets without room in it. No "
         "buffer: not emulated."))
    std::uint64_t packets = 0;  ///< capacity of all rings together; 0: the sum of their capacities
    std::uint32_t quantum = 1600;              ///< bytes that a ring may send in its turn
    base::Time slot = base::nanoseconds(500);  ///< width of a slot of the timing wheel
};

/// Counters of a ring, since the start. Counters that each packet changes share a cache line.
struct alignas(64) RingCounters {
    DAQLOOM_FIELDS(RingCounters, (std::uint64_t, packets, "Packets accepted."),
                   (std::uint64_t, bytes, "Bytes accepted."),
                   (std::uint64_t, peak_bytes,
                    "Most bytes held at a time, since peaks were reset."),
                   (std::uint32_t, peak_packets,
                    "Most packets held at a time, since peaks were reset."),
                   (std::uint64_t, drops, "Packets dropped: ring full."),
                   (std::uint64_t, dropped_bytes, "Bytes dropped: ring full."),
                   (std::uint64_t, memory_drops, "Packets dropped: no memory left."),
                   (std::uint64_t, marks, "Packets marked: congestion experienced."))
};

/// Histogram of waiting times in a ring, for one packet in eight, drawn at random. The first bucket
/// is below 2^16 ps; each further bucket ends at twice its begin; the last bucket has no end.
using Waits = std::array<std::uint64_t, 24>;
inline constexpr std::uint32_t kWaitUnit = 16;  ///< bits of picoseconds below the first bound

/// Rings of all ports. Nothing is allocated after construction. Times must not decrease.
class OutputQueues {
  public:
    explicit OutputQueues(const OutputConfig& config);

    /// Prefetches the state of a ring to which packets will soon be added.
    void prefetch(RingIndex ring) const { __builtin_prefetch(&rings_[ring.value()]); }
    /// Queues the packets that fit. Calls fate.drop(handle) for each other packet, and
    /// fate.mark(handle) for each packet to be marked.
    template <class Fate>
    void in(std::span<const Packet> batch, base::Time now, Fate&& fate) {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (i + kAhead < batch.size()) {
                const std::uint32_t ahead = batch[i + kAhead].ring.value();
                __builtin_prefetch(&rings_[ahead]);
                __builtin_prefetch(&counters_[ahead], 1);
            }
            in(batch[i], now, fate);
        }
    }

    /// Makes those rings due whose pace allows a packet. Must be called before `out`.
    void advance(base::Time now) {
        wheel_.take_due(now, [this](std::uint32_t ring) { make_due(ring); });
    }

    /// Writes the handles of a port's next packets, as many as fit; returns their number.
    std::size_t out(PortIndex port, base::Time now, std::span<std::uint64_t> handles) {
        Port& from = ports_[port.value()];
        std::size_t count = 0;
        while (from.due_classes != 0 && count < handles.size()) {
            const auto priority = 31U - static_cast<std::uint32_t>(__builtin_clz(from.due_classes));
            count += serve(from, priority, now, handles.subspan(count));
        }
        return count;
    }

    /// Next time at which `advance` makes a ring due; never() if only new packets can do so.
    [[nodiscard]] base::Time next_due() const { return wheel_.next_due(); }
    [[nodiscard]] bool has_due(PortIndex port) const {
        return ports_[port.value()].due_classes != 0;
    }

    /// Removes all packets without regard to paces, and calls drop(handle) for each packet.
    template <class Drop>
    void drain(Drop&& drop) {
        for (Ring& ring : rings_) {
            for (; ring.packets > 0; remove_first(ring)) {
                drop(memory_.at(ring.head, ring.head_place).handle);
            }
        }
    }

    // ---- changed while it runs
    void set_rate(RingIndex ring, base::BitRate rate);
    /// Sets the limits of a ring. Packets above the new limits stay; peaks are cut to the limits.
    void set_limits(RingIndex ring, std::uint32_t packets, base::Bytes bytes);
    /// Sets RingConfig::mark_bytes.
    void set_mark(RingIndex ring, base::Bytes bytes);
    /// Resets the peaks.
    void forget_peaks();

    [[nodiscard]] std::size_t rings() const { return rings_.size(); }
    [[nodiscard]] std::uint32_t held_packets(RingIndex ring) const {
        return rings_[ring.value()].packets;
    }
    /// Packets of all rings.
    [[nodiscard]] std::uint64_t held() const {
        std::uint64_t all = 0;
        for (const Ring& ring : rings_) {
            all += ring.packets;
        }
        return all;
    }
    [[nodiscard]] base::Bytes held_bytes(RingIndex ring) const {
        return rings_[ring.value()].bytes;
    }
    [[nodiscard]] const RingCounters& counters(RingIndex ring) const {
        return counters_[ring.value()];
    }
    [[nodiscard]] const Waits& waits(RingIndex ring) const { return waits_[ring.value()]; }
    [[nodiscard]] const RingMemory& memory() const { return memory_; }
    [[nodiscard]] const std::optional<SharedMemory>& shared() const { return shared_; }
    /// Peak of bytes in the shared memory since peaks were reset; 0 without a shared memory.
    [[nodiscard]] base::Bytes shared_peak_bytes() const { return shared_peak_bytes_; }

  private:
    static constexpr std::uint32_t kAhead = 4;

    /// State in 16 bits, because an 8-bit type may alias any object, so that the compiler would
    /// reload all members after each write.
    enum class State : std::uint16_t { idle, waits, due };

    /// One cache line.
    struct alignas(64) Ring {
        std::uint32_t head = RingMemory::kNone;  ///< chunks
        std::uint32_t tail = RingMemory::kNone;
        std::uint16_t head_place = 0;
        std::uint16_t tail_place = 0;
        std::uint32_t packets = 0;
        std::uint32_t bytes = 0;
        std::uint32_t most_bytes = 0;
        std::uint32_t mark_bytes = 0;      ///< packets are marked above; 2^32 - 1: never
        base::Time next_at;                ///< time of the next packet, by the pace
        std::int64_t ps_per_byte_q20 = 0;  ///< in 2^-20 ps; 0: no pace
        std::uint32_t most_packets = 0;
        std::int32_t deficit = 0;  ///< bytes that the ring may send in this turn
        std::uint16_t port = 0;
        std::uint16_t priority = 0;
        State state = State::idle;
    };
    static_assert(sizeof(Ring) == 64);

    /// Due rings of one class at a port, in the order of their turns. A ring is in the list at most
    /// once, so that one place per ring suffices.
    struct DueRings {
        std::vector<std::uint32_t> numbers;  ///< a power of two
        std::uint32_t mask = 0;
        std::uint32_t begin = 0;
        std::uint32_t end = 0;

        [[nodiscard]] bool empty() const { return begin == end; }
        [[nodiscard]] std::uint32_t at(std::uint32_t place) const { return numbers[place & mask]; }
        void append(std::uint32_t number) { numbers[end++ & mask] = number; }
    };
    struct Port {
        std::array<DueRings, kClasses> due;
        std::uint32_t due_classes = 0;  ///< a bit for each class with due rings
    };

    template <class Fate>
    [[gnu::always_inline]] void in(const Packet& packet, base::Time now, Fate&& fate) {
        Ring& ring = rings_[packet.ring.value()];
        RingCounters& counted = counters_[packet.ring.value()];
        if (ring.packets >= ring.most_packets || ring.bytes + packet.bytes > ring.most_bytes)
            [[unlikely]] {
            if (!shared_ || !takes_from_shared(packet, ring)) {
                ++counted.drops;
                counted.dropped_bytes += packet.bytes;
                return fate.drop(packet.handle);
            }
        }
        if (!append(ring, packet, now)) [[unlikely]] {
            if (shared_) {
                release_shared(ring, packet.bytes);
            }
            ++counted.memory_drops;
            return fate.drop(packet.handle);
        }
        if (ring.bytes > ring.mark_bytes) [[unlikely]] {
            ++counted.marks;
            fate.mark(packet.handle);
        }
        ++counted.packets;
        counted.bytes += packet.bytes;
        ring.bytes += packet.bytes;
        if (++ring.packets > counted.peak_packets) [[unlikely]] {
            counted.peak_packets = ring.packets;
        }
        if (ring.bytes > counted.peak_bytes) [[unlikely]] {
            counted.peak_bytes = ring.bytes;
        }
        if (ring.state == State::idle) {
            ring.next_at = std::max(ring.next_at, now);
            schedule(packet.ring.value(), ring, now);
        }
    }

    /// Slow path of rings with a shared memory, for which `most_packets` is 0: whether the ring is
    /// below its limit in `limits_` and the memory admits the packet.
    [[gnu::noinline]] bool takes_from_shared(const Packet& packet, const Ring& ring) {
        const bool has_room = ring.packets < limits_[packet.ring.value()] &&
                              ring.bytes + packet.bytes <= ring.most_bytes &&
                              shared_->fits(ring.port, packet.bytes);
        if (has_room) {
            shared_->charge(ring.port, packet.bytes);
            shared_bytes_ += packet.bytes;
            shared_peak_bytes_ = std::max(shared_peak_bytes_, shared_bytes_);
        }
        return has_room;
    }
    void release_shared(const Ring& ring, std::uint32_t bytes) {
        shared_->release(ring.port, bytes);
        shared_bytes_ -= bytes;
    }

    bool append(Ring& ring, const Packet& packet, base::Time now) {
        if (ring.tail == RingMemory::kNone || ring.tail_place == RingMemory::kPerChunk) {
            const std::uint32_t chunk = memory_.take();
            if (chunk == RingMemory::kNone) {
                return false;
            }
            if (ring.tail == RingMemory::kNone) {
                ring.head = chunk;
                ring.head_place = 0;
            } else {
                memory_.next(ring.tail) = chunk;
            }
            ring.tail = chunk;
            ring.tail_place = 0;
        }
        memory_.at(ring.tail, ring.tail_place++) = {packet.handle, packet.bytes, since(now)};
        return true;
    }

    /// Schedules a ring that holds packets, and is neither in the wheel nor in a list.
    void schedule(std::uint32_t number, Ring& ring, base::Time now) {
        if (may_send(ring, now)) {
            make_due(number);
        } else {
            ring.state = State::waits;
            wheel_.put(number, ring.next_at);
        }
    }

    [[nodiscard]] bool may_send(const Ring& ring, base::Time now) const {
        return ring.ps_per_byte_q20 == 0 || wheel_.is_due(ring.next_at, now);
    }
    void make_due(std::uint32_t number) {
        Ring& ring = rings_[number];
        ring.state = State::due;
        ring.deficit = static_cast<std::int32_t>(quantum_);
        append_to(ports_[ring.port], ring.priority, number);
    }
    static void append_to(Port& port, std::uint32_t priority, std::uint32_t number) {
        port.due[priority].append(number);
        port.due_classes |= 1U << priority;
    }

    /// Lets the first due ring of a class send until its turn is over or `handles` is full.
    std::size_t serve(Port& port, std::uint32_t priority, base::Time now,
                      std::span<std::uint64_t> handles) {
        const DueRings& due = port.due[priority];
        const std::uint32_t number = due.at(due.begin);
        Ring& ring = rings_[number];
        __builtin_prefetch(&rings_[due.at(due.begin + 1)]);
        std::size_t count = 0;
        while (count < handles.size()) {
            const Held& first = memory_.at(ring.head, ring.head_place);
            if (ring.deficit < static_cast<std::int32_t>(first.bytes)) {
                leave(port, priority);
                ring.deficit += static_cast<std::int32_t>(quantum_);
                append_to(port, priority, number);
                break;
            }
            handles[count++] = first.handle;
            see_wait(number, since(now) - first.since);
            ring.deficit -= static_cast<std::int32_t>(first.bytes);
            pace(ring, first.bytes, now);
            remove_first(ring);
            if (ring.packets == 0 || !may_send(ring, now)) {
                leave(port, priority);
                ring.state = State::idle;
                if (ring.packets > 0) {
                    schedule(number, ring, now);
                }
                break;
            }
        }
        return count;
    }

    /// Samples one packet in eight: a cache line more per packet would cost a tenth of the rate.
    void see_wait(std::uint32_t number, std::uint32_t waited) {
        drawn_ = drawn_ * 1'664'525 + 1'013'904'223;  // Numerical Recipes' generator
        if (drawn_ >> 29 == 0) {
            ++waits_[number][std::min<std::size_t>(std::bit_width(waited), Waits{}.size() - 1)];
        }
    }

    /// Advances the pace of a ring by a packet. The next packet makes up for a delay of less than a
    /// packet; longer delays are not made up for.
    void pace(Ring& ring, std::uint32_t bytes, base::Time now) const {
        if (ring.ps_per_byte_q20 != 0) {
            const base::Time gap{((std::int64_t{bytes} + overhead_) * ring.ps_per_byte_q20) >> 20};
            ring.next_at = std::max(ring.next_at, now - gap) + gap;
        }
    }

    void remove_first(Ring& ring) {
        const Held& first = memory_.at(ring.head, ring.head_place);
        if (shared_) [[unlikely]] {
            release_shared(ring, first.bytes);
        }
        ring.bytes -= first.bytes;
        --ring.packets;
        ++ring.head_place;
        if (ring.packets == 0) {  // reuse the same chunk, which is in the cache
            ring.head_place = ring.tail_place = 0;
        } else if (ring.head_place == RingMemory::kPerChunk) {
            const std::uint32_t empty = ring.head;
            ring.head = memory_.next(empty);
            ring.head_place = 0;
            memory_.give_back(empty);
        }
    }

    /// Removes the first due ring of a class at the end of the ring's turn.
    void leave(Port& port, std::uint32_t priority) {
        DueRings& due = port.due[priority];
        ++due.begin;
        if (due.empty()) {
            port.due_classes &= ~(1U << priority);
        }
    }
    static std::uint32_t since(base::Time now) {
        return static_cast<std::uint32_t>(now.ps >> kWaitUnit);
    }

    std::int32_t overhead_;
    std::uint32_t quantum_;
    std::uint32_t drawn_ = 1;
    RingMemory memory_;
    std::optional<SharedMemory> shared_;
    base::Bytes shared_bytes_ = 0;  ///< of the frames held in `shared_`
    base::Bytes shared_peak_bytes_ = 0;
    std::vector<std::uint32_t> limits_;  ///< limit in packets of each ring, with a shared memory
    TimingWheel wheel_;
    std::vector<Ring> rings_;
    std::vector<RingCounters> counters_;
    std::vector<Waits> waits_;
    std::vector<Port> ports_;
};

}  // namespace daqloom::softswitch
