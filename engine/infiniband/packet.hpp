// A packet in the fabric, and the queues in which it waits.
#pragma once

#include <cstdint>
#include <vector>

#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

/// A place in the store of packets.
using PacketIndex = std::uint32_t;
inline constexpr PacketIndex kNoPacket = ~PacketIndex{0};

struct Packet {
    base::Time ready;  ///< when it may leave the node where it waits
    /// Behind it in its queue or in the list of free places; of a packet that waits no more, the
    /// port where it ends.
    PacketIndex next = kNoPacket;
    std::uint32_t tag = 0;  ///< the sender's own
    std::uint32_t psn = 0;  ///< packet sequence number, the sender's own
    NodeIndex destination = 0;
    std::uint16_t bytes = 0;   ///< on the wire, headers included
    std::uint16_t blocks = 0;  ///< of buffer
    VirtualLane lane = 0;
};

/// All packets of a fabric; a place is used again, the latest freed first.
class PacketStore {
  public:
    PacketIndex put(const Packet& packet) {
        ++in_use_;
        if (free_ == kNoPacket) [[unlikely]] {
            packets_.push_back(packet);
            return static_cast<PacketIndex>(packets_.size() - 1);
        }
        const PacketIndex place = free_;
        free_ = packets_[place].next;
        packets_[place] = packet;
        return place;
    }
    void release(PacketIndex place) {
        --in_use_;
        packets_[place].next = free_;
        free_ = place;
    }

    [[nodiscard]] Packet& operator[](PacketIndex place) { return packets_[place]; }
    [[nodiscard]] const Packet& operator[](PacketIndex place) const { return packets_[place]; }
    [[nodiscard]] std::uint64_t in_use() const { return in_use_; }

  private:
    std::vector<Packet> packets_;
    PacketIndex free_ = kNoPacket;
    std::uint64_t in_use_ = 0;
};

/// First in, first out, linked through the packets.
struct PacketQueue {
    PacketIndex first = kNoPacket;
    PacketIndex last = kNoPacket;

    [[nodiscard]] bool empty() const { return first == kNoPacket; }

    void push(PacketStore& packets, PacketIndex place) {
        packets[place].next = kNoPacket;
        (empty() ? first : packets[last].next) = place;
        last = place;
    }
    void pop(PacketStore& packets) { first = packets[first].next; }
};

}  // namespace daqloom::infiniband
