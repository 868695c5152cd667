// A packet in the fabric, and the queues in which it waits.
#pragma once

#include <cstdint>

#include "base/index.hpp"
#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

/// Place of a packet in the store.
using PacketIndex = base::Index<struct PacketTag>;
/// Index of a port among the ports of all nodes; ports of hosts come first.
using PortIndex = base::Index<struct PortTag>;

struct Packet {
    Packet() : next(PacketIndex::none()) {}

    base::Time ready;  ///< earliest departure from its node
    union {
        /// The next packet in the queue, or the next free place in the store.
        PacketIndex next;
        PortIndex end;  ///< last port of a packet that waits no more
    };
    std::uint32_t tag = 0;  ///< chosen by the sender
    std::uint32_t psn = 0;  ///< packet sequence number, chosen by the sender
    NodeIndex destination;
    std::uint16_t bytes = 0;   ///< on the wire, headers included
    std::uint16_t blocks = 0;  ///< of buffer
    VirtualLane lane;
    std::uint8_t place = 0;  ///< place among the node's ports of the output it waits for
    bool is_bad = false;     ///< its end was lost on a wire: its destination drops it
    std::uint8_t life = 0;   ///< number of earlier packets at its place, modulo 256
};

/// Store of all packets of a fabric; a new packet takes the place that was freed last.
class PacketStore {
  public:
    PacketIndex put(const Packet& packet) {
        ++in_use_;
        if (free_ == PacketIndex::none()) [[unlikely]] {
            return packets_.push_back(packet);
        }
        const PacketIndex place = free_;
        Packet& here = packets_[place];
        const std::uint8_t life = here.life;
        free_ = here.next;
        here = packet;
        here.life = life;
        return place;
    }
    void release(PacketIndex place) {
        --in_use_;
        ++packets_[place].life;
        packets_[place].next = free_;
        free_ = place;
    }

    [[nodiscard]] Packet& operator[](PacketIndex place) { return packets_[place]; }
    [[nodiscard]] const Packet& operator[](PacketIndex place) const { return packets_[place]; }
    [[nodiscard]] std::uint64_t in_use() const { return in_use_; }
    [[nodiscard]] std::size_t memory() const { return packets_.memory(); }

  private:
    base::Table<PacketIndex, Packet> packets_;
    PacketIndex free_ = PacketIndex::none();
    std::uint64_t in_use_ = 0;
};

/// First in, first out, linked through the packets.
struct PacketQueue {
    PacketIndex first = PacketIndex::none();
    PacketIndex last = PacketIndex::none();

    [[nodiscard]] bool empty() const { return first == PacketIndex::none(); }

    void push(PacketStore& packets, PacketIndex place) {
        packets[place].next = PacketIndex::none();
        (empty() ? first : packets[last].next) = place;
        last = place;
    }
    void pop(PacketStore& packets) { first = packets[first].next; }
};

}  // namespace daqloom::infiniband
