// Access of a user's process to a buffer of a running unit: to write data of a stream (writer), or
// to read built events (reader) or copies of some of them (sampler).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/handover.hpp"

namespace daqloom::live {

enum class BufferSide : std::uint8_t {
    writer = 0,
    reader = 1,
    sampler = 2,  ///< reads copies of some pieces, and never holds back the reader
};

/// One side of a unit's buffer, attached until this object is destroyed or the process ends.
class AttachedBuffer {
  public:
    AttachedBuffer(Handover unit, Buffer buffer)
        : unit_(std::move(unit)), buffer_(std::move(buffer)) {}

    /// The buffer, for a BufferWriter, or for a BufferReader of a reader or sampler.
    [[nodiscard]] Buffer& buffer() { return buffer_; }
    /// Whether the unit, which has the other side of the buffer, has ended.
    [[nodiscard]] bool is_abandoned() const { return unit_.is_closed(); }

  private:
    Handover unit_;
    Buffer buffer_;
};

/// Buffer name `daqloom/<run>/<unit>/<what>`; `what` is `stream-0`, `stream-1`, … or `output`.
std::string buffer_name(const std::string& run, std::uint32_t unit, const std::string& what);

/// Attaches when the unit offers the buffer, by `until`. Fails immediately if the side is taken.
base::expected<AttachedBuffer> attach_buffer(const std::string& name, BufferSide side,
                                             base::Time until);
inline base::expected<AttachedBuffer> attach_writer(const std::string& name, base::Time until) {
    return attach_buffer(name, BufferSide::writer, until);
}
inline base::expected<AttachedBuffer> attach_reader(const std::string& name, base::Time until) {
    return attach_buffer(name, BufferSide::reader, until);
}

inline base::expected<AttachedBuffer> attach_sampler(const std::string& name, base::Time until) {
    return attach_buffer(name, BufferSide::sampler, until);
}

/// The first message of a process that attaches: "DLBF", version, side. The answer is 1 with the
/// buffer's descriptors, or 0 and the reason for the refusal in one sentence.
struct BufferHello {
    static constexpr std::uint8_t version = 1;

    static constexpr std::array<std::byte, 6> encode(BufferSide side) {
        return {std::byte{'D'}, std::byte{'L'},     std::byte{'B'},
                std::byte{'F'}, std::byte{version}, static_cast<std::byte>(side)};
    }
};

}  // namespace daqloom::live
