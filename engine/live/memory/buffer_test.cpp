#include "live/memory/buffer.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <atomic>
#include <limits>
#include <thread>

#include "base/random.hpp"
#include "live/memory/buffer_by_hand_test.hpp"

namespace daqloom::live {
namespace {

/// The buffer, attached from its descriptors like in another process.
Buffer attached_again(const Buffer& buffer) {
    return base::value_of(Buffer::attach(copied_descriptors(buffer)));
}

base::Bytes size_of_piece(std::uint64_t tag) {
    base::RandomStream random(tag, "piece");
    return static_cast<base::Bytes>(random.uniform() * 700);
}

void fill(std::uint64_t tag, std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(tag * 131 + i * 7 + 1);
    }
}

bool is_filled(std::uint64_t tag, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != static_cast<std::byte>(tag * 131 + i * 7 + 1)) {
            return false;
        }
    }
    return true;
}

/// Writes pieces with these tags, and waits for space. False: no space became free in time.
bool write_pieces(BufferWriter& writer, std::uint64_t from, std::uint64_t to) {
    const base::Time deadline = now() + kHung;
    for (std::uint64_t tag = from; tag < to;) {
        const std::uint64_t before = writer.acknowledged();
        const auto room = writer.reserve(size_of_piece(tag));
        if (room) {
            fill(tag, *room);
            writer.commit(tag++, static_cast<base::Bytes>(room->size()));
        } else if (now() > deadline) {
            return false;
        } else {
            writer.wait(before, deadline);
        }
    }
    return true;
}

testing::AssertionResult is_piece(const std::optional<Piece>& piece, std::uint64_t tag) {
    if (piece && piece->tag == tag &&
        piece->bytes.size() == static_cast<std::size_t>(size_of_piece(tag)) &&
        is_filled(tag, piece->bytes)) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << (piece ? piece->tag : 0) << ", " << (piece ? piece->bytes.size() : 0)
           << " B, in place of piece " << tag << " of " << size_of_piece(tag) << " B";
}

TEST(Buffer, RefusesSizesThatMakeNoSense) {
    EXPECT_FALSE(Buffer::create({.bytes = 0}));
    EXPECT_FALSE(Buffer::create({.bytes = (base::Bytes{1} << 40) + 1}));
    EXPECT_FALSE(Buffer::create({.bytes = 100, .pieces = 0}));
    EXPECT_FALSE(Buffer::create({.bytes = 100, .pieces = 24}));
    EXPECT_FALSE(Buffer::create({.bytes = 100, .pieces = 1U << 21}));
}

TEST(Buffer, GivesTheReaderThePiecesInTheirOrderAndWithTheirBytes) {
    auto [buffer, writer, reader] = TwoSides(4096, 8);
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.acknowledge());
    ASSERT_TRUE(write_pieces(writer, 3, 6));
    EXPECT_EQ(writer.committed(), 3U);
    for (std::uint64_t tag = 3; tag < 6; ++tag) {
        ASSERT_TRUE(is_piece(take(reader), tag));
    }
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.outstanding(), 3U);
    EXPECT_TRUE(reader.acknowledge());
    EXPECT_EQ(writer.acknowledged(), 1U);
    EXPECT_EQ(reader.outstanding(), 2U);
}

