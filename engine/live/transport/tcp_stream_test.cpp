#include "live/transport/tcp_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

using Kind = RecordHeader::Kind;

/// What one side is told.
struct Told {
    void on_message(std::span<const std::byte> bytes) {
        messages.emplace_back(bytes.begin(), bytes.end());
    }
    void on_write(std::uint32_t immediate) { writes.push_back(immediate); }
    bool on_acknowledged(std::uint32_t count) {
        acknowledged += count;
        return acknowledged <= most_acknowledged;
    }
    [[nodiscard]] bool is_over() const { return messages.size() >= most_messages; }

    std::vector<std::vector<std::byte>> messages;
    std::vector<std::uint32_t> writes;
    std::uint64_t acknowledged = 0;
    std::uint64_t most_acknowledged = std::numeric_limits<std::uint64_t>::max();
    std::size_t most_messages = std::numeric_limits<std::size_t>::max();
};

/// Bytes that go next, up to so many.
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

/// As a socket does: what fits in place goes there, and the rest is behind it, `most_behind` at a
/// time.
bool give(IncomingStream& in, std::span<const std::byte> bytes, std::size_t most_behind,
          Told& told) {
    while (!bytes.empty() && !told.is_over()) {
        const std::span<std::byte> place = in.place();
        const std::size_t in_place = std::min(place.size(), bytes.size());
        if (in_place > 0) {
            std::memcpy(place.data(), bytes.data(), in_place);
        }
        const auto behind = bytes.subspan(in_place, std::min(most_behind, bytes.size() - in_place));
        if (!in.take(in_place, behind, told)) {
            return false;
        }
        bytes = bytes.subspan(in_place + behind.size());
    }
    return true;
}

std::vector<std::byte> record(const RecordHeader& header, std::span<const std::byte> bytes = {}) {
    std::vector<std::byte> all(sizeof header + bytes.size());
    std::memcpy(all.data(), &header, sizeof header);
    std::ranges::copy(bytes, all.begin() + sizeof header);
    return all;
}

/// Messages and writes of all sizes, cut anywhere: each arrives once, messages in order, and bytes
/// of writes only where they belong.
TEST(TcpStream, WhateverTheNetworkCutsItIntoTheSameArrives) {
    base::RandomStream random(7, "streams");
    for (std::uint64_t round = 0; round < 60; ++round) {
        constexpr std::size_t kArena = 2 << 20;
        OutgoingStream out(128 << 10, 16);
        std::vector<std::byte> arena(kArena);
        std::vector<std::byte> expected(kArena);
        const auto source = pattern(kArena, round);
        IncomingStream in(arena);
        Told told;
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
            ASSERT_TRUE(give(in, taken, 1 + random.uniform_int(most), told));
            // The other side acknowledges what has come.
            for (OutgoingStream::Done was; done < told.writes.size(); ++done) {
                ASSERT_TRUE(out.pop_done(was));
                EXPECT_EQ(was.context, writes[done]);
            }
        }
        EXPECT_EQ(told.messages, messages);
        EXPECT_EQ(told.writes, writes);
        EXPECT_TRUE(arena == expected);
        OutgoingStream::Done none;
        EXPECT_FALSE(out.pop_done(none));
    }
}

TEST(TcpStream, AMessageGoesBeforeAWriteThatHasNotBegunAndBehindAPieceOfOneThatHas) {
    OutgoingStream out(128 << 10, 16);
    const auto source = pattern(4 * OutgoingStream::kPiece, 1);
    ASSERT_TRUE(out.put_write({.to = UnitIndex(), .bytes = source}));
    ASSERT_TRUE(out.put_message(pattern(10, 1)));
    std::vector<std::byte> arena(source.size());
    IncomingStream in(arena);
    Told told;
    ASSERT_TRUE(give(in, take(out, 1'000), 100, told));
    EXPECT_EQ(told.messages.size(), 1U);
    ASSERT_TRUE(out.put_message(pattern(10, 2)));
    ASSERT_TRUE(give(in, take(out, OutgoingStream::kPiece - 1'000), 100, told));
    EXPECT_EQ(told.messages.size(), 1U);
    ASSERT_TRUE(give(in, take(out, 2'000), 100, told));
    EXPECT_EQ(told.messages.size(), 2U);
    EXPECT_TRUE(told.writes.empty());
}

TEST(TcpStream, AnOwedAcknowledgementGoesOnceForAllWritesThatCame) {
    OutgoingStream out(128 << 10, 16);
    out.acknowledge(0);
    EXPECT_TRUE(out.empty());
    out.acknowledge(2);
    out.acknowledge(3);
    IncomingStream in({});
    Told told;
    const auto bytes = take(out, 1'000);
    EXPECT_EQ(bytes.size(), sizeof(RecordHeader));
    ASSERT_TRUE(give(in, bytes, 7, told));
    EXPECT_EQ(told.acknowledged, 5U);
    EXPECT_TRUE(out.empty());
}

TEST(TcpStream, WhatMakesNoSenseIsRefused) {
    std::vector<std::byte> arena(1'000);
    const std::uint64_t far = std::numeric_limits<std::uint64_t>::max();
    const RecordHeader wrong[] = {
        {.kind = static_cast<Kind>(0)},
        {.kind = static_cast<Kind>(5)},
        {.kind = Kind::message, .length = Transport::most_message + 1},
        {.kind = Kind::piece, .length = 1'001},
        {.kind = Kind::piece, .length = 1'000, .offset = 1},
        {.kind = Kind::last_piece, .length = 2, .offset = far},
        {.kind = Kind::last_piece, .length = 0, .offset = 1'001},
        {.kind = Kind::written, .length = 1, .count = 1},
        {.kind = Kind::written, .count = 3},
    };
    for (const RecordHeader& header : wrong) {
        IncomingStream in(arena);
        Told told;
        told.most_acknowledged = 2;
        EXPECT_FALSE(give(in, record(header, pattern(10, 1)), 100, told));
        EXPECT_TRUE(told.messages.empty());
        EXPECT_TRUE(told.writes.empty());
    }
    EXPECT_TRUE(std::ranges::all_of(arena, [](std::byte b) { return b == std::byte{}; }));
}

/// As a unit may become unreachable in the middle.
TEST(TcpStream, NothingIsToldOnceItIsOver) {
    IncomingStream in({});
    Told told;
    told.most_messages = 2;
    std::vector<std::byte> bytes;
    for (int i = 0; i < 5; ++i) {
        const auto one = record({.kind = Kind::message, .length = 3}, pattern(3, 1));
        bytes.insert(bytes.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(in.take(0, bytes, told));
    EXPECT_EQ(told.messages.size(), 2U);
}

}  // namespace
}  // namespace daqloom::live
