#include "live/memory/buffer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace daqloom::live {

namespace {

constexpr base::Bytes kLine = 64;
constexpr base::Bytes kMostBytes = base::Bytes{1} << 40;
constexpr std::uint32_t kMostPieces = 1U << 20;
/// Bit of the count of acknowledged pieces of a revoked reader.
constexpr std::uint64_t kRevoked = std::uint64_t{1} << 63;
constexpr std::size_t kDescriptors = 6;  ///< control, area, and two of each doorbell

/// Descriptor of a piece. Each member is loaded once, because the other side may change it later.
struct Descriptor {
    std::atomic<std::uint64_t> tag;
    std::atomic<base::Bytes> offset;
    std::atomic<base::Bytes> bytes;
};

/// Front of the control block in shared memory; the ring of descriptors follows.
struct Control {
    alignas(kLine) std::atomic<std::uint64_t> committed;  ///< written by the writer
    std::atomic<std::uint32_t> closed;
    std::atomic<std::uint64_t> ring_at;  ///< `acknowledged` at which the writer's doorbell rings
    alignas(kLine) std::atomic<std::uint64_t> acknowledged;  ///< written by the reader
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<base::Bytes>::is_always_lock_free);

constexpr base::Bytes control_bytes(std::uint32_t pieces) {
    return static_cast<base::Bytes>(sizeof(Control) + sizeof(Descriptor) * pieces);
}

/// Arithmetic on counts that wrap around.
constexpr bool is_before(std::uint64_t count, std::uint64_t other) {
    return static_cast<std::int64_t>(count - other) < 0;
}

/// Number of descriptors in a control block of this size; 0: no control block has this size.
std::uint32_t pieces_of(std::size_t bytes) {
    const std::size_t ring = bytes < sizeof(Control) ? 0 : bytes - sizeof(Control);
    const std::size_t pieces = ring / sizeof(Descriptor);
    return ring % sizeof(Descriptor) == 0 && std::has_single_bit(pieces) && pieces <= kMostPieces
               ? static_cast<std::uint32_t>(pieces)
               : 0;
}

/// End of the piece's last cache line. An empty piece takes a cache line as well.
constexpr base::Bytes end_of(base::Bytes offset, base::Bytes bytes) {
    return (offset + std::max<base::Bytes>(bytes, 1) + kLine - 1) / kLine * kLine;
}

}  // namespace

struct Buffer::Parts {
    SharedMemory control_memory;
    SharedMemory area;
    Doorbell made_for_reader;
    Doorbell made_for_writer;
    std::uint32_t pieces;
    const Doorbell* reader_bell = &made_for_reader;
    const Doorbell* writer_bell = &made_for_writer;

    [[nodiscard]] Control& control() const {
        return *reinterpret_cast<Control*>(control_memory.bytes().data());
    }
    [[nodiscard]] Descriptor& descriptor(std::uint64_t number) const {
        auto* ring = reinterpret_cast<Descriptor*>(control_memory.bytes().data() + sizeof(Control));
        return ring[number % pieces];
    }
    [[nodiscard]] base::Bytes bytes() const {
        return static_cast<base::Bytes>(area.bytes().size());
    }
    /// The piece with this number; none: the descriptor refers to bytes outside of the area.
    [[nodiscard]] std::optional<Piece> piece(std::uint64_t number) const {
        const Descriptor& there = descriptor(number);
        const base::Bytes at = there.offset.load(std::memory_order_relaxed);
        const base::Bytes length = there.bytes.load(std::memory_order_relaxed);
        if (at < 0 || length < 0 || at > bytes() || length > bytes() - at) {
            return std::nullopt;
        }
        return Piece{.tag = there.tag.load(std::memory_order_relaxed), .bytes = span(at, length)};
    }
    [[nodiscard]] std::span<std::byte> span(base::Bytes at, base::Bytes length) const {
        return area.bytes().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
    }
    [[nodiscard]] base::Bytes offset_of(const Piece& piece) const {
        return piece.bytes.data() - area.bytes().data();
    }
    /// Offset of free space behind the newest piece of [acknowledged, committed); none: no space.
    [[nodiscard]] std::optional<base::Bytes> room(std::uint64_t acknowledged,
                                                  std::uint64_t committed,
                                                  base::Bytes needed) const;
};

std::optional<base::Bytes> Buffer::Parts::room(std::uint64_t acknowledged, std::uint64_t committed,
                                               base::Bytes needed) const {
    base::Bytes head = 0;
    if (committed > 0) {
        const auto newest = piece(committed - 1);
        if (!newest) {
            return std::nullopt;
        }
        head = end_of(offset_of(*newest), static_cast<base::Bytes>(newest->bytes.size()));
    }
    // Space is free behind the newest piece up to the end of the area, or before the oldest piece.
    const auto oldest = acknowledged == committed ? std::nullopt : piece(acknowledged);
    if (acknowledged != committed && !oldest) {
        return std::nullopt;
    }
    const base::Bytes tail = oldest ? offset_of(*oldest) : head;
    if (oldest && head <= tail) {
        return needed <= tail - head ? std::optional(head) : std::nullopt;
    }
    if (needed <= bytes() - head) {
        return head;
    }
    return needed <= (oldest ? tail : bytes()) ? std::optional<base::Bytes>(0) : std::nullopt;
}

