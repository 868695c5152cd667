#include "live/transport/tcp/stream.hpp"

#include <limits>

#include "base/random.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

using Kind = RecordHeader::Kind;

/// Notifications of one side.
struct Notifications {
    void on_message(std::span<const std::byte> bytes) {
        messages.emplace_back(bytes.begin(), bytes.end());
    }
    void on_write(std::uint32_t immediate) { writes.push_back(immediate); }
    void on_damaged_write() { ++damaged; }
    bool on_refused_write() { return ++refused > 0; }
    bool on_acknowledged(std::uint32_t count) {
        acknowledged += count;
        return acknowledged <= most_acknowledged;
    }
    [[nodiscard]] bool is_over() const { return messages.size() >= most_messages; }

    std::vector<std::vector<std::byte>> messages;
    std::vector<std::uint32_t> writes;
    std::uint64_t acknowledged = 0;
    std::uint64_t damaged = 0;
    std::uint64_t refused = 0;
    std::uint64_t most_acknowledged = std::numeric_limits<std::uint64_t>::max();
    std::size_t most_messages = std::numeric_limits<std::size_t>::max();
};

/// The next bytes to send, up to `most`.
std::vector<std::byte> take(OutgoingStream& out, std::size_t most) {
    std::vector<std::byte> taken;
    for (const iovec& part : out.gather()) {
        const std::size_t more = std::min(part.iov_len, most - taken.size());
        const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
        taken.insert(taken.end(), bytes, bytes + more);
    }
    out.on_sent(taken.size());
    return taken;
}

/// Delivers bytes like a socket: first to `place`, the rest as `behind`, at most `most_behind` at a
/// time.
template <class Events>
bool give(IncomingStream& in, std::span<const std::byte> bytes, std::size_t most_behind,
          Events& notifications) {
    while (!bytes.empty() && !notifications.is_over()) {
        const std::span<std::byte> place = in.place();
        const std::size_t in_place = std::min(place.size(), bytes.size());
        if (in_place > 0) {
            std::memcpy(place.data(), bytes.data(), in_place);
        }
        const auto behind = bytes.subspan(in_place, std::min(most_behind, bytes.size() - in_place));
        if (!in.take(in_place, behind, notifications)) {
            return false;
        }
        bytes = bytes.subspan(in_place + behind.size());
    }
    return true;
}

/// A record with this number, and with valid checksums.
std::vector<std::byte> record(RecordHeader header, std::span<const std::byte> bytes = {},
                              std::uint64_t number = 0) {
    header.number = number;
    header.content = base::crc32c(bytes.first(std::min<std::size_t>(header.length, bytes.size())));
    header.seal();
    std::vector<std::byte> all(sizeof header + bytes.size());
    std::memcpy(all.data(), &header, sizeof header);
    std::ranges::copy(bytes, all.begin() + sizeof header);
    return all;
}