TEST(Buffer, PutsPiecesOnCacheLinesAndFreesExcessReservations) {
    Buffer buffer = buffer_of(1024, 8);
    BufferWriter writer(buffer);
    const std::byte* area = buffer.area().bytes().data();
    EXPECT_EQ(writer.reserve(1000)->data(), area);
    EXPECT_EQ(writer.reserve(512)->data(), area);  // the first was given up
    writer.commit(0, 65);
    EXPECT_EQ(writer.reserve(100)->data(), area + 128);
    writer.commit(1, 100'000);  // no more than was reserved
    EXPECT_EQ(writer.reserve(768)->data(), area + 256);
    EXPECT_FALSE(writer.reserve(769));
}

TEST(Buffer, IsFullWhenItsAreaIs) {
    auto [buffer, writer, reader] = TwoSides(256, 8);
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
        ASSERT_TRUE(writer.reserve(64));
        writer.commit(tag, 64);
    }
    EXPECT_FALSE(writer.reserve(1));
    EXPECT_FALSE(writer.reserve(0));  // an empty piece takes a cache line as well
    ASSERT_TRUE(reader.next());
    EXPECT_FALSE(writer.reserve(1));  // read is not acknowledged
    reader.acknowledge();
    EXPECT_FALSE(writer.reserve(65));
    EXPECT_EQ(writer.reserve(64)->data(), buffer.area().bytes().data());
    writer.commit(4, 64);
    ASSERT_TRUE(reader.next() && reader.acknowledge());
    EXPECT_FALSE(writer.reserve(65));  // between the newest and the oldest
    EXPECT_TRUE(writer.reserve(64));
}

TEST(Buffer, IsFullWhenItsRingIsAndRingsTheWriterOnceAsMuchIsAcknowledgedAsItWaitsFor) {
    auto [buffer, writer, reader] = TwoSides(1 << 20, 4);
    for (base::Bytes i = 0; i < 4; ++i) {
        EXPECT_TRUE(writer.put(7, i, 1));
    }
    EXPECT_FALSE(writer.put(7, 4, 1));
    EXPECT_FALSE(writer.reserve(1));
    writer.ring_at(3);
    buffer.writer_bell().sleep(now(), [] { return false; });  // takes earlier rings
    for (int acknowledged = 1; acknowledged <= 4; ++acknowledged) {
        ASSERT_TRUE(reader.next());
        ASSERT_TRUE(reader.acknowledge());
        EXPECT_EQ(buffer.writer_bell().was_rung(), acknowledged >= 3);
        EXPECT_TRUE(writer.reserve(1));
    }
    EXPECT_TRUE(writer.put(7, 4, 1));
}

TEST(Buffer, CountsTheBytesThatItsReaderHolds) {
    Buffer buffer = base::value_of(Buffer::create({.bytes = 4096, .pieces = 4}));
    BufferWriter writer(buffer);
    EXPECT_EQ(buffer.held_bytes(), 0);
    ASSERT_TRUE(writer.put(1, 0, 100));
    ASSERT_TRUE(writer.put(2, 1000, 30));
    EXPECT_EQ(buffer.held_bytes(), 130);
    BufferReader reader(buffer);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(buffer.held_bytes(), 130) << "it is read and not acknowledged";
    ASSERT_TRUE(reader.acknowledge());
    EXPECT_EQ(buffer.held_bytes(), 30);
    ASSERT_TRUE(writer.put(3, 0, 4000));
    ASSERT_TRUE(writer.put(4, 0, 4000));
    EXPECT_EQ(buffer.held_bytes(), 4096) << "no more than its area";
    ASSERT_TRUE(writer.put(5, 5000, 1));
    EXPECT_EQ(buffer.held_bytes(), 4096) << "a malformed piece has no bytes";
}

TEST(Buffer, TakesAPieceAsLargeAsItsAreaOnceItIsEmpty) {
    auto [buffer, writer, reader] = TwoSides(1000, 4);
    EXPECT_FALSE(writer.reserve(1001));
    EXPECT_FALSE(writer.reserve(-1));
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        ASSERT_TRUE(writer.reserve(10));
        writer.commit(tag, 10);
        EXPECT_FALSE(writer.reserve(1000));
        ASSERT_TRUE(reader.next());
        reader.acknowledge();
        ASSERT_TRUE(writer.reserve(1000));
    }
}

