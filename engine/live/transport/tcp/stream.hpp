// Records between two units over one TCP connection. A record is a header and its data.
//
// [ header | message ][ header | piece of a write ][ header: writes received ] …
//
// A long write is sent in pieces, so that a message waits for at most one piece and for the data in
// the kernel. A header has a number and a checksum, a message has a checksum, and a piece may have
// one. A wrong header or message ends the connection; a write with a wrong piece is sent again.
// This file does no I/O.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/crc32c.hpp"
#include "base/ring.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// Header of a record, little-endian on the network.
struct RecordHeader {
    enum class Kind : std::uint32_t {
        message = 1,
        piece = 2,       ///< piece of a write that has more pieces
        last_piece = 3,  ///< last piece of a write
        written = 4,     ///< writes received since the last such record; without bytes
        damaged = 5,  ///< like `written`, and the write after those arrived damaged: send it again
    };

    Kind kind = Kind::message;
    std::uint32_t length = 0;     ///< length of the bytes behind the header
    std::uint64_t offset = 0;     ///< of a piece: offset in the receiver's arena
    std::uint32_t immediate = 0;  ///< of a last piece
    std::uint32_t count = 0;      ///< number of writes
    std::uint64_t number = 0;   ///< number of the record in its direction of the connection, from 0
    std::uint32_t content = 0;  ///< CRC32C of the bytes behind the header; pieces without check: 0
    std::uint32_t check = 0;    ///< CRC32C of the header before it

    void seal() { check = checksum(); }
    [[nodiscard]] bool is_whole() const { return check == checksum(); }

  private:
    [[nodiscard]] std::uint32_t checksum() const {
        return base::crc32c(std::as_bytes(std::span(this, 1)).first(sizeof *this - sizeof check));
    }
};
static_assert(sizeof(RecordHeader) == 40);

/// Queue of data to one unit, in the order of sending. Allocates only at its creation.
class OutgoingStream {
  public:
    static constexpr std::size_t kPiece = 256 << 10;  ///< bytes of a write in a record
    static constexpr std::size_t kParts = 64;         ///< limit on the parts that `gather` returns

    /// `message_bytes`: space for messages, a power of two. `writes`: limit on writes that are not
    /// done. `has_checksums`: pieces have checksums; the same at both ends.
    OutgoingStream(std::size_t message_bytes, std::uint32_t writes, bool has_checksums)
        : copied_(message_bytes), has_checksums_(has_checksums), most_writes_(writes) {
        segments_.reserve(kMostSegments);
        waiting_.reserve(writes);
        given_.reserve(writes);
        refused_.reserve(writes);
    }

    /// False: no room now.
    [[nodiscard]] bool put_message(std::span<const std::byte> bytes) {
        if (room() < bytes.size() + sizeof(RecordHeader) + kReserve) {
            return false;
        }
        put({.kind = RecordHeader::Kind::message,
             .length = static_cast<std::uint32_t>(bytes.size()),
             .content = base::crc32c(bytes)});
        copy_in(bytes);
        return true;
    }
    /// False: no room now.
    [[nodiscard]] bool put_write(const Write& write) {
        if (waiting_.size() + given_.size() == most_writes_) {
            return false;
        }
        waiting_.push(write);
        return true;
    }
    /// Acknowledges writes received, in one of the next records.
    void acknowledge(std::uint32_t writes) { owed_ += writes; }
    /// Reports the write after those as damaged.
    void refuse_write() { refused_.push(std::exchange(owed_, 0)); }

    [[nodiscard]] bool empty() const {
        return segments_.empty() && waiting_.empty() && owed_ == 0 && refused_.empty();
    }
    [[nodiscard]] bool has_room() const {
        return room() >= Transport::most_message + sizeof(RecordHeader) + kReserve;
    }

    /// The next bytes to send; valid until the next put.
    std::span<iovec> gather();
    /// Marks bytes of these as sent.
    void on_sent(std::size_t bytes);

    struct Done {
        std::uint64_t context = 0;
        std::size_t bytes = 0;
    };
    /// Completes the oldest write sent. False: there is none.
    [[nodiscard]] bool pop_done(Done& done) {
        if (given_.empty()) {
            return false;
        }
        done = {given_.front().context, given_.front().bytes.size()};
        given_.pop();
        return true;
    }
    /// Queues the oldest sent write again, behind all other writes. False: there is none.
    [[nodiscard]] bool repeat_write() {
        if (given_.empty()) {
            return false;
        }
        waiting_.push(given_.front());
        given_.pop();
        return true;
    }

  private:
    /// Bytes of `copied_`, or of a write.
    struct Segment {
        const std::byte* bytes = nullptr;  ///< null: in `copied_`
        std::size_t length = 0;
    };
    static constexpr std::size_t kMostSegments = 2 * kParts;
    static constexpr std::size_t kMostPieces = kParts / 2 - 2;
    /// Space reserved for headers of pieces, so that messages do not block writes.
    static constexpr std::size_t kReserve = (kMostPieces + 2) * sizeof(RecordHeader);

    [[nodiscard]] std::size_t room() const { return copied_.size() - (end_ - begin_); }
    void copy_in(std::span<const std::byte> bytes);
    void put(RecordHeader header) {
        header.number = next_number_++;
        header.seal();
        copy_in(std::as_bytes(std::span(&header, 1)));
    }
    void put_answers();
    void take_up_writes();

