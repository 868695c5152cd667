// What two units say to each other over one TCP connection: records, each a header and its bytes.
//
//   [ header | message ][ header | piece of a write ][ header: writes that have come ] …
//
// A long write goes in pieces, so that a message waits for a piece at most, besides what the
// kernel holds. A header has a number and a checksum, a message has a checksum, and a piece may
// have one. What comes with a wrong header or a wrong message ends the connection; a write with a
// wrong piece is sent again. Sans I/O.
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

/// As it goes over the network, little-endian.
struct RecordHeader {
    enum class Kind : std::uint32_t {
        message = 1,
        piece = 2,       ///< of a write, which goes on
        last_piece = 3,  ///< then all of it is there
        written = 4,     ///< so many writes have come since the last such record; without bytes
        damaged = 5,     ///< the same, and the write behind them came damaged: send it again
    };

    Kind kind = Kind::message;
    std::uint32_t length = 0;     ///< of the bytes behind it
    std::uint64_t offset = 0;     ///< of a piece, in the receiver's arena
    std::uint32_t immediate = 0;  ///< of a last piece
    std::uint32_t count = 0;      ///< of writes
    std::uint64_t number = 0;     ///< of the record in its direction of the connection, from 0
    std::uint32_t content = 0;    ///< CRC32C of the bytes behind it; of a piece 0 if not checked
    std::uint32_t check = 0;      ///< CRC32C of the header before it

    void seal() { check = checksum(); }
    [[nodiscard]] bool is_whole() const { return check == checksum(); }

  private:
    [[nodiscard]] std::uint32_t checksum() const {
        return base::crc32c(std::as_bytes(std::span(this, 1)).first(sizeof *this - sizeof check));
    }
};
static_assert(sizeof(RecordHeader) == 40);

/// What is to be sent to one unit, in the order in which it is sent. Nothing is allocated after it
/// is made.
class OutgoingStream {
  public:
    static constexpr std::size_t kPiece = 256 << 10;  ///< bytes of a write in a record
    static constexpr std::size_t kParts = 64;         ///< that `gather` returns at most

    /// Room for messages, a power of two of bytes, and for writes that are not done. Pieces have
    /// checksums if both ends have them.
    OutgoingStream(std::size_t message_bytes, std::uint32_t writes, bool has_checksums)
        : copied_(message_bytes), has_checksums_(has_checksums), most_writes_(writes) {
        segments_.reserve(kMostSegments);
        waiting_.reserve(writes);
        given_.reserve(writes);
        refused_.reserve(writes);
    }

    /// False: there is no room now.
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
    /// The same.
    [[nodiscard]] bool put_write(const Write& write) {
        if (waiting_.size() + given_.size() == most_writes_) {
            return false;
        }
        waiting_.push(write);
        return true;
    }
    /// The other side is to be told that so many more of its writes have come.
    void acknowledge(std::uint32_t writes) { owed_ += writes; }
    /// The write after those came damaged.
    void refuse_write() { refused_.push(std::exchange(owed_, 0)); }

    [[nodiscard]] bool empty() const {
        return segments_.empty() && waiting_.empty() && owed_ == 0 && refused_.empty();
    }
    [[nodiscard]] bool has_room() const {
        return room() >= Transport::most_message + sizeof(RecordHeader) + kReserve;
    }

    /// What goes next; valid until anything is put.
    std::span<iovec> gather();
    /// So many bytes of that have gone.
    void on_sent(std::size_t bytes);

    struct Done {
        std::uint64_t context = 0;
        std::size_t bytes = 0;
    };
    /// The first of the writes that were given to the network is done. False: there is none.
    [[nodiscard]] bool pop_done(Done& done) {
        if (given_.empty()) {
            return false;
        }
        done = {given_.front().context, given_.front().bytes.size()};
        given_.pop();
        return true;
    }
    /// The first of them has to go again, behind all others. False: there is none.
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
        const std::byte* bytes = nullptr;  ///< null: of `copied_`
        std::size_t length = 0;
    };
    static constexpr std::size_t kMostSegments = 2 * kParts;
    static constexpr std::size_t kMostPieces = kParts / 2 - 2;
    /// For headers of pieces, so that messages do not keep writes from going.
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
    std::size_t begin_ = 0;          ///< places of it, without end
    std::size_t end_ = 0;
    base::Ring<Segment> segments_;  ///< what goes next
    std::size_t sent_ = 0;          ///< bytes of the first of them
    std::size_t pieces_ = 0;        ///< among them
    std::size_t piece_bytes_ = 0;   ///< of these
    std::uint64_t next_number_ = 0;
    bool has_checksums_;
    std::uint32_t most_writes_;
    base::Ring<Write> waiting_;
    std::size_t taken_up_ = 0;           ///< bytes of the first of them
    base::Ring<Write> given_;            ///< to the network, not done
    base::Ring<std::uint32_t> refused_;  ///< writes to acknowledge before each that came damaged
    std::uint32_t owed_ = 0;             ///< writes to acknowledge behind these
    std::array<iovec, kParts> parts_{};
};

/// What comes from one unit: validated, and put where it belongs.
class IncomingStream {
  public:
    /// Limit on damaged writes in a row, which ends the connection.
    static constexpr std::uint32_t kMostDamaged = 16;

    IncomingStream(std::span<std::byte> arena, bool has_checksums)
        : arena_(arena), has_checksums_(has_checksums), message_(Transport::most_message) {}

    /// Where the next bytes go, so that they need not be copied; empty: a header comes next.
    [[nodiscard]] std::span<std::byte> place() const { return place_; }

    /// So many bytes have come: first those for `place`, which are there already, then `behind`.
    /// Calls events.on_message(bytes), on_write(immediate), on_damaged_write(), and
    /// on_acknowledged(writes) and on_refused_write(), which return whether there were so many; and
    /// stops when events.is_over(). False: what came makes no sense, or is damaged.
    template <class Events>
    [[nodiscard]] bool take(std::size_t in_place, std::span<const std::byte> behind,
                            Events& events) {
        take_in(in_place);
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
    /// Whether a header, a message, or one write too often came damaged: why `take` failed.
    [[nodiscard]] bool is_damaged() const { return is_damaged_; }

  private:
    using Kind = RecordHeader::Kind;

    /// Bytes of the place that have come.
    void take_in(std::size_t bytes) {
        if (has_checksums_ || header_.kind == Kind::message) {
            content_ = base::crc32c(place_.first(bytes), content_);
        }
        place_ = place_.subspan(bytes);
    }
    [[nodiscard]] bool damaged() {
        is_damaged_ = true;
        return false;
    }

    /// Of the first record of `bytes`, as much as there is.
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
                // A message that is there as a whole is not copied.
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
        take_in(more);
        return more == 0 || !place_.empty() || end_record(message_of_record(), events);
    }

    [[nodiscard]] std::span<const std::byte> message_of_record() const {
        return std::span(message_).first(header_.kind == Kind::message ? header_.length : 0);
    }

    /// False: its header makes no sense.
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
    std::vector<std::byte> message_;  ///< one that comes in parts
    RecordHeader header_;
    std::size_t header_bytes_ = 0;   ///< of it that are there
    std::uint64_t next_number_ = 0;  ///< of a record
    std::span<std::byte> place_;     ///< of what is missing of its record
    std::uint32_t content_ = 0;      ///< checksum of what is there of its bytes
    bool has_damage_ = false;        ///< a piece of the write under way
    std::uint32_t damaged_in_a_row_ = 0;
    bool is_damaged_ = false;
};

}  // namespace daqloom::live