TEST(Buffer, PassesPiecesThatWereWrittenAnywhereInTheArea) {
    auto [buffer, writer, reader] = TwoSides(1000, 4);
    ASSERT_TRUE(writer.put(5, 900, 100));
    ASSERT_TRUE(writer.put(6, 3, 0));
    const auto last = reader.next();
    const auto first = reader.next();
    ASSERT_TRUE(last && first);
    EXPECT_EQ(last->tag, 5U);
    EXPECT_EQ(last->bytes.data(), buffer.area().bytes().data() + 900);
    EXPECT_EQ(last->bytes.size(), 100U);
    EXPECT_EQ(first->bytes.size(), 0U);
}

TEST(Buffer, IsAtItsEndWhenAllIsReadOfAClosedOne) {
    Buffer buffer = buffer_of(1000, 4);
    BufferReader reader(buffer);
    {
        BufferWriter writer(buffer);
        ASSERT_TRUE(writer.reserve(1));
        writer.commit(0, 1);
        EXPECT_FALSE(reader.is_at_end());
        writer.close();
        EXPECT_FALSE(reader.is_at_end());
        ASSERT_TRUE(reader.next());
        EXPECT_TRUE(reader.is_at_end());
        reader.wait(now() + kHung);  // does not sleep
    }
    BufferWriter another(buffer);
    EXPECT_FALSE(reader.is_at_end());
}

TEST(Buffer, CarriesEveryByteFromOneThreadToAnotherWhateverTheSizes) {
    constexpr std::uint64_t pieces = 20'000;
    Buffer buffer = buffer_of(5000, 16);
    std::jthread writing([&] {
        BufferWriter writer(buffer);
        EXPECT_TRUE(write_pieces(writer, 0, pieces));
        writer.close();
    });
    BufferReader reader(buffer);
    base::RandomStream random(1, "reader");
    std::uint64_t oldest = 0;
    for (std::uint64_t tag = 0; tag < pieces; ++tag) {
        ASSERT_TRUE(is_piece(take(reader), tag)) << tag;
        // Several pieces are outstanding most of the time, but too few to block the writer.
        while (reader.outstanding() > 4 || (oldest <= tag && random.uniform() < 0.5)) {
            ASSERT_TRUE(reader.acknowledge());
            ++oldest;
        }
    }
    EXPECT_FALSE(take(reader));
    EXPECT_TRUE(reader.is_at_end());
}

TEST(Buffer, GivesUnacknowledgedPiecesToTheNextReader) {
    Buffer buffer = buffer_of(1 << 16, 16);
    BufferWriter writer(buffer);
    ASSERT_TRUE(write_pieces(writer, 0, 10));
    {
        Buffer mapped = attached_again(buffer);
        BufferReader reader(mapped);
        for (std::uint64_t tag = 0; tag < 7; ++tag) {
            ASSERT_TRUE(is_piece(take(reader), tag));
        }
        reader.acknowledge();
        reader.acknowledge();
    }
    BufferReader reader(buffer);
    for (std::uint64_t tag = 2; tag < 10; ++tag) {
        ASSERT_TRUE(is_piece(take(reader), tag));
    }
}

TEST(Buffer, AttachesOnlyToABuffer) {
    const auto without = [](std::size_t place) {
        const Buffer buffer = buffer_of(1000, 4);
        std::vector<OwnedFd> fds = copied_descriptors(buffer);
        fds[place] = OwnedFd(::memfd_create("stranger", MFD_CLOEXEC));
        return Buffer::attach(std::move(fds));
    };
    EXPECT_FALSE(Buffer::attach({}));
    for (const std::size_t place : {0, 1, 2, 4}) {
        EXPECT_FALSE(without(place)) << place;
    }

    // Sealed memory of a size that is not valid for a control block.
    const Buffer buffer = buffer_of(1000, 4);
    auto odd = SharedMemory::create("odd", 1000);
    ASSERT_TRUE(odd);
    std::vector<OwnedFd> fds = copied_descriptors(buffer);
    fds[0] = OwnedFd(::dup(odd->fd()));
    EXPECT_FALSE(Buffer::attach(std::move(fds)));
}