    std::vector<std::byte> copied_;  ///< headers and messages, in a ring
    std::size_t begin_ = 0;          ///< position in the ring, ever increasing
    std::size_t end_ = 0;
    base::Ring<Segment> segments_;  ///< next to be sent
    std::size_t sent_ = 0;          ///< bytes sent of the first segment
    std::size_t pieces_ = 0;        ///< pieces among the segments
    std::size_t piece_bytes_ = 0;   ///< bytes of these pieces
    std::uint64_t next_number_ = 0;
    bool has_checksums_;
    std::uint32_t most_writes_;
    base::Ring<Write> waiting_;
    std::size_t taken_up_ = 0;           ///< bytes queued of the first write
    base::Ring<Write> given_;            ///< sent, not done
    base::Ring<std::uint32_t> refused_;  ///< writes to acknowledge before each that came damaged
    std::uint32_t owed_ = 0;             ///< writes to acknowledge behind these
    std::array<iovec, kParts> parts_{};
};

/// Receives data from one unit, validates them and puts them into their places.
class IncomingStream {
  public:
    /// Limit on damaged writes in a row, which ends the connection.
    static constexpr std::uint32_t kMostDamaged = 16;

    IncomingStream(std::span<std::byte> arena, bool has_checksums)
        : arena_(arena), has_checksums_(has_checksums), message_(Transport::most_message) {}

    /// Destination of the next received bytes, which saves a copy; empty: a header is next.
    [[nodiscard]] std::span<std::byte> place() const { return place_; }

    /// Processes received bytes: first `in_place` bytes, which already lie in `place`, then
    /// `behind`. Calls events.on_message(bytes), on_write(immediate), on_damaged_write(),
    /// on_acknowledged(writes) and on_refused_write(). The last two return whether as many writes
    /// were under way. Stops when events.is_over(). False: the data are invalid or damaged.
    template <class Events>
    [[nodiscard]] bool take(std::size_t in_place, std::span<const std::byte> behind,
                            Events& events) {
        consume(in_place);
        if (in_place > 0 && place_.empty() && !end_record(message_of_record(), events)) {
            return false;
        }
        while (!behind.empty() && !events.is_over()) {
            if (!take_some(behind, events)) {
                return false;
            }
        }
        return true;
    }
    /// Whether `take` failed by a damaged header or message, or by too many damaged writes.
    [[nodiscard]] bool is_damaged() const { return is_damaged_; }

  private:
    using Kind = RecordHeader::Kind;

    /// Counts bytes that have arrived at the place.
    void consume(std::size_t bytes) {
        if (has_checksums_ || header_.kind == Kind::message) {
            content_ = base::crc32c(place_.first(bytes), content_);
        }
        place_ = place_.subspan(bytes);
    }
    [[nodiscard]] bool damaged() {
        is_damaged_ = true;
        return false;
    }

    /// Takes as much of the first record of `bytes` as there is.
    template <class Events>
    bool take_some(std::span<const std::byte>& bytes, Events& events) {
        if (place_.empty()) {
            const std::size_t more = std::min(sizeof header_ - header_bytes_, bytes.size());
            std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, bytes.data(), more);
            header_bytes_ += more;
            bytes = bytes.subspan(more);
            if (header_bytes_ < sizeof header_) {
                return true;
            }
            header_bytes_ = 0;
            if (!begin_record()) {
                return false;
            }
            if (header_.kind == Kind::message && header_.length <= bytes.size()) {
                // A complete message is not copied.
                const auto message = bytes.first(header_.length);
                bytes = bytes.subspan(header_.length);
                place_ = {};
                content_ = base::crc32c(message);
                return end_record(message, events);
            }
            if (place_.empty()) {
                return end_record({}, events);
            }
        }
        const std::size_t more = std::min(place_.size(), bytes.size());
        std::memcpy(place_.data(), bytes.data(), more);
        bytes = bytes.subspan(more);
        consume(more);
        return more == 0 || !place_.empty() || end_record(message_of_record(), events);
    }

    [[nodiscard]] std::span<const std::byte> message_of_record() const {
        return std::span(message_).first(header_.kind == Kind::message ? header_.length : 0);
    }

    /// False: the header is invalid.
    [[nodiscard]] bool begin_record();

    template <class Events>
    bool end_record(std::span<const std::byte> message, Events& events) {
        switch (header_.kind) {
            case Kind::message:
                if (content_ != header_.content) {
                    return damaged();
                }
                events.on_message(message);
                return true;
            case Kind::piece:
                has_damage_ |= content_ != header_.content;
                return true;
            case Kind::last_piece:
                return end_write(events);
            case Kind::written:
                return events.on_acknowledged(header_.count);
            case Kind::damaged:
                return events.on_acknowledged(header_.count) && events.on_refused_write();
        }
        return false;
    }

    template <class Events>
    bool end_write(Events& events) {
        has_damage_ |= content_ != header_.content;
        if (!std::exchange(has_damage_, false)) {
            damaged_in_a_row_ = 0;
            events.on_write(header_.immediate);
            return true;
        }
        events.on_damaged_write();
        return ++damaged_in_a_row_ < kMostDamaged || damaged();
    }

    std::span<std::byte> arena_;
    bool has_checksums_;
    std::vector<std::byte> message_;  ///< a message that arrives in parts
    RecordHeader header_;
    std::size_t header_bytes_ = 0;   ///< bytes of the header that have arrived
    std::uint64_t next_number_ = 0;  ///< number of the next record
    std::span<std::byte> place_;     ///< place of the missing bytes of the record
    std::uint32_t content_ = 0;      ///< checksum of the bytes that have arrived
    bool has_damage_ = false;        ///< the write under way has a damaged piece
    std::uint32_t damaged_in_a_row_ = 0;
    bool is_damaged_ = false;
};

}  // namespace daqloom::live
