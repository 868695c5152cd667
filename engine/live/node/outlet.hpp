// The path of built multi-event packets (MEPs) from the protocol to the output buffer and its
// consumer.
#pragma once

#include <cstdint>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"

namespace daqloom::live {

/// Of one epoch. MEPs leave in the order in which they were built, and are consumed in that order.
class Outlet {
  public:
    explicit Outlet(Buffer& buffer)
        : writer_(buffer), consumed_(writer_.acknowledged()), before_(writer_.committed()) {}

    /// The MEP with this turn at its builder lies there; `tag` is its number in the run.
    void put(std::uint64_t turn, std::uint64_t tag, base::Bytes offset, base::Bytes bytes) {
        built_.push({turn, tag, offset, bytes});
        retry();
    }

    /// Calls `consumed(turn)` for each MEP that the consumer has acknowledged. False: there is
    /// none, or the consumer's count is invalid.
    template <class Consumed>
    bool take_back(Consumed consumed) {
        const std::uint64_t acknowledged = writer_.acknowledged();
        const std::uint64_t count = acknowledged - consumed_;
        if (count == 0 || count > writer_.committed() - consumed_) {
            return false;
        }
        for (; consumed_ != acknowledged; ++consumed_) {
            if (consumed_ >= before_ && !turns_.empty()) {  // else of an earlier epoch
                const std::uint64_t turn = turns_.front();
                turns_.pop();
                consumed(turn);
            }
        }
        retry();
        return true;
    }

    /// Whether nothing is under way to the consumer or with it.
    [[nodiscard]] bool is_empty() const { return built_.empty() && turns_.empty(); }

  private:
    struct Built {
        std::uint64_t turn;
        std::uint64_t tag;
        base::Bytes offset;
        base::Bytes bytes;
    };

    /// As far as the ring of descriptors has room.
    void retry() {
        while (!built_.empty() &&
               writer_.put(built_.front().tag, built_.front().offset, built_.front().bytes)) {
            turns_.push(built_.front().turn);
            built_.pop();
        }
    }

    BufferWriter writer_;
    std::uint64_t consumed_;           ///< by count of acknowledged pieces
    std::uint64_t before_;             ///< pieces of earlier epochs
    base::Ring<Built> built_;          ///< not yet in the buffer
    base::Ring<std::uint64_t> turns_;  ///< in the buffer
};

}  // namespace daqloom::live
