#include "protocol/data/mep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "protocol/data/little_endian.hpp"
#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {

namespace {

using base::Bytes;
using Memory = std::span<const std::uint8_t>;

constexpr std::size_t entries_at = 40;
constexpr std::size_t entry_bytes = 16;
constexpr std::uint32_t incomplete_flag = 1;

MepEntry entry_at(Memory memory, std::uint32_t stream) {
    const std::size_t at = entries_at + entry_bytes * stream;
    return {.offset = static_cast<Bytes>(number_at<std::uint64_t>(memory, at)),
            .bytes = number_at<std::uint32_t>(memory, at + 8),
            .source_id = number_at<std::uint16_t>(memory, at + 12),
            .state = static_cast<MepState>(number_at<std::uint16_t>(memory, at + 14))};
}

void put_entry(const MepEntry& entry, std::uint32_t stream, std::span<std::uint8_t> memory) {
    const std::size_t at = entries_at + entry_bytes * stream;
    put_number<std::uint64_t>(memory, at, static_cast<std::uint64_t>(entry.offset));
    put_number<std::uint32_t>(memory, at + 8, static_cast<std::uint32_t>(entry.bytes));
    put_number<std::uint16_t>(memory, at + 12, entry.source_id);
    put_number<std::uint16_t>(memory, at + 14, static_cast<std::uint16_t>(entry.state));
}

/// Validates the entries of a table in order: each lies within the MEP, behind the previous one.
class Places {
  public:
    Places(std::uint32_t streams, Bytes mep) : end_(mep_overhead(streams)), mep_(mep) {}

    base::expected<void> take(const MepEntry& entry) {
        DAQLOOM_REFUSE_IF(entry.state > MepState::empty, "{}: state {}; expected 0 to 2",
                          who(entry), static_cast<unsigned>(entry.state));
        DAQLOOM_REFUSE_IF(entry.state == MepState::empty && entry.bytes != 0,
                          "{}: empty, with {} bytes; expected none", who(entry), entry.bytes);
        DAQLOOM_REFUSE_IF(entry.bytes < 0 || entry.bytes > largest_mfp_size,
                          "{}: {} bytes; expected 0 to {}", who(entry), entry.bytes,
                          largest_mfp_size);
        DAQLOOM_REFUSE_IF(
            entry.offset < end_ || entry.offset > mep_ || entry.bytes > mep_ - entry.offset,
            "{}: {} bytes at {}; expected a place behind the previous MFP, which "
            "ends at {}, and before the end of the MEP at {}",
            who(entry), entry.bytes, entry.offset, end_, mep_);
        end_ = entry.offset + entry.bytes;
        is_incomplete_ |= entry.state == MepState::missing;
        return {};
    }
    [[nodiscard]] bool is_incomplete() const { return is_incomplete_; }

  private:
    static std::string who(const MepEntry& entry) {
        return fmt::format("MEP, source {:#06x}", entry.source_id);
    }

    Bytes end_;
    Bytes mep_;
    bool is_incomplete_ = false;
};

}  // namespace

base::expected<void> encode_mep(const MepHeader& header, std::span<const MepEntry> entries,
                                std::span<std::uint8_t> mep) {
    DAQLOOM_REFUSE_IF(entries.size() > largest_mep_streams, "MEP of {} streams; give at most {}",
                      entries.size(), largest_mep_streams);
    const auto streams = static_cast<std::uint32_t>(entries.size());
    DAQLOOM_REFUSE_IF(mep.size() < static_cast<std::size_t>(mep_overhead(streams)),
                      "MEP of {} bytes; its header and table of {} streams take {}", mep.size(),
                      streams, mep_overhead(streams));
    Places places(streams, static_cast<Bytes>(mep.size()));
    for (std::uint32_t stream = 0; stream < streams; ++stream) {
        DAQLOOM_CHECK(places.take(entries[stream]));
        put_entry(entries[stream], stream, mep);
    }
    put_number<std::uint32_t>(mep, 0, mep_magic);
    put_number<std::uint32_t>(mep, 4, streams);
    put_number<std::uint64_t>(mep, 8, static_cast<std::uint64_t>(header.mep));
    put_number<std::uint64_t>(mep, 16, header.event_id);
    put_number<std::uint32_t>(mep, 24, header.events);
    put_number<std::uint32_t>(mep, 28, places.is_incomplete() ? incomplete_flag : 0);
    put_number<std::uint64_t>(mep, 32, mep.size());
    return {};
}