Buffer::Buffer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

base::expected<Buffer> Buffer::create(const BufferConfig& config, const Doorbell* reader,
                                      const Doorbell* writer) {
    DAQLOOM_REFUSE_IF(config.bytes < 1 || config.bytes > kMostBytes,
                      "{} bytes for buffer {}; give 1 to 2^40", config.bytes, config.name);
    DAQLOOM_REFUSE_IF(!std::has_single_bit(config.pieces) || config.pieces > kMostPieces,
                      "{} pieces for buffer {}; give a power of two up to 2^20", config.pieces,
                      config.name);
    DAQLOOM_TRY(control,
                SharedMemory::create(config.name + "-control", control_bytes(config.pieces)));
    DAQLOOM_TRY(area, SharedMemory::create(config.name, config.bytes));
    DAQLOOM_TRY(for_reader, Doorbell::create());
    DAQLOOM_TRY(for_writer, Doorbell::create());
    std::unique_ptr<Parts> parts(new Parts{std::move(control), std::move(area),
                                           std::move(for_reader), std::move(for_writer),
                                           config.pieces});
    parts->reader_bell = reader != nullptr ? reader : parts->reader_bell;
    parts->writer_bell = writer != nullptr ? writer : parts->writer_bell;
    return Buffer(std::move(parts));
}

base::expected<Buffer> Buffer::create_beside(const Buffer& whole, const Doorbell* writer) {
    DAQLOOM_TRY(buffer, create({.name = "daqloom-consumer", .bytes = 1, .pieces = whole.pieces()},
                               nullptr, writer));
    DAQLOOM_TRY(area, SharedMemory::attach(OwnedFd(::dup(whole.area().fd())),
                                           SharedMemory::Access::read_write, kMostBytes));
    buffer.parts_->area = std::move(area);
    return Buffer(std::move(buffer.parts_));
}

base::expected<Buffer> Buffer::attach(std::vector<OwnedFd> descriptors) {
    using enum SharedMemory::Access;
    if (descriptors.size() != kDescriptors) {
        return base::system_failure(fmt::format("a buffer of {} descriptors; expected {}",
                                                descriptors.size(), kDescriptors));
    }
    DAQLOOM_TRY(control, SharedMemory::attach(std::move(descriptors[0]), read_write,
                                              control_bytes(kMostPieces)));
    DAQLOOM_TRY(area, SharedMemory::attach(std::move(descriptors[1]), read_write, kMostBytes));
    DAQLOOM_TRY(for_reader, Doorbell::attach(std::move(descriptors[2]), std::move(descriptors[3])));
    DAQLOOM_TRY(for_writer, Doorbell::attach(std::move(descriptors[4]), std::move(descriptors[5])));
    const std::uint32_t pieces = pieces_of(control.bytes().size());
    if (pieces == 0) {
        return base::system_failure("a buffer whose control block has an impossible size");
    }
    return Buffer(
        std::unique_ptr<Parts>(new Parts{std::move(control), std::move(area), std::move(for_reader),
                                         std::move(for_writer), pieces}));
}

std::vector<int> Buffer::descriptors() const {
    return {parts_->control_memory.fd(),    parts_->area.fd(),
            parts_->reader_bell->page_fd(), parts_->reader_bell->event_fd(),
            parts_->writer_bell->page_fd(), parts_->writer_bell->event_fd()};
}

const SharedMemory& Buffer::area() const { return parts_->area; }
std::uint32_t Buffer::pieces() const { return parts_->pieces; }
base::Bytes Buffer::held_bytes() const {
    const Control& control = parts_->control();
    const std::uint64_t acknowledged = control.acknowledged.load(std::memory_order_acquire);
    const std::uint64_t committed = control.committed.load(std::memory_order_acquire);
    base::Bytes held = 0;
    // The difference is bounded, since the other side may write any number.
    for (std::uint64_t left = std::min<std::uint64_t>(committed - acknowledged, pieces()); left > 0;
         --left) {
        const auto piece = parts_->piece(committed - left);
        held += piece ? static_cast<base::Bytes>(piece->bytes.size()) : 0;
    }
    return std::min(held, parts_->bytes());
}
const Doorbell& Buffer::reader_bell() const { return *parts_->reader_bell; }
const Doorbell& Buffer::writer_bell() const { return *parts_->writer_bell; }

BufferWriter::BufferWriter(Buffer& buffer)
    : buffer_(buffer.parts_.get()),
      committed_(buffer_->control().committed.load(std::memory_order_acquire)) {
    buffer_->control().closed.store(0, std::memory_order_relaxed);
    ring_at(0);
    // Ring in place of the previous writer, which may have died between its commit and its ring.
    buffer_->reader_bell->ring();
}

