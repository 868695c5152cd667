// A buffer in shared memory between one writer and one reader, of any two processes: the data of a
// stream on their way to a readout unit, or multi-event packets on their way to a consumer.
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
#include "live/doorbell.hpp"
#include "live/handover.hpp"
#include "live/shared_memory.hpp"

namespace daqloom::live {

struct BufferConfig {
    std::string name = "buffer";                ///< for /proc
    base::Bytes bytes = base::Bytes{64} << 20;  ///< of the area; 1 to 2^40
    std::uint32_t pieces = 1024;                ///< at most at once; a power of two up to 2^20
};

struct Piece {
    std::uint64_t tag = 0;  ///< the writer's word: the number of an MFP or MEP
    std::span<std::byte> bytes;
};

/// The memory of a buffer: an area for pieces, a ring of their descriptors, and the doorbells of
/// both sides. Whoever makes it hands it to the other side (`descriptors`, by a Handover); nothing
/// of it outlives the processes that map it. What the other side writes is checked before use.
class Buffer {
  public:
    /// A side that is a thread with a doorbell of its own, such as a unit's, gives it here; else
    /// the buffer makes one. They outlive it.
    static base::expected<Buffer> create(const BufferConfig& config,
                                         const Doorbell* reader = nullptr,
                                         const Doorbell* writer = nullptr);
    /// Another process's buffer, from what `descriptors` gave there.
    static base::expected<Buffer> attach(std::vector<OwnedFd> descriptors);

    /// To be handed over. Valid as long as the buffer.
    [[nodiscard]] std::vector<int> descriptors() const;
    [[nodiscard]] const SharedMemory& area() const;
    [[nodiscard]] std::uint32_t pieces() const;  ///< at most at once
    /// What its reader and its writer sleep on: for who waits for something else as well.
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

/// The writing side; one at a time, and the buffer outlives it. A new one, in the same or another
/// process, goes on where the one before it stopped: what that one had reserved and not committed
/// is free again, and a buffer that it closed is open again.
class BufferWriter {
  public:
    explicit BufferWriter(Buffer& buffer);

    /// Room for a piece of up to so many bytes, on a cache line; none: ask again when the reader
    /// has acknowledged more. Gives up an earlier piece that was not committed.
    [[nodiscard]] std::optional<std::span<std::byte>> reserve(base::Bytes bytes);
    /// The first `bytes` of what was reserved are complete.
    void commit(std::uint64_t tag, base::Bytes bytes);

    /// For who manages the area himself, and does not reserve: a piece anywhere in it. False: too
    /// many are not acknowledged.
    [[nodiscard]] bool put(std::uint64_t tag, base::Bytes offset, base::Bytes bytes);

    /// Pieces ever committed, and of these ever acknowledged.
    [[nodiscard]] std::uint64_t committed() const;
    [[nodiscard]] std::uint64_t acknowledged() const;
    /// Of the piece that this writer committed last.
    [[nodiscard]] base::Bytes last_bytes() const { return last_bytes_; }

    /// No more will be committed: a reader that has read all knows that it is at the end.
    void close();
    /// The bell is rung once so many are acknowledged, and not for each before: fewer wake-ups.
    void want(std::uint64_t acknowledged) const;
    /// Sleeps until more is acknowledged than `seen`, or until then.
    void wait(std::uint64_t seen, base::Time until) const;

  private:
    Buffer::Parts* buffer_;
    std::uint64_t committed_;
    base::Bytes reserved_at_ = 0;
    base::Bytes reserved_ = 0;
    base::Bytes last_bytes_ = 0;
};

/// The reading side; one at a time, and the buffer outlives it. A new one reads again what was not
/// acknowledged.
class BufferReader {
  public:
    explicit BufferReader(Buffer& buffer);

    /// The next piece; none: nothing more has been committed yet, or it is malformed (then
    /// `is_broken`). Valid until it is acknowledged.
    [[nodiscard]] std::optional<Piece> next();
    /// The oldest piece that was read and is not acknowledged. False: there is none.
    bool acknowledge();

    [[nodiscard]] bool has_next() const;              ///< something is committed and not read
    [[nodiscard]] std::uint64_t outstanding() const;  ///< read and not acknowledged
    [[nodiscard]] bool is_at_end() const;             ///< closed, and all is read
    [[nodiscard]] bool is_broken() const;             ///< the writer's descriptors make no sense
    /// Sleeps until there is something to read, the end, or until then.
    void wait(base::Time until) const;

  private:
    Buffer::Parts* buffer_;
    std::uint64_t acknowledged_;
    std::uint64_t read_;
    bool broken_ = false;
};

}  // namespace daqloom::live
