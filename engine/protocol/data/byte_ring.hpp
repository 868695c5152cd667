// Allocation of contiguous pieces from a ring buffer of fixed size.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ring.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

/// Pieces are contiguous, and allocated from front to back, then from the front again. Space at the
/// end that is too small for the next piece is skipped. Pieces may be freed in any order; space is
/// reused in the order of its allocation.
///
///     |      free      | oldest | … | newest |  free  |
///     | … | newest | free | oldest | … |  left out    |    later
class ByteRing {
  public:
    /// `capacity` above 0.
    explicit ByteRing(base::Bytes capacity) : capacity_(capacity) {}

    /// Allocates a piece of at least 1 byte. Returns its offset; none if there is no space. Tags
    /// must increase from piece to piece.
    std::optional<base::Bytes> push(std::uint64_t tag, base::Bytes bytes) {
        const base::Bytes start = start_of_next(bytes);
        if (start < 0) {
            return std::nullopt;
        }
        pieces_.push({tag, start, bytes, false});
        held_ += bytes;
        return start;
    }

    /// Frees the piece with this tag. False: there is no such piece, or it was freed before.
    bool free(std::uint64_t tag) {
        const std::uint32_t place = lower_bound(tag);
        if (place == pieces_.size() || pieces_[place].tag != tag || pieces_[place].freed) {
            return false;
        }
        pieces_[place].freed = true;
        held_ -= pieces_[place].bytes;
        while (!pieces_.empty() && pieces_.front().freed) {
            pieces_.pop();
        }
        return true;
    }

    [[nodiscard]] base::Bytes capacity() const { return capacity_; }
    /// Bytes in pieces that have not been freed.
    [[nodiscard]] base::Bytes held() const { return held_; }

  private:
    struct Piece {
        std::uint64_t tag;
        base::Bytes start;
        base::Bytes bytes;
        bool freed;
    };

    /// Start of the next piece; below 0: no room.
    [[nodiscard]] base::Bytes start_of_next(base::Bytes bytes) const {
        if (pieces_.empty()) {
            return bytes <= capacity_ ? 0 : -1;
        }
        const base::Bytes oldest = pieces_.front().start;
        const Piece& newest = pieces_[pieces_.size() - 1];
        const base::Bytes end = newest.start + newest.bytes;
        if (newest.start < oldest) {  // the newest piece has wrapped around
            return bytes <= oldest - end ? end : -1;
        }
        if (bytes <= capacity_ - end) {
            return end;
        }
        return bytes <= oldest ? 0 : -1;
    }

    /// The first piece with this tag or a later one.
    [[nodiscard]] std::uint32_t lower_bound(std::uint64_t tag) const {
        std::uint32_t first = 0;
        std::uint32_t last = pieces_.size();
        while (first < last) {
            const std::uint32_t middle = first + (last - first) / 2;
            if (pieces_[middle].tag < tag) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        return first;
    }

    base::Bytes capacity_;
    base::Bytes held_ = 0;
    base::Ring<Piece> pieces_;  ///< oldest first
};

}  // namespace daqloom::protocol