std::optional<std::span<std::byte>> BufferWriter::reserve(base::Bytes bytes) {
    reserved_ = 0;
    const std::uint64_t acked = acknowledged();
    if (bytes < 0 || committed_ - acked >= buffer_->pieces) {
        return std::nullopt;
    }
    const auto at = buffer_->room(acked, committed_, std::max<base::Bytes>(bytes, 1));
    if (!at) {
        return std::nullopt;
    }
    reserved_at_ = *at;
    reserved_ = bytes;
    return buffer_->span(*at, bytes);
}

void BufferWriter::commit(std::uint64_t tag, base::Bytes bytes) {
    const base::Bytes length = std::clamp<base::Bytes>(bytes, 0, std::exchange(reserved_, 0));
    [[maybe_unused]] const bool is_in = put(tag, reserved_at_, length);
}

bool BufferWriter::put(std::uint64_t tag, base::Bytes offset, base::Bytes bytes) {
    if (committed_ - acknowledged() >= buffer_->pieces) {
        return false;
    }
    Descriptor& there = buffer_->descriptor(committed_);
    there.tag.store(tag, std::memory_order_relaxed);
    there.offset.store(offset, std::memory_order_relaxed);
    there.bytes.store(bytes, std::memory_order_relaxed);
    buffer_->control().committed.store(++committed_, std::memory_order_release);
    buffer_->reader_bell->ring();
    return true;
}

std::uint64_t BufferWriter::committed() const { return committed_; }

std::uint64_t BufferWriter::acknowledged() const {
    return possible(buffer_->control().acknowledged.load(std::memory_order_seq_cst));
}

/// The count of acknowledged pieces, if it is possible. If the reader acknowledges pieces that were
/// never committed, the buffer counts as full.
std::uint64_t BufferWriter::possible(std::uint64_t count) const {
    return committed_ - count <= buffer_->pieces ? count : committed_ - buffer_->pieces;
}

std::uint64_t BufferWriter::revoke() {
    const std::uint64_t count =
        buffer_->control().acknowledged.fetch_xor(kRevoked, std::memory_order_seq_cst);
    buffer_->reader_bell->ring();
    return possible(count);
}

void BufferWriter::close() {
    buffer_->control().closed.store(1, std::memory_order_release);
    buffer_->reader_bell->ring();
}

void BufferWriter::wait(std::uint64_t since, base::Time until) const {
    ring_at(since + 1);
    buffer_->writer_bell->sleep(until,
                                [this, since] { return is_before(acknowledged(), since + 1); });
}

void BufferWriter::ring_at(std::uint64_t acknowledged) const {
    buffer_->control().ring_at.store(acknowledged, std::memory_order_seq_cst);
}

BufferReader::BufferReader(Buffer& buffer)
    : buffer_(buffer.parts_.get()),
      acknowledged_(buffer_->control().acknowledged.load(std::memory_order_acquire)),
      read_(acknowledged_) {
    // Ring for the previous reader, which may have died between acknowledging and ringing.
    buffer_->writer_bell->ring();
}

std::optional<Piece> BufferReader::next() {
    const std::uint64_t committed = buffer_->control().committed.load(std::memory_order_acquire);
    if (broken_ || committed == read_ || is_revoked()) {
        return std::nullopt;
    }
    const bool is_possible = committed - acknowledged_ <= buffer_->pieces && committed > read_;
    const auto piece = is_possible ? buffer_->piece(read_) : std::nullopt;
    broken_ = !piece;
    read_ += broken_ ? 0 : 1;
    return piece;
}

bool BufferReader::acknowledge() {
    if (acknowledged_ == read_) {
        return false;
    }
    // Pairs with the writer, which stores `ring_at` and then loads `acknowledged`: at least one
    // side sees the other's store.
    Control& control = buffer_->control();
    std::uint64_t expected = acknowledged_;
    if (!control.acknowledged.compare_exchange_strong(expected, acknowledged_ + 1,
                                                      std::memory_order_seq_cst)) {
        return false;
    }
    ++acknowledged_;
    if (!is_before(acknowledged_, control.ring_at.load(std::memory_order_seq_cst))) {
        buffer_->writer_bell->ring();
    }
    return true;
}

bool BufferReader::has_next() const {
    return !broken_ && buffer_->control().committed.load(std::memory_order_acquire) != read_;
}

std::uint64_t BufferReader::outstanding() const { return read_ - acknowledged_; }

bool BufferReader::is_at_end() const {
    if (is_revoked()) {
        return true;
    }
    // In this order, so that a reader that sees the close also sees all earlier commits.
    return buffer_->control().closed.load(std::memory_order_acquire) != 0 &&
           buffer_->control().committed.load(std::memory_order_acquire) == read_;
}

bool BufferReader::is_broken() const { return broken_; }

bool BufferReader::is_revoked() const {
    return buffer_->control().acknowledged.load(std::memory_order_relaxed) ==
           (acknowledged_ ^ kRevoked);
}

void BufferReader::wait(base::Time until) const {
    buffer_->reader_bell->sleep(until, [this] { return !has_next() && !is_at_end(); });
}

}  // namespace daqloom::live
