// The path of a readout unit's MFPs from the sources' buffers to the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counters.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

/// One stream in one epoch. MFPs are numbered from 0; MFP k has the tag `first` + k. A number that
/// the source left out is an MFP of 0 bytes. MFPs that an earlier epoch has finished are freed at
/// once.
class StreamIntake {
  public:
    /// `window`: limit on MFPs that are taken and not given back.
    StreamIntake(Buffer& buffer, std::uint64_t first, std::uint32_t window, NodeCounters& counters)
        : reader_(buffer), first_(first), held_(window), counters_(&counters) {}

    /// Whether the stream has its next MFP: number `taken()`.
    bool has_next() {
        while (!has_piece_) {
            while (taken_ == given_back_ && unused_ > 0) {
                reader_.acknowledge();
                --unused_;
            }
            const auto piece = reader_.next();
            if (!piece) {
                if (reader_.is_broken() && !std::exchange(is_broken_, true)) {
                    counters_->streams_broken.add(1);
                }
                return false;
            }
            ++unused_;
            has_piece_ = is_of_use(*piece);
            piece_ = *piece;
        }
        return taken_ - given_back_ < held_.size();
    }

    /// Takes the next MFP; returns its size. Precondition: has_next().
    base::Bytes take() {
        Held& held = held_[taken_ % held_.size()];
        held = {};
        if (piece_.tag == first_ + taken_) {
            held = {.bytes = piece_.bytes, .pieces = std::exchange(unused_, 0)};
            has_piece_ = false;
            counters_->mfps_taken.add(1);
            counters_->mfp_bytes_taken.add(piece_.bytes.size());
            counters_->fragment_bytes_taken.add(protocol::fragment_bytes(piece_.bytes));
        } else {
            counters_->mfps_absent.add(1);
        }
        ++taken_;
        return static_cast<base::Bytes>(held.bytes.size());
    }

    [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t number) const {
        return held_[number % held_.size()].bytes;
    }

    /// Gives back the oldest MFP taken.
    void give_back() {
        for (std::uint32_t left = held_[given_back_++ % held_.size()].pieces; left > 0; --left) {
            reader_.acknowledge();
        }
    }

    [[nodiscard]] std::uint64_t taken() const { return taken_; }

  private:
    struct Held {
        std::span<const std::byte> bytes;
        std::uint32_t pieces = 0;  ///< pieces of the buffer, including useless ones before the MFP
    };

    /// Checks that tags grow and that a piece is as long as its header states. Consumers of events
    /// check the rest of the MFP.
    [[nodiscard]] bool is_of_use(const Piece& piece) {
        if (piece.tag < first_ + taken_) {
            counters_->mfps_stale.add(1);
            return false;
        }
        if (!protocol::has_declared_length(piece.bytes)) {
            counters_->mfps_malformed.add(1);
            return false;
        }
        return true;
    }

    BufferReader reader_;
    std::uint64_t first_;
    std::uint64_t taken_ = 0;
    std::uint64_t given_back_ = 0;
    Piece piece_;
    bool has_piece_ = false;
    bool is_broken_ = false;
    std::uint32_t unused_ = 0;  ///< pieces read since the last MFP taken
    std::vector<Held> held_;
    NodeCounters* counters_;
};

}  // namespace daqloom::live