base::expected<Bytes> mep_size(Memory front) {
    DAQLOOM_REFUSE_IF(front.size() < static_cast<std::size_t>(mep_overhead(0)),
                      "MEP cut off: {} bytes, and its header takes {}", front.size(),
                      mep_overhead(0));
    const auto magic = number_at<std::uint32_t>(front, 0);
    DAQLOOM_REFUSE_IF(magic != mep_magic, "no MEP: it begins with {:#010x} instead of {:#010x}",
                      magic, mep_magic);
    const auto streams = number_at<std::uint32_t>(front, 4);
    DAQLOOM_REFUSE_IF(streams > largest_mep_streams, "MEP of {} streams; expected at most {}",
                      streams, largest_mep_streams);
    const auto bytes = number_at<std::uint64_t>(front, 32);
    DAQLOOM_REFUSE_IF(bytes < static_cast<std::uint64_t>(mep_overhead(streams)) ||
                          bytes > static_cast<std::uint64_t>(std::numeric_limits<Bytes>::max()),
                      "MEP of {} bytes; its header and table of {} streams take {}", bytes, streams,
                      mep_overhead(streams));
    return static_cast<Bytes>(bytes);
}

bool lacks_mfps(Memory front) {
    return front.size() >= static_cast<std::size_t>(mep_overhead(0)) &&
           (number_at<std::uint32_t>(front, 28) & incomplete_flag) != 0;
}

base::expected<MepView> MepView::decode(Memory memory) {
    DAQLOOM_TRY(bytes, mep_size(memory));
    DAQLOOM_REFUSE_IF(static_cast<std::size_t>(bytes) != memory.size(),
                      "MEP header gives {} bytes, but the packet has {}", bytes, memory.size());
    return decode_front(memory, bytes);
}

Bytes MepView::bytes_for_size(Memory front) {
    return mep_overhead(std::min(number_at<std::uint32_t>(front, 4), largest_mep_streams));
}

std::optional<Bytes> MepView::size_from(Memory front) {
    const auto bytes = mep_size(front);
    const bool is_right =
        bytes && std::ssize(front) >= bytes_for_size(front) && decode_front(front, *bytes);
    return is_right ? std::optional(*bytes) : std::nullopt;
}

/// Decodes header and table of a MEP of `bytes` bytes.
base::expected<MepView> MepView::decode_front(Memory memory, Bytes bytes) {
    const auto streams = number_at<std::uint32_t>(memory, 4);
    Places places(streams, bytes);
    for (std::uint32_t stream = 0; stream < streams; ++stream) {
        DAQLOOM_CHECK(places.take(entry_at(memory, stream)));
    }
    const auto flags = number_at<std::uint32_t>(memory, 28);
    const std::uint32_t expected = places.is_incomplete() ? incomplete_flag : 0;
    DAQLOOM_REFUSE_IF(flags != expected,
                      "MEP with flags {:#x}; expected {:#x} from the states of its streams", flags,
                      expected);
    return MepView({.mep = MepId{number_at<std::uint64_t>(memory, 8)},
                    .event_id = number_at<std::uint64_t>(memory, 16),
                    .events = number_at<std::uint32_t>(memory, 24)},
                   streams, memory);
}

bool MepView::is_complete() const { return !lacks_mfps(memory_); }

MepEntry MepView::entry(std::uint32_t stream) const { return entry_at(memory_, stream); }

std::span<const std::uint8_t> MepView::mfp(std::uint32_t stream) const {
    const MepEntry here = entry(stream);
    if (here.state != MepState::complete) {
        return {};
    }
    return memory_.subspan(static_cast<std::size_t>(here.offset),
                           static_cast<std::size_t>(here.bytes));
}

}  // namespace daqloom::protocol
