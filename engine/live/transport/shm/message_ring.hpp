// Messages from one unit to another through memory that both map: a ring of bytes with one writer
// and one reader.
//
//     record:  length u32 · kind u32 · bytes, up to a multiple of 8
//
// The reader does not trust the content of the ring: it copies a record and then validates the
// copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace daqloom::live {

/// Header at the beginning of the ring's memory, before the records.
struct MessageRingHeader {
    alignas(64) std::atomic<std::uint64_t> written;  ///< bytes since the creation
    alignas(64) std::atomic<std::uint64_t> read;     ///< bytes since the creation
    std::atomic<std::uint32_t> writer_waits;  ///< for room: ring its doorbell when there is room
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Bytes of a ring's memory; `capacity` is a power of two, at least 64.
constexpr base::Bytes message_ring_bytes(std::size_t capacity) {
    return static_cast<base::Bytes>(sizeof(MessageRingHeader) + capacity);
}

/// Writer of a ring. The memory must be zeroed before the ring is used and must outlive the writer.
class MessageRingWriter {
  public:
    explicit MessageRingWriter(std::span<std::byte> memory);

    enum class Put { done, no_room, broken };  ///< broken: the reader's count is invalid
    /// Writes the whole record or nothing. The reader sees it immediately.
    [[nodiscard]] Put put(std::uint32_t kind, std::span<const std::byte> bytes);

    /// Whether the last record that did not fit would fit now. If not, marks the writer as waiting
    /// for the reader's ring of its doorbell. Call it before sleeping.
    [[nodiscard]] bool has_room() const;

  private:
    void copy_in(std::uint64_t at, std::span<const std::byte> bytes);

    MessageRingHeader* header_;
    std::span<std::byte> records_;
    std::uint64_t written_ = 0;
    std::uint64_t read_ = 0;  ///< as last read
    std::uint64_t needed_ = 0;
};

/// Reader of a ring. The memory must be zeroed before the ring is used and must outlive the reader.
class MessageRingReader {
  public:
    /// `most`: limit on the bytes of a record.
    MessageRingReader(std::span<std::byte> memory, std::size_t most);

    enum class Got { record, nothing, broken };  ///< broken: the writer's count is invalid
    struct Record {
        std::uint32_t kind = 0;
        std::span<const std::byte> bytes;  ///< a copy, valid until the next call
    };
    [[nodiscard]] Got next(Record& record);

    /// Releases the space of all records read. True: the writer waits for space; ring its doorbell.
    [[nodiscard]] bool release();

    [[nodiscard]] bool is_empty() const;

  private:
    void copy_out(std::uint64_t at, std::span<std::byte> bytes) const;

    MessageRingHeader* header_;
    std::span<std::byte> records_;
    std::uint64_t read_ = 0;
    std::uint64_t written_ = 0;  ///< as last read
    std::vector<std::byte> record_;
};

}  // namespace daqloom::live
