// A buffer in shared memory between one writer and one reader in any two processes. It passes the
// data of a stream to a readout unit, or multi-event packets (MEPs) to a consumer.
//
//     writer:  reserve → fill → commit          (request)
//     reader:  next → use → acknowledge         (acknowledge, in the same order)
//
// Pieces are contiguous; many may be committed and not yet acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/handover.hpp"
#include "live/memory/shared_memory.hpp"

namespace daqloom::live {

struct BufferConfig {
    std::string name = "buffer";                ///< name in /proc
    base::Bytes bytes = base::Bytes{64} << 20;  ///< size of the area; 1 to 2^40
    std::uint32_t pieces = 1024;                ///< limit on pieces; a power of two up to 2^20
};

struct Piece {
    std::uint64_t tag = 0;  ///< set by the writer: the number of an MFP or MEP
    std::span<std::byte> bytes;
};

/// The memory of a buffer: an area for pieces, a ring of their descriptors, and the doorbells of
/// both sides. The side that creates the buffer passes it to the other side (`descriptors`, by a
/// Handover). The memory is freed when no process maps it any more. Values that the other side
/// writes are checked before use.
class Buffer {
  public:
    /// Creates a buffer. `reader`, `writer`: doorbell of a side that has one already, such as a
    /// unit's data thread; null: the buffer makes one. The doorbells must outlive the buffer.
    static base::expected<Buffer> create(const BufferConfig& config,
                                         const Doorbell* reader = nullptr,
                                         const Doorbell* writer = nullptr);
    /// A buffer with a ring of its own and the area of `whole`, which need not outlive it. `writer`
    /// as above.
    static base::expected<Buffer> create_beside(const Buffer& whole, const Doorbell* writer);
    /// Another process's buffer, from its `descriptors`.
    static base::expected<Buffer> attach(std::vector<OwnedFd> descriptors);

    /// Descriptors for the other side, valid as long as the buffer.
    [[nodiscard]] std::vector<int> descriptors() const;
    [[nodiscard]] const SharedMemory& area() const;
    [[nodiscard]] std::uint32_t pieces() const;  ///< limit on pieces
    /// Bytes of the pieces that are committed and not acknowledged, read by any thread.
    [[nodiscard]] base::Bytes held_bytes() const;
    /// The doorbells on which its reader and its writer sleep, for a thread that also waits for
    /// other inputs.
    [[nodiscard]] const Doorbell& reader_bell() const;
    [[nodiscard]] const Doorbell& writer_bell() const;

    Buffer(Buffer&&) noexcept;
    Buffer& operator=(Buffer&&) noexcept;
    ~Buffer();

  private:
    friend class BufferWriter;
    friend class BufferReader;
    struct Parts;
    explicit Buffer(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

/// The writing side of a buffer, which must outlive it; only one at a time. A new writer, in the
/// same or another process, continues where the previous one stopped: a piece that was reserved and
/// not committed is free again, and a closed buffer is open again.
class BufferWriter {
  public:
    explicit BufferWriter(Buffer& buffer);

    /// Reserves space for a piece of up to `bytes` bytes, aligned to a cache line; none if there is
    /// no space: retry when the reader has acknowledged more pieces. Cancels an earlier reservation
    /// that was not committed.
    [[nodiscard]] std::optional<std::span<std::byte>> reserve(base::Bytes bytes);
    /// Commits the first `bytes` of the reserved piece.
    void commit(std::uint64_t tag, base::Bytes bytes);

    /// Commits a piece anywhere in the area, for a writer that manages the area itself and does not
    /// reserve. False: too many pieces are unacknowledged.
    [[nodiscard]] bool put(std::uint64_t tag, base::Bytes offset, base::Bytes bytes);

    /// Total number of pieces committed, and of pieces acknowledged.
    [[nodiscard]] std::uint64_t committed() const;
    [[nodiscard]] std::uint64_t acknowledged() const;

    /// Closes the buffer: no more pieces will be committed, and a reader that has read all pieces
    /// is at the end.
    void close();
    /// Takes the reading side from its reader, for good. Returns the final count of acknowledged
    /// pieces: the reader's later acknowledgements fail.
    std::uint64_t revoke();
    /// Sets the number of acknowledged pieces at which the doorbell rings once, to save wake-ups.
    void ring_at(std::uint64_t acknowledged) const;
    /// Sleeps until more than `since` pieces are acknowledged, or until `until`.
    void wait(std::uint64_t since, base::Time until) const;

  private:
    [[nodiscard]] std::uint64_t possible(std::uint64_t count) const;

    Buffer::Parts* buffer_;
    std::uint64_t committed_;
    base::Bytes reserved_at_ = 0;
    base::Bytes reserved_ = 0;
};

/// The reading side of a buffer, which must outlive it; only one at a time. A new reader reads all
/// unacknowledged pieces again.
class BufferReader {
  public:
    explicit BufferReader(Buffer& buffer);

    /// The next piece, valid until it is acknowledged; none: no further piece is committed, or the
    /// next one is malformed (then `is_broken`).
    [[nodiscard]] std::optional<Piece> next();
    /// Acknowledges the oldest piece read. False: all pieces read are acknowledged, or this side
    /// was revoked, and the piece may have been overwritten while it was used.
    bool acknowledge();

    [[nodiscard]] bool has_next() const;              ///< a committed piece is unread
    [[nodiscard]] std::uint64_t outstanding() const;  ///< read and not acknowledged
    /// Closed, and all pieces are read; or revoked.
    [[nodiscard]] bool is_at_end() const;
    [[nodiscard]] bool is_broken() const;   ///< the writer's descriptors are invalid
    [[nodiscard]] bool is_revoked() const;  ///< the writer has taken this side from the reader
    /// Sleeps until there is a piece to read, the buffer is at its end, or `until`.
    void wait(base::Time until) const;

  private:
    Buffer::Parts* buffer_;
    std::uint64_t acknowledged_;
    std::uint64_t read_;
    bool broken_ = false;
};

}  // namespace daqloom::live
