#include "live/ends/source.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/failure_test.hpp"
#include "live/ends/generator_source.hpp"
#include "live/ends/packets_by_hand_test.hpp"
#include "live/ends/replay_source.hpp"
#include "live/memory/buffer_by_hand_test.hpp"
#include "protocol/data/mep_check.hpp"

namespace daqloom::live {
namespace {

constexpr std::uint16_t kPacking = 10;

std::unique_ptr<MfpFeed> generated(std::uint16_t source_id, Content content, Buffer& buffer) {
    return base::value_of(generate_mfps(generator_of(source_id), content, buffer));
}

/// A buffer with a source that generates stream 3, and a reader.
struct Generated {
    explicit Generated(const SourceConfig& config = {}, Content content = Content::every,
                       base::Bytes bytes = 20'000)
        : buffer(buffer_of(bytes)), source(buffer, generated(3, content, buffer), config) {}

    Buffer buffer;
    BufferReader reader{buffer};
    Source source;
};

/// Waits, without reading, until the source is blocked by a full buffer.
void wait_for_block(const Source& source) {
    const base::Time deadline = now() + kHung;
    while (source.counters().blocked == 0 && now() < deadline) {
        std::this_thread::yield();
    }
}

/// Takes MFPs `from` to `to` of a generator, and checks every byte of them.
void expect_generated(BufferReader& reader, std::uint16_t source_id, std::uint64_t from,
                      std::uint64_t to) {
    const auto generator = generator_of(source_id);
    for (std::uint64_t mfp = from; mfp < to; ++mfp) {
        const auto piece = take(reader);
        ASSERT_TRUE(piece);
        ASSERT_EQ(piece->tag, mfp);
        const auto check = protocol::check_mfp(generator, mfp * kPacking, octets(piece->bytes));
        ASSERT_EQ(check.fault, protocol::DataFault::none) << protocol::name_of(check.fault);
        reader.acknowledge();
    }
}

TEST(Source, GeneratesEveryByteOfItsMfpsFromAnyNumberOn) {
    auto [buffer, reader, source] = Generated();
    source.start(17);
    expect_generated(reader, 3, 17, 2'017);
    source.stop();
    EXPECT_GE(source.counters().mfps, 2'000U);
}

TEST(Source, StopsWhileItWaitsForRoomAndCountsThatItDid) {
    auto [buffer, reader, source] = Generated();
    source.start(0);
    wait_for_block(source);
    source.stop();
    EXPECT_EQ(source.counters().blocked, 1U);
    const std::uint64_t first_life = source.counters().mfps;
    EXPECT_GT(first_life, 0U);
    // MFPs in the buffer stay; those from the new start follow them.
    source.start(1'000);
    expect_generated(reader, 3, 0, first_life);
    expect_generated(reader, 3, 1'000, 1'100);
}

TEST(Source, StopsWhileItWaitsForAnMfpToBeDue) {
    auto [buffer, reader, source] = Generated({.mfps_per_second = 1e-3});
    source.start(0);
    expect_generated(reader, 3, 0, 1);
    source.stop();
    EXPECT_EQ(source.counters().mfps, 1U);
}

TEST(Source, NeverGoesFasterThanItsRate) {
    constexpr double rate = 5'000;
    constexpr std::uint64_t mfps = 300;
    auto [buffer, reader, source] = Generated({.mfps_per_second = rate});
    const base::Time begin = now();
    source.start(0);
    for (std::uint64_t mfp = 0; mfp < mfps; ++mfp) {
        expect_generated(reader, 3, mfp, mfp + 1);
        ASSERT_GE(now(), begin + base::Time::from_seconds(static_cast<double>(mfp) / rate));
    }
}

TEST(Source, CatchesUpAfterAPauseOfItsThreadButNotAfterOneOfItsReader) {
    // A feed that returns late once, when 300 MFPs are due: all of these are then fed at once.
    class SlowOnce final : public MfpFeed {
      public:
        Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
            began_ = mfp == 0 ? now() : began_;
            while (mfp == 5 && now() < began_ + base::microseconds(300)) {
            }
            return writer.put(mfp, 0, 0) ? Fed::done : Fed::no_room;
        }

      private:
        base::Time began_ = base::Time::zero();
    };
    {
        Buffer buffer = buffer_of(64, 1 << 16);
        BufferReader reader(buffer);
        Source source(buffer, std::make_unique<SlowOnce>(), {.mfps_per_second = 1'000'000});
        source.start(0);
        for (int i = 0; i < 350; ++i) {
            ASSERT_TRUE(take(reader));
        }
        source.stop();
        EXPECT_GE(source.counters().late, 290U);
        EXPECT_EQ(source.counters().blocked, 0U);
    }
    {
        Buffer buffer = buffer_of(64, 1);
        BufferReader reader(buffer);
        Source source(buffer, std::make_unique<SlowOnce>(), {.mfps_per_second = 10'000});
        source.start(100);
        ASSERT_TRUE(take(reader));
        wait_for_block(source);
        // Two intervals begin at the acknowledgement: the time of the pause is not made up for.
        const base::Time freed = now();
        reader.acknowledge();
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(take(reader));
            reader.acknowledge();
        }
        EXPECT_GE(now() - freed, base::microseconds(200));
    }
}

TEST(Source, PreparesItsMfpsOnceAndStampsTheirEventIds) {
    auto [buffer, reader, source] = Generated({}, Content::once);
    source.start(7);
    std::vector<const std::byte*> places;
    for (std::uint64_t mfp = 7; mfp < 1'000; ++mfp) {
        const auto piece = take(reader);
        ASSERT_TRUE(piece);
        ASSERT_EQ(piece->tag, mfp);
        const auto view = protocol::MfpView::decode(octets(piece->bytes));
        ASSERT_TRUE(view) << view.error().message;
        ASSERT_EQ(view->header().event_id, mfp * kPacking);
        ASSERT_EQ(view->header().source_id, 3);
        ASSERT_EQ(view->count(), kPacking);
        places.push_back(piece->bytes.data());
        reader.acknowledge();
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    EXPECT_GT(places.size(), 20U);  // all around the buffer
}

TEST(Source, NeedsABufferForAnMfp) {
    Buffer small = buffer_of(100);
    EXPECT_FALSE(generate_mfps(generator_of(3), Content::every, small));
    Buffer used = buffer_of(20'000);
    BufferWriter writer(used);
    ASSERT_TRUE(writer.put(0, 0, 1));
    EXPECT_FALSE(generate_mfps(generator_of(3), Content::once, used));
}

/// A folder of files with MFPs from the stream with source id 3.
class Replay : public FolderTest {
  protected:
    void record(const std::string& name, const std::vector<std::uint64_t>& numbers,
                std::uint16_t source_id = 3) const {
        const auto generator = generator_of(source_id);
        std::vector<Packet> mfps;
        for (const std::uint64_t number : numbers) {
            mfps.push_back(mfp_of(generator, number));
        }
        FolderTest::record(name, mfps);
    }
    [[nodiscard]] base::expected<std::unique_ptr<MfpFeed>> replay() {
        const auto recording = Recording::open(folder_, kPacking);
        if (!recording) {
            return tl::unexpected(recording.error());
        }
        return replay_mfps(*recording, {.source_id = 3, .packing = kPacking}, buffer_);
    }
    /// Expects that the next MFP has number `number` and the payload of number `recorded`.
    void expect_replayed(std::uint64_t number, std::uint64_t recorded) {
        const auto piece = take(reader_);
        ASSERT_TRUE(piece);
        EXPECT_EQ(piece->tag, number);
        const auto view = protocol::MfpView::decode(octets(piece->bytes));
        ASSERT_TRUE(view);
        EXPECT_EQ(view->header().event_id, number * kPacking);
        EXPECT_EQ(view->header().source_id, 3);
        std::uint64_t event = recorded * kPacking;
        for (const protocol::MfpFragment fragment : *view) {
            EXPECT_EQ(protocol::check_pattern(3, event++, fragment.payload),
                      fragment.payload.size());
        }
        reader_.acknowledge();
    }
    void expect_refused(const std::string& why) {
        EXPECT_TRUE(base::fails_with(why, Recording::open(folder_, kPacking)));
    }

    Buffer buffer_ = buffer_of(10'000);
    BufferReader reader_{buffer_};
};

TEST_F(Replay, GivesTheRecordedMfpsWithoutEnd) {
    record("a.mfp", {4, 5, 6, 8});
    Source source(buffer_, base::value_of(replay()), {});
    source.start(0);
    expect_replayed(0, 4);
    expect_replayed(1, 5);
    expect_replayed(2, 6);
    expect_replayed(4, 8);  // 3 is absent
    expect_replayed(5, 4);
    source.stop();
    EXPECT_GE(source.counters().mfps, 5U);
    while (reader_.next()) {
        reader_.acknowledge();
    }

    source.start(2);  // again, from its middle
    expect_replayed(2, 6);
    expect_replayed(4, 8);
    expect_replayed(5, 4);
}

TEST_F(Replay, GoesOnCountingWhenItBeginsAnew) {
    record("a.mfp", {4, 6});
    Source source(buffer_, base::value_of(replay()), {});
    source.start(5);  // of a loop of three
    expect_replayed(5, 6);
    for (std::uint64_t lap = 2; lap < 200; ++lap) {
        expect_replayed(3 * lap, 4);
        expect_replayed(3 * lap + 2, 6);
    }
}

TEST_F(Replay, TakesASourceFromAllItsFilesInTheOrderOfNumbers) {
    // Files of two builder units, each with every other MEP, which begin new files now and then.
    record("unit-0-source-3-0001.mfp", {4, 6});
    record("unit-0-source-3-0002.mfp", {8});
    record("unit-1-source-3-0001.mfp", {5, 7, 9});
    record("unit-0-source-4-0001.mfp", {4, 6, 8}, 4);
    Source source(buffer_, base::value_of(replay()), {});
    source.start(0);
    for (std::uint64_t mfp = 0; mfp < 60; ++mfp) {
        expect_replayed(mfp, 4 + mfp % 6);
    }
}

TEST_F(Replay, KeepsInStepWithSourcesThatHaveMore) {
    record("a.mfp", {5, 6});
    record("b.mfp", {4, 5, 6, 7}, 4);
    Source source(buffer_, base::value_of(replay()), {});
    source.start(0);
    for (std::uint64_t lap = 0; lap < 50; ++lap) {
        expect_replayed(4 * lap + 1, 5);
        expect_replayed(4 * lap + 2, 6);
    }
}

TEST_F(Replay, RefusesInvalidRecordings) {
    expect_refused("no files that end in .mfp");
    record("a.mfp", {});
    expect_refused("is empty");
    record("a.mfp", {5, 5});
    expect_refused("out of order");
    record("a.mfp", {5, 4});
    expect_refused("out of order");
    record("a.mfp", {4, 5}, 4);
    EXPECT_FALSE(replay()) << "of another stream only";
    record("a.mfp", {4, 5});
    EXPECT_TRUE(replay());
    EXPECT_TRUE(base::message_of(Recording::open(folder_, kPacking + 1))
                    .ends_with("has 10 fragments; expected the packing factor, 11; set "
                               "event.packing = 10"));
    EXPECT_FALSE(Recording::open(folder_, 0));
    EXPECT_FALSE(Recording::open(folder_ / "nothing", kPacking));
    Buffer small = buffer_of(100);
    const auto recording = Recording::open(folder_, kPacking);
    EXPECT_FALSE(replay_mfps(*recording, {.source_id = 3, .packing = kPacking}, small));
    std::filesystem::remove(folder_ / "a.mfp.index");
    std::filesystem::resize_file(folder_ / "a.mfp", 19);
    expect_refused("cut off");
}

/// Bytes that this process has read, including bytes from files (proc(5), rchar).
std::uint64_t bytes_read() {
    std::ifstream io("/proc/self/io");
    std::string word;
    std::uint64_t bytes = 0;
    io >> word >> bytes;
    return bytes;
}

/// Each of six files has every sixth MFP of a source, as builder units take turns. The replay must
/// read each file only once.
TEST_F(Replay, ReadsEachFileOnceInALap) {
    constexpr std::uint64_t kFiles = 6;
    constexpr std::uint64_t kMfps = 12'000;
    std::uint64_t recorded = 0;
    for (std::uint64_t file = 0; file < kFiles; ++file) {
        std::vector<std::uint64_t> numbers;
        for (std::uint64_t number = file; number < kMfps; number += kFiles) {
            numbers.push_back(number);
        }
        const auto name = "unit-" + std::to_string(file) + ".mfp";
        record(name, numbers);
        recorded += std::filesystem::file_size(folder_ / name);
    }
    for (const bool has_index : {true, false}) {
        const auto feed = base::value_of(replay());
        BufferWriter writer(buffer_);
        const std::uint64_t before = bytes_read();
        for (std::uint64_t mfp = 0; mfp < kMfps; ++mfp) {
            ASSERT_EQ(feed->feed(mfp, writer), MfpFeed::Fed::done);
            ASSERT_TRUE(reader_.next());
            reader_.acknowledge();
        }
        EXPECT_LT(bytes_read() - before, recorded * 3 / 2) << has_index;
        for (std::uint64_t file = 0; file < kFiles; ++file) {
            std::filesystem::remove(folder_ / ("unit-" + std::to_string(file) + ".mfp.index"));
        }
    }
}

TEST_F(Replay, SkipsDamagedPacketsAndCountsThePlaces) {
    std::vector<std::uint64_t> numbers(40);
    std::iota(numbers.begin(), numbers.end(), 0);
    record("a.mfp", numbers);
    const auto path = folder_ / "a.mfp";
    std::vector<std::streamoff> places;
    {
        auto file = MfpFile::open(path);
        for (auto mfp = file->next(); mfp && *mfp; mfp = file->next()) {
            places.push_back(file->offset());
        }
    }
    const auto damage = [&](std::size_t number, std::streamoff at) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(places[number] + at);
        file.put('\x55');
    };
    damage(7, 0);
    damage(20, 4);
    damage(30, 0);
    for (const bool has_index : {true, false}) {
        const auto feed = base::value_of(replay());
        BufferWriter writer(buffer_);
        for (std::uint64_t mfp = 0; mfp < 40; ++mfp) {
            if (mfp == 7 || mfp == 20 || mfp == 30) {
                EXPECT_EQ(feed->feed(mfp, writer), MfpFeed::Fed::absent) << has_index;
            } else {
                ASSERT_EQ(feed->feed(mfp, writer), MfpFeed::Fed::done);
                expect_replayed(mfp, mfp);
            }
        }
        EXPECT_EQ(feed->skipped(), 3U) << has_index;
        std::filesystem::remove(folder_ / "a.mfp.index");
    }
    Source source(buffer_, base::value_of(replay()), {});
    source.start(0);
    for (std::uint64_t mfp = 0; mfp < 40; ++mfp) {
        if (mfp != 7 && mfp != 20 && mfp != 30) {
            expect_replayed(mfp, mfp);
        }
    }
    source.stop();
    EXPECT_GE(source.counters().skipped, 3U);
}

}  // namespace
}  // namespace daqloom::live