/// Messages and writes of all sizes, cut at any byte: each arrives once, messages in order, and
/// bytes of writes only at their offsets.
TEST(TcpStream, WhateverTheNetworkCutsItIntoTheSameArrives) {
    base::RandomStream random(7, "streams");
    for (std::uint64_t round = 0; round < 60; ++round) {
        constexpr std::size_t kArena = 2 << 20;
        OutgoingStream out(128 << 10, 16, true);
        std::vector<std::byte> arena(kArena);
        std::vector<std::byte> expected(kArena);
        const auto source = pattern(kArena, round);
        IncomingStream in(arena, true);
        Notifications notifications;
        std::vector<std::vector<std::byte>> messages;
        std::vector<std::uint32_t> writes;
        std::size_t next_place = 0;
        std::size_t done = 0;
        const std::size_t most = 1 + random.uniform_int(round % 3 == 0 ? 100 : 100'000);
        for (std::uint32_t i = 0; i < 200 || !out.empty(); ++i) {
            if (i < 200 && random.uniform_int(3) == 0) {
                const auto message = pattern(random.uniform_int(8) == 0
                                                 ? random.uniform_int(Transport::most_message + 1)
                                                 : random.uniform_int(200),
                                             i);
                if (out.put_message(message)) {
                    messages.push_back(message);
                }
            }
            const std::size_t size = random.uniform_int(8) == 0 ? random.uniform_int(600'000)
                                                                : random.uniform_int(3'000);
            if (i < 200 && next_place + size <= kArena) {
                const auto bytes = std::span(source).subspan(kArena - next_place - size, size);
                const Write write{.to = UnitIndex(),
                                  .bytes = bytes,
                                  .offset = static_cast<base::Bytes>(next_place),
                                  .immediate = i,
                                  .context = i};
                if (out.put_write(write)) {
                    std::ranges::copy(bytes,
                                      expected.begin() + static_cast<std::ptrdiff_t>(next_place));
                    next_place += size;
                    writes.push_back(i);
                }
            }
            const auto taken = take(out, 1 + random.uniform_int(most));
            ASSERT_TRUE(give(in, taken, 1 + random.uniform_int(most), notifications));
            // Acknowledges the writes that the receiver has reported.
            for (OutgoingStream::Done was; done < notifications.writes.size(); ++done) {
                ASSERT_TRUE(out.pop_done(was));
                EXPECT_EQ(was.context, writes[done]);
            }
        }
        EXPECT_EQ(notifications.messages, messages);
        EXPECT_EQ(notifications.writes, writes);
        EXPECT_TRUE(arena == expected);
        OutgoingStream::Done none;
        EXPECT_FALSE(out.pop_done(none));
    }
}

TEST(TcpStream, AMessageGoesBeforeAWriteThatHasNotBegunAndBehindAPieceOfOneThatHas) {
    OutgoingStream out(128 << 10, 16, true);
    const auto source = pattern(4 * OutgoingStream::kPiece, 1);
    ASSERT_TRUE(out.put_write({.to = UnitIndex(), .bytes = source}));
    ASSERT_TRUE(out.put_message(pattern(10, 1)));
    std::vector<std::byte> arena(source.size());
    IncomingStream in(arena, true);
    Notifications notifications;
    ASSERT_TRUE(give(in, take(out, 1'000), 100, notifications));
    EXPECT_EQ(notifications.messages.size(), 1U);
    ASSERT_TRUE(out.put_message(pattern(10, 2)));
    ASSERT_TRUE(give(in, take(out, OutgoingStream::kPiece - 1'000), 100, notifications));
    EXPECT_EQ(notifications.messages.size(), 1U);
    ASSERT_TRUE(give(in, take(out, 2'000), 100, notifications));
    EXPECT_EQ(notifications.messages.size(), 2U);
    EXPECT_TRUE(notifications.writes.empty());
}

TEST(TcpStream, AnOwedAcknowledgementGoesOnceForAllWritesThatCame) {
    OutgoingStream out(128 << 10, 16, true);
    out.acknowledge(0);
    EXPECT_TRUE(out.empty());
    out.acknowledge(2);
    out.acknowledge(3);
    IncomingStream in({}, true);
    Notifications notifications;
    const auto bytes = take(out, 1'000);
    EXPECT_EQ(bytes.size(), sizeof(RecordHeader));
    ASSERT_TRUE(give(in, bytes, 7, notifications));
    EXPECT_EQ(notifications.acknowledged, 5U);
    EXPECT_TRUE(out.empty());
}

TEST(TcpStream, InvalidRecordsAreRefused) {
    std::vector<std::byte> arena(1'000);
    const std::uint64_t far = std::numeric_limits<std::uint64_t>::max();
    const RecordHeader wrong[] = {
        {.kind = static_cast<Kind>(0)},
        {.kind = static_cast<Kind>(6)},
        {.kind = Kind::message, .length = Transport::most_message + 1},
        {.kind = Kind::piece, .length = 1'001},
        {.kind = Kind::piece, .length = 1'000, .offset = 1},
        {.kind = Kind::last_piece, .length = 2, .offset = far},
        {.kind = Kind::last_piece, .length = 0, .offset = 1'001},
        {.kind = Kind::written, .length = 1, .count = 1},
        {.kind = Kind::written, .count = 3},
        {.kind = Kind::damaged, .length = 1},
        {.kind = Kind::damaged, .count = 3},
    };
    for (const RecordHeader& header : wrong) {
        IncomingStream in(arena, true);
        Notifications notifications;
        notifications.most_acknowledged = 2;
        EXPECT_FALSE(give(in, record(header, pattern(10, 1)), 100, notifications));
        EXPECT_TRUE(notifications.messages.empty());
        EXPECT_TRUE(notifications.writes.empty());
        EXPECT_FALSE(in.is_damaged());
    }
    EXPECT_TRUE(std::ranges::all_of(arena, [](std::byte b) { return b == std::byte{}; }));
}

/// A unit may become unreachable while `take` runs.
TEST(TcpStream, NothingIsReportedOnceItIsOver) {
    IncomingStream in({}, true);
    Notifications notifications;
    notifications.most_messages = 2;
    std::vector<std::byte> bytes;
    for (std::uint64_t i = 0; i < 5; ++i) {
        const auto one = record({.kind = Kind::message, .length = 3}, pattern(3, 1), i);
        bytes.insert(bytes.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(in.take(0, bytes, notifications));
    EXPECT_EQ(notifications.messages.size(), 2U);
}

/// Records that are left out, repeated or exchanged are detected by their numbers.
TEST(TcpStream, ARecordOutOfTurnIsDamage) {
    const auto message = [](std::uint64_t number) {
        return record({.kind = Kind::message, .length = 3}, pattern(3, number), number);
    };
    for (const std::uint64_t second : {0, 2, 1 << 30}) {
        IncomingStream in({}, true);
        Notifications notifications;
        EXPECT_TRUE(give(in, message(0), 100, notifications));
        EXPECT_FALSE(give(in, message(second), 100, notifications));
        EXPECT_TRUE(in.is_damaged());
        EXPECT_EQ(notifications.messages.size(), 1U);
    }
}

/// Both directions of a connection between two units, with a network that changes records. In the
/// end all writes are correct, or the connection has ended.
struct DamagedConnection {
    static constexpr std::size_t kArena = 1 << 14;

    struct End {
        explicit End(std::span<std::byte> arena) : in(arena, true) {}

        void on_message(std::span<const std::byte> bytes) {
            wrong += bytes.size() < 8 || !has_pattern(bytes.subspan(8), bytes.size()) ? 1 : 0;
            ++messages;
        }
        void on_write(std::uint32_t) { ++writes; }
        void on_damaged_write() {
            ++damaged;
            out.acknowledge(std::exchange(writes, 0));
            out.refuse_write();
        }
        bool on_refused_write() {
            ++repeated;
            return out.repeat_write();
        }
        bool on_acknowledged(std::uint32_t count) {
            for (OutgoingStream::Done was; count > 0; --count, ++done) {
                if (!out.pop_done(was)) {
                    return false;
                }
            }
            return true;
        }
        [[nodiscard]] static bool is_over() { return false; }

        OutgoingStream out{16 << 10, 16, true};
        IncomingStream in;
        std::uint32_t writes = 0;
        std::uint64_t messages = 0, wrong = 0, done = 0, damaged = 0, repeated = 0;
    };

    std::vector<std::byte> arena = std::vector<std::byte>(kArena);
    End sender{{}};
    End receiver{arena};
};

std::uint64_t records_of(std::span<const std::byte> bytes) {
    std::uint64_t count = 0;
    for (RecordHeader header; !bytes.empty(); ++count) {
        std::memcpy(&header, bytes.data(), sizeof header);
        bytes = bytes.subspan(sizeof header + header.length);
    }
    return count;
}

/// A million records, one in some 20 of them with a flipped bit: no wrong data are used, and all
/// damage is counted.
TEST(TcpStream, OfAMillionRecordsWithFlippedBitsNothingWrongIsUsed) {
    constexpr std::uint64_t kRecords = 1'000'000;
    base::RandomStream random(11, "flipped bits");
    const auto source = pattern(DamagedConnection::kArena, 5);
    std::uint64_t records = 0, flipped = 0, ended = 0, damaged = 0, repeated = 0;
    while (records < kRecords) {
        DamagedConnection two;
        std::vector<bool> is_written(DamagedConnection::kArena / 64);
        std::uint64_t put = 0;
        bool is_broken = false;
        while (!is_broken && records < kRecords) {
            for (int i = 0; i < 8; ++i) {
                const std::size_t place = random.uniform_int(is_written.size());
                is_written[place] = true;
                put += two.sender.out.put_write({.bytes = std::span(source).subspan(64 * place, 64),
                                                 .offset = static_cast<base::Bytes>(64 * place)})
                           ? 1
                           : 0;
            }
            const std::size_t length = 8 + random.uniform_int(40);
            std::vector<std::byte> message(length);
            fill_pattern(std::span(message).subspan(8), length);
            static_cast<void>(two.sender.out.put_message(message));
            for (const bool is_forth : {true, false}) {
                auto& from = is_forth ? two.sender : two.receiver;
                auto& to = is_forth ? two.receiver : two.sender;
                from.out.acknowledge(std::exchange(from.writes, 0));
                auto bytes = take(from.out, 1 << 20);
                records += records_of(bytes);
                const std::uint64_t before = to.damaged;
                const bool is_hit = !bytes.empty() && random.uniform_int(2) == 0;
                if (is_hit) {
                    ++flipped;
                    bytes[random.uniform_int(bytes.size())] ^=
                        std::byte{1} << static_cast<int>(random.uniform_int(8));
                }
                is_broken = !give(to.in, bytes, 4096, to);
                if (is_broken) {
                    ASSERT_TRUE(to.in.is_damaged());
                    ++ended;
                    break;
                }
                ASSERT_EQ(is_hit, to.damaged > before);
            }
        }
        EXPECT_EQ(two.sender.wrong + two.receiver.wrong, 0U);
        damaged += two.receiver.damaged;
        repeated += two.sender.repeated;
        EXPECT_LE(two.sender.done, put);
        if (!is_broken) {
            while (!two.sender.out.empty() || !two.receiver.out.empty() ||
                   two.receiver.writes > 0) {
                ASSERT_TRUE(
                    give(two.receiver.in, take(two.sender.out, 1 << 20), 4096, two.receiver));
                two.receiver.out.acknowledge(std::exchange(two.receiver.writes, 0));
                ASSERT_TRUE(give(two.sender.in, take(two.receiver.out, 1 << 20), 4096, two.sender));
            }
            EXPECT_EQ(two.sender.done, put);
            for (std::size_t place = 0; place < is_written.size(); ++place) {
                const auto there = std::span(two.arena).subspan(64 * place, 64);
                EXPECT_TRUE(!is_written[place] ||
                            std::ranges::equal(there, std::span(source).subspan(64 * place, 64)));
            }
        }
    }
    EXPECT_GT(damaged, 1'000U);
    EXPECT_GT(repeated, 1'000U);
    EXPECT_GT(ended, 1'000U);
    EXPECT_EQ(damaged + ended, flipped);
}

TEST(TcpStream, WritesThatComeDamagedAgainAndAgainEndTheConnection) {
    std::vector<std::byte> arena(64);
    IncomingStream in(arena, true);
    Notifications notifications;
    for (std::uint64_t i = 0; i < IncomingStream::kMostDamaged; ++i) {
        auto bytes = record({.kind = Kind::last_piece, .length = 64}, pattern(64, 1), i);
        bytes.back() ^= std::byte{1};
        EXPECT_EQ(give(in, bytes, 100, notifications), i + 1 < IncomingStream::kMostDamaged);
    }
    EXPECT_TRUE(in.is_damaged());
    EXPECT_EQ(notifications.damaged, IncomingStream::kMostDamaged);
    EXPECT_TRUE(notifications.writes.empty());
}

TEST(TcpStream, WithoutChecksumsOfWritesHeadersAndMessagesStillHaveThem) {
    std::vector<std::byte> arena(64);
    OutgoingStream out(128 << 10, 16, false);
    const auto source = pattern(64, 1);
    ASSERT_TRUE(out.put_write({.to = UnitIndex(), .bytes = source}));
    ASSERT_TRUE(out.put_message(pattern(10, 2)));
    const auto bytes = take(out, 1'000);
    ASSERT_EQ(bytes.size(), 2 * sizeof(RecordHeader) + 64 + 10);
    for (const std::size_t at : {0, 30, 45, 60, 85}) {
        auto changed = bytes;
        changed[at] ^= std::byte{4};
        IncomingStream in(arena, false);
        Notifications notifications;
        EXPECT_FALSE(give(in, changed, 1'000, notifications)) << at;
        EXPECT_TRUE(in.is_damaged());
    }
    IncomingStream in(arena, false);
    Notifications notifications;
    EXPECT_TRUE(give(in, bytes, 1'000, notifications));
    EXPECT_EQ(notifications.writes.size() + notifications.messages.size(), 2U);
}

}  // namespace
}  // namespace daqloom::live