/// Starts a writer process, which receives the buffer by a Handover and confirms it. It then
/// continues where the killed writer before it stopped, up to `to`.
pid_t writing_process(const std::string& name, std::uint64_t to) {
    const pid_t child = ::fork();
    if (child != 0) {
        return child;
    }
    const auto handover = Handover::connect(name);
    auto parcel = handover ? handover->receive(now() + kHung) : base::failure("no connection");
    auto buffer = parcel ? Buffer::attach(std::move(parcel->fds)) : base::failure("no parcel");
    if (!buffer) {
        ::_exit(1);
    }
    BufferWriter writer(*buffer);
    const bool done = write_pieces(writer, writer.committed(), to);
    writer.close();
    ::_exit(done ? 0 : 1);
}

TEST(Buffer, LosesAndDamagesNothingWhenItsWriterIsKilledAndAnotherOneGoesOn) {
    const std::string name = "daqloom/test-buffer/" + std::to_string(::getpid());
    constexpr std::uint64_t pieces = 6'000;
    Buffer buffer = buffer_of(3000, 8);
    auto listener = HandoverListener::listen(name);
    ASSERT_TRUE(listener);
    base::RandomStream random(7, "kill");
    BufferReader reader(buffer);
    std::uint64_t tag = 0;
    for (bool is_last = false; !is_last;) {
        // The last writer process writes to the end; all others are killed after some more pieces.
        const std::uint64_t kill_at = tag + 1 + static_cast<std::uint64_t>(random.uniform() * 300);
        is_last = kill_at + 16 > pieces;  // the buffer may hold all that is left
        const pid_t child = writing_process(name, pieces);
        const auto handover = listener->accept(now() + kHung);
        ASSERT_TRUE(handover);
        const std::byte hello{1};
        const std::vector<int> fds = buffer.descriptors();
        ASSERT_TRUE(handover->send({&hello, 1}, fds));
        while (tag < (is_last ? pieces : kill_at)) {
            if (!is_piece(take(reader), tag++)) {
                ::kill(child, SIGKILL);
                ::waitpid(child, nullptr, 0);
                FAIL() << "piece " << tag - 1;
            }
            reader.acknowledge();
        }
        if (!is_last) {
            ::kill(child, SIGKILL);
        }
        EXPECT_EQ(has_succeeded(child), is_last);
    }
    EXPECT_FALSE(take(reader));
    EXPECT_TRUE(reader.is_at_end());
}

TEST(Buffer, LetsANewReaderGoOnWhereAKilledOneStopped) {
    constexpr std::uint64_t pieces = 3'000;
    Buffer buffer = buffer_of(3000, 8);
    // The writer is a process, too, because a thread might hold a lock when readers are forked.
    const pid_t writing = ::fork();
    if (writing == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        BufferWriter writer(buffer);
        const bool done = write_pieces(writer, 0, pieces);
        writer.close();
        ::_exit(done ? 0 : 1);
    }
    // Each reader records its acknowledgements; the next reader must begin right behind them.
    auto shared = SharedMemory::create("acknowledged", 64);
    ASSERT_TRUE(shared);
    auto& acknowledged = *reinterpret_cast<std::atomic<std::uint64_t>*>(shared->bytes().data());
    base::RandomStream random(8, "kill");
    for (int life = 0; life < 20; ++life) {
        const std::uint64_t kill_at =
            acknowledged.load() + 1 + static_cast<std::uint64_t>(random.uniform() * 100);
        const pid_t child = ::fork();
        if (child == 0) {
            BufferReader reader(buffer);
            for (std::uint64_t tag = acknowledged.load() + 1; true; ++tag) {
                if (!is_piece(take(reader), tag - 1)) {
                    ::_exit(1);
                }
                reader.acknowledge();
                acknowledged.store(tag);
                if (tag == kill_at) {
                    ::raise(SIGKILL);
                }
            }
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status));
    }
    BufferReader reader(buffer);
    for (std::uint64_t tag = acknowledged.load(); tag < pieces; ++tag) {
        ASSERT_TRUE(is_piece(take(reader), tag));
        reader.acknowledge();
    }
    EXPECT_TRUE(has_succeeded(writing));
}

