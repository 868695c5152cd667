// Memory for the packets of all rings: chunks from a common pool.
//
//   ring:  head chunk ──> chunk ──> chunk ──> tail chunk        free chunks: the latest used first
//
// A ring takes a chunk when its last chunk is full and returns its first chunk when that is empty,
// so that only memory of held packets is touched: 144 rings of 4096 packets could take 9.4 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

/// A packet in a ring.
struct Held {
    std::uint64_t handle;
    std::uint32_t bytes;
    std::uint32_t since;  ///< time of arrival, in units of 2^16 ps, modulo 2^32 units: 281 s
};

class RingMemory {
  public:
    static constexpr std::uint32_t kNone = 0xffffffff;
    static constexpr std::uint32_t kPerChunk = 63;

    /// Memory for `packets` packets, and up to two partly filled chunks for each ring.
    RingMemory(std::uint64_t packets, std::uint32_t rings)
        : size_(static_cast<std::uint32_t>((packets + kPerChunk - 1) / kPerChunk + 2 * rings)),
          chunks_(std::make_unique_for_overwrite<Chunk[]>(size_)) {}

    /// Takes a free chunk; kNone if all are in use.
    std::uint32_t take() {
        if (free_ != kNone) [[likely]] {
            const std::uint32_t chunk = free_;
            free_ = chunks_[chunk].next;
            ++used_;
            return chunk;
        }
        if (touched_ == size_) {
            return kNone;
        }
        ++used_;
        return touched_++;
    }
    void give_back(std::uint32_t chunk) {
        chunks_[chunk].next = free_;
        free_ = chunk;
        --used_;
    }

    [[nodiscard]] Held& at(std::uint32_t chunk, std::uint32_t place) {
        return chunks_[chunk].held[place];
    }
    [[nodiscard]] std::uint32_t& next(std::uint32_t chunk) { return chunks_[chunk].next; }

    [[nodiscard]] std::uint32_t used() const { return used_; }
    /// Memory ever touched (B).
    [[nodiscard]] std::size_t touched() const { return std::size_t{touched_} * sizeof(Chunk); }

  private:
    struct alignas(64) Chunk {
        Held held[kPerChunk];
        std::uint32_t next;
    };
    static_assert(sizeof(Chunk) == 1024);

    std::uint32_t size_;
    std::unique_ptr<Chunk[]> chunks_;
    std::uint32_t free_ = kNone;
    std::uint32_t touched_ = 0;
    std::uint32_t used_ = 0;
};

}  // namespace daqloom::softswitch
