// The path of built multi-event packets (MEPs) from the protocol to the output buffer and its
// consumer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/sample_tap.hpp"

namespace daqloom::live {

/// Passes the MEPs of one epoch to the consumer, in the order in which they were built.
class MepOutput {
  public:
    /// `tap`: samplers of the MEPs; may be null.
    explicit MepOutput(Buffer& buffer, SampleTap* tap = nullptr)
        : area_(buffer.area().bytes()),
          tap_(tap),
          writer_(buffer),
          consumed_(writer_.acknowledged()),
          before_(writer_.committed()) {}

    /// Adds a MEP; `turn`: its turn at its builder unit, `tag`: its number in the run.
    void put(std::uint64_t turn, std::uint64_t tag, base::Bytes offset, base::Bytes bytes) {
        if (tap_ != nullptr) {
            tap_->offer(tag, area_.subspan(static_cast<std::size_t>(offset),
                                           static_cast<std::size_t>(bytes)));
        }
        queue_.push({turn, tag, offset, bytes});
        retry();
    }

    /// Calls `consumed(turn)` for each MEP that the consumer has acknowledged. False: no such MEP,
    /// or the consumer's count is invalid.
    template <class Consumed>
    bool take_back(Consumed consumed) {
        const std::uint64_t acknowledged = writer_.acknowledged();
        const std::uint64_t count = acknowledged - consumed_;
        if (count == 0 || count > writer_.committed() - consumed_) {
            return false;
        }
        for (; consumed_ != acknowledged; ++consumed_) {
            if (consumed_ >= before_ && !turns_.empty()) {  // otherwise a piece of an earlier epoch
                const std::uint64_t turn = turns_.front();
                turns_.pop();
                consumed(turn);
            }
        }
        retry();
        return true;
    }

    /// Whether no MEP is queued or at the consumer.
    [[nodiscard]] bool is_empty() const { return queue_.empty() && turns_.empty(); }

  private:
    struct Mep {
        std::uint64_t turn;
        std::uint64_t tag;
        base::Bytes offset;
        base::Bytes bytes;
    };

    /// Passes MEPs to the buffer while its ring of descriptors has space.
    void retry() {
        while (!queue_.empty() &&
               writer_.put(queue_.front().tag, queue_.front().offset, queue_.front().bytes)) {
            turns_.push(queue_.front().turn);
            queue_.pop();
        }
    }

    std::span<const std::byte> area_;
    SampleTap* tap_;
    BufferWriter writer_;
    std::uint64_t consumed_;           ///< acknowledged pieces
    std::uint64_t before_;             ///< pieces of earlier epochs
    base::Ring<Mep> queue_;            ///< not yet in the buffer
    base::Ring<std::uint64_t> turns_;  ///< in the buffer
};

}  // namespace daqloom::live