bool is_within(std::span<const std::byte> inner, std::span<const std::byte> outer) {
    return inner.data() >= outer.data() &&
           inner.data() + inner.size() <= outer.data() + outer.size();
}

TEST(Buffer, NeverLeavesItsAreaWhateverTheOtherSideWritesOverTheControlBlock) {
    base::RandomStream random(9, "scribble");
    const std::uint64_t limits[] = {
        0, 1, 999, 1000, 1001, 4096, std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{63}};
    int broken = 0;
    int read = 0;
    for (int round = 0; round < 3'000; ++round) {
        auto [buffer, writer, reader] = TwoSides(1000, 4);
        const HostileControl hostile(buffer);
        for (std::uint64_t tag = 0; tag < 3; ++tag) {
            ASSERT_TRUE(writer.reserve(100));
            writer.commit(tag, 100);
        }
        for (int scribble = 0; scribble < 4; ++scribble) {
            const auto place = static_cast<std::size_t>(
                random.uniform() * static_cast<double>(hostile.words().size()));
            const auto which =
                static_cast<std::size_t>(random.uniform() * static_cast<double>(std::size(limits)));
            hostile.words()[place] = limits[which];
            const auto piece = reader.next();
            if (piece) {
                ++read;
                ASSERT_TRUE(is_within(piece->bytes, buffer.area().bytes()));
            }
            const auto room = writer.reserve(static_cast<base::Bytes>(random.uniform() * 1000));
            if (room) {
                ASSERT_TRUE(is_within(*room, buffer.area().bytes()));
                writer.commit(9, static_cast<base::Bytes>(room->size()));
            }
            BufferReader next_reader(buffer);
            if (const auto again = next_reader.next()) {
                ASSERT_TRUE(is_within(again->bytes, buffer.area().bytes()));
            }
        }
        broken += reader.is_broken() ? 1 : 0;
    }
    EXPECT_GT(broken, 0);
    EXPECT_GT(read, 0);
}

TEST(Buffer, ReportsAPieceOutsideOfItsAreaAsBroken) {
    struct Case {
        base::Bytes offset, bytes;
    };
    for (const Case& bad : {Case{-1, 1}, Case{0, 1001}, Case{1000, 1}, Case{1001, 0}, Case{0, -1},
                            Case{1, std::numeric_limits<base::Bytes>::max()}}) {
        Buffer buffer = buffer_of(1000, 4);
        BufferWriter writer(buffer);
        BufferReader reader(buffer);
        ASSERT_TRUE(writer.put(1, bad.offset, bad.bytes));
        EXPECT_FALSE(reader.next()) << bad.offset << " " << bad.bytes;
        EXPECT_TRUE(reader.is_broken());
        EXPECT_FALSE(reader.next());
        EXPECT_EQ(reader.outstanding(), 0U);
    }
}

TEST(Buffer, IgnoresAcknowledgementsOfAbsentPieces) {
    Buffer buffer = buffer_of(1000, 4);
    const HostileControl hostile(buffer);
    BufferWriter writer(buffer);
    ASSERT_TRUE(writer.reserve(10));
    writer.commit(0, 10);
    hostile.acknowledged() = 2;
    EXPECT_FALSE(writer.reserve(10));
    EXPECT_FALSE(writer.put(0, 0, 0));
    writer.wait(writer.acknowledged(), now());
    hostile.acknowledged() = 1;
    EXPECT_TRUE(writer.reserve(10));
}

}  // namespace
}  // namespace daqloom::live
