#include "live/ends/sink.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <vector>

#include "live/ends/check_sink.hpp"
#include "live/ends/file_sink.hpp"
#include "live/ends/packets_by_hand_test.hpp"
#include "live/ends/replay_source.hpp"
#include "live/memory/buffer_by_hand_test.hpp"
#include "live/node/counters_page.hpp"

namespace daqloom::live {
namespace {

constexpr std::uint32_t kEventsPerMep = 10;

std::vector<protocol::MfpGenerator> streams_of(std::uint16_t count) {
    std::vector<protocol::MfpGenerator> streams;
    for (std::uint16_t stream = 0; stream < count; ++stream) {
        streams.push_back(generator_of(stream, kEventsPerMep));
    }
    return streams;
}

/// A MEP of all streams, one of which may be missing.
Packet mep_of(const std::vector<protocol::MfpGenerator>& streams, std::uint64_t number,
              std::size_t missing = ~std::size_t{0}) {
    std::vector<Packet> mfps;
    for (const protocol::MfpGenerator& stream : streams) {
        mfps.push_back(mfps.size() == missing ? Packet() : mfp_of(stream, number));
    }
    return live::mep_of(number, kEventsPerMep, mfps);
}

class SinkTest : public FolderTest {
  protected:
    void SetUp() override {
        buffer_ = std::make_unique<Buffer>(buffer_of(1 << 16, 16));
        writer_ = std::make_unique<BufferWriter>(*buffer_);
    }

    Sink sink_to(std::unique_ptr<MepConsumer> consumer) {
        return {*buffer_, std::move(consumer), duplicates_, unit_};
    }
    void give(std::uint64_t number, const Packet& mep) {
        const base::Time deadline = now() + kHung;
        while (now() < deadline) {
            const std::uint64_t before = writer_->acknowledged();
            const auto room = writer_->reserve(static_cast<base::Bytes>(mep.size()));
            if (room) {
                std::ranges::copy(std::as_bytes(std::span(mep)), room->begin());
                writer_->commit(number, static_cast<base::Bytes>(mep.size()));
                return;
            }
            writer_->wait(before, deadline);
        }
        FAIL() << "the sink takes nothing";
    }
    /// Passes MEPs 0, 1, … to a sink and stops it. One of the MEPs may lack a stream.
    void play(Sink& sink, const std::vector<protocol::MfpGenerator>& streams, std::uint64_t meps,
              std::uint64_t incomplete = ~std::uint64_t{0}) {
        sink.start();
        for (std::uint64_t mep = 0; mep < meps; ++mep) {
            give(mep, mep_of(streams, mep, mep == incomplete ? 1 : 99));
        }
        sink.stop();
    }
    /// Makes a consumer that writes MEPs to files with the prefix "run".
    [[nodiscard]] std::unique_ptr<MepConsumer> file_consumer(
        base::Bytes bytes_per_file = FileSinkConfig().bytes_per_file) {
        return base::value_of(write_meps({.prefix = path("run"), .bytes_per_file = bytes_per_file},
                                         counters_, unit_));
    }
    [[nodiscard]] std::uint64_t lost_packets() const {
        std::uint64_t lost = 0;
        for (const auto& packets : counters_.lost) {
            lost += packets;
        }
        return lost;
    }
    [[nodiscard]] std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            if (entry.path().extension() != index_ending) {
                names.push_back(entry.path().filename());
            }
        }
        std::ranges::sort(names);
        return names;
    }

    std::unique_ptr<Buffer> buffer_;
    std::unique_ptr<BufferWriter> writer_;
    DuplicateFilter duplicates_;
    NodeCounters unit_;
    FileCounters counters_;
};

TEST_F(SinkTest, TakesAllThatWasCommittedBeforeItIsStopped) {
    const auto streams = streams_of(2);
    Sink sink = sink_to(discard_meps());
    sink.start();
    for (std::uint64_t mep = 0; mep < 500; ++mep) {
        give(mep, mep_of(streams, mep, mep % 10 == 0 ? 1 : 99));
    }
    sink.stop();
    EXPECT_EQ(unit_.meps_processed, 500U);
    EXPECT_EQ(unit_.incomplete_meps_processed, 50U);
    EXPECT_EQ(unit_.meps_repeated, 0U);
    EXPECT_EQ(writer_->acknowledged(), 500U);
    sink.start();
    give(700, mep_of(streams, 700));
    give(700, mep_of(streams, 700));
    give(699, mep_of(streams, 699));
    sink.stop();
    EXPECT_EQ(unit_.meps_processed, 503U);
    EXPECT_EQ(unit_.meps_repeated, 1U);
}

/// A consumer that reports its call of `finish`.
class Finished final : public MepConsumer {
  public:
    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> /*bytes*/) override {}
    void finish() override { end_.set_value(); }
    std::future<void> end() { return end_.get_future(); }

  private:
    std::promise<void> end_;
};

TEST_F(SinkTest, EndsWhenTheBufferIsBroken) {
    auto consumer = std::make_unique<Finished>();
    const auto end = consumer->end();
    Sink sink = sink_to(std::move(consumer));
    ASSERT_TRUE(writer_->put(0, -1, 1));
    sink.start();
    EXPECT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_EQ(unit_.meps_processed, 0U);
}

/// A consumer that takes some MEPs, reports the next one by a byte, and never returns from it.
class Stuck final : public MepConsumer {
  public:
    Stuck(std::uint64_t consumes, int fd) : left_(consumes), fd_(fd) {}
    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> /*bytes*/) override {
        if (left_-- == 0 && ::write(fd_, "s", 1) == 1) {
            ::pause();
        }
    }

  private:
    std::uint64_t left_;
    int fd_;
};

/// Counters survive a killed unit: they contain exactly the MEPs that its sink had processed.
TEST_F(SinkTest, TheCountsOfAKilledUnitsSinkSurvive) {
    const std::string run = fmt::format("sink-{}", ::getpid());
    std::array<int, 2> stuck{};
    ASSERT_EQ(::pipe(stuck.data()), 0);
    const pid_t unit = ::fork();
    ASSERT_GE(unit, 0);
    if (unit == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        auto page = CountersPage::create(run, UnitIndex(0));
        Sink sink(*buffer_, std::make_unique<Stuck>(6, stuck[1]), duplicates_, page->counters());
        sink.start();
        const auto streams = streams_of(2);
        for (std::uint64_t mep = 0; mep < 10; ++mep) {
            give(mep, mep_of(streams, mep, mep % 2 == 0 ? 1 : 99));
        }
        ::pause();
        ::_exit(1);
    }
    ::close(stuck[1]);
    char byte = 0;
    EXPECT_EQ(::read(stuck[0], &byte, 1), 1);
    const auto page = CountersPage::attach(unit, run, UnitIndex(0));
    ::kill(unit, SIGKILL);
    ::waitpid(unit, nullptr, 0);
    ::close(stuck[0]);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(page->counters().meps_processed, 6U);
    EXPECT_EQ(page->counters().incomplete_meps_processed, 3U);
}

TEST_F(SinkTest, ChecksEveryByteAndCountsByCause) {
    const auto streams = streams_of(3);
    CheckCounters counters;
    Sink sink = sink_to(check_meps(streams, counters));
    sink.start();
    std::uint64_t fragment_bytes = 0;
    for (std::uint64_t mep = 0; mep < 50; ++mep) {
        give(mep, mep_of(streams, mep, mep == 20 ? 1 : 99));
        for (std::uint64_t event = mep * kEventsPerMep; event < (mep + 1) * kEventsPerMep;
             ++event) {
            for (std::size_t stream = 0; stream < 3; ++stream) {
                fragment_bytes += mep == 20 && stream == 1 ? 0 : streams[stream].size(event);
            }
        }
    }
    sink.stop();
    EXPECT_EQ(counters.right, 50U);
    EXPECT_EQ(counters.fragments, 1490U);
    EXPECT_EQ(counters.fragment_bytes, fragment_bytes);

    sink.start();
    auto damaged = mep_of(streams, 50);
    const auto view = protocol::MepView::decode(damaged);
    ASSERT_TRUE(view);
    // Flips a bit in the first byte of the first fragment of the second stream.
    damaged[static_cast<std::size_t>(view->entry(1).offset +
                                     protocol::mfp_overhead(std::uint16_t{kEventsPerMep}))] ^= 1;
    give(50, damaged);
    give(51, {1, 2, 3});
    give(52, mep_of(streams, 53));  // says another number than its builder
    sink.stop();
    EXPECT_EQ(counters.right, 50U);
    EXPECT_EQ(counters.wrong[static_cast<std::size_t>(protocol::DataFault::pattern)], 1U);
    EXPECT_EQ(counters.wrong[static_cast<std::size_t>(protocol::DataFault::malformed_mep)], 1U);
    EXPECT_EQ(counters.wrong_number, 1U);
}

TEST_F(SinkTest, WritesMfpsToFilesOfALimitedSize) {
    const auto streams = streams_of(1);
    Sink sink = sink_to(file_consumer(10'000));
    play(sink, streams, 50);
    EXPECT_EQ(counters_.packets, 50U);
    EXPECT_EQ(lost_packets(), 0U);
    EXPECT_GT(counters_.free_bytes, 0U);
    const auto names = files();
    EXPECT_EQ(names.size(), counters_.files);
    ASSERT_GT(names.size(), 1U);
    EXPECT_EQ(names.front(), "run-source-0-0001.mfp");
    std::uint64_t next = 0;
    for (const std::string& name : names) {
        auto file = base::value_of(MfpFile::open(path(name)));
        while (base::value_of(file.next())) {
            EXPECT_TRUE(std::ranges::equal(file.packet(), mfp_of(streams[0], next++)));
        }
    }
    EXPECT_EQ(next, 50U);
    // A second run with the same prefix must keep the files of the first run.
    sink.start();
    give(50, mep_of(streams, 50));
    sink.stop();
    EXPECT_EQ(files().size(), names.size() + 1);
}

/// Damage by a source or by a transport without checksums: in every other MEP, one byte of an MFP's
/// header or table of sizes is wrong.
TEST_F(SinkTest, WritesNoMepWithAnMfpThatContradictsItsTable) {
    const auto streams = streams_of(2);
    Sink sink = sink_to(file_consumer());
    sink.start();
    constexpr std::array<std::size_t, 8> places = {0, 2, 5, 8, 15, 17, 18, 33};
    for (std::uint64_t mep = 0; mep < 2 * places.size(); ++mep) {
        auto bytes = mep_of(streams, mep);
        if (mep % 2 == 1) {
            const auto view = protocol::MepView::decode(bytes);
            const auto offset = static_cast<std::size_t>(view->entry(mep / 2 % 2).offset);
            bytes[offset + places[mep / 2]] ^= 0x40;
        }
        give(mep, bytes);
    }
    sink.stop();
    EXPECT_EQ(counters_.packets, 2 * places.size());
    EXPECT_EQ(counters_.lost[EBADMSG], places.size());
    EXPECT_EQ(unit_.meps_not_written, places.size());
    for (const std::string& name : files()) {
        auto file = MfpFile::open(path(name));
        std::uint64_t events = 0;
        for (auto mfp = file->next(); mfp && *mfp; mfp = file->next()) {
            EXPECT_EQ((*mfp)->header().event_id, 2 * events++ * (*mfp)->count());
        }
        EXPECT_EQ(events, places.size());
    }
}

TEST_F(SinkTest, WritesFilesThatAReplayReads) {
    const auto streams = streams_of(2);
    Sink sink = sink_to(file_consumer());
    play(sink, streams, 20, 7);
    EXPECT_EQ(counters_.packets, 39U);
    EXPECT_EQ(files(),
              (std::vector<std::string>{"run-source-0-0001.mfp", "run-source-1-0001.mfp"}));

    Buffer stream = buffer_of(1 << 20);
    const auto recording =
        base::value_of(Recording::open(path("run-source-1-0001.mfp"), kEventsPerMep));
    Source source(
        stream,
        base::value_of(replay_mfps(recording, {.source_id = 1, .packing = kEventsPerMep}, stream)),
        {});
    source.start(0);
    BufferReader reader(stream);
    for (std::uint64_t mfp = 0; mfp < 20; ++mfp) {
        if (mfp == 7) {
            continue;
        }
        const auto piece = take(reader);
        ASSERT_TRUE(piece);
        EXPECT_EQ(piece->tag, mfp);
        const auto check =
            protocol::check_mfp(streams[1], mfp * kEventsPerMep, octets(piece->bytes));
        EXPECT_EQ(check.fault, protocol::DataFault::none);
        reader.acknowledge();
    }
    EXPECT_EQ(recording.count, 20U);
}

/// While this object lives, files cannot grow beyond a limit, which has the effect of a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(std::uint64_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        const rlimit small{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, handler_);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    rlimit before_{};
    sighandler_t handler_;
};

TEST_F(SinkTest, KeepsMfpsThatFitOnAFullDiskAndCountsTheRest) {
    const auto streams = streams_of(1);
    std::size_t fit = 0;  // MFPs in 20 kB
    for (std::size_t bytes = mfp_of(streams[0], 0).size(); bytes <= 20'000;
         bytes += mfp_of(streams[0], ++fit).size()) {
    }
    ASSERT_GT(fit, 1U);
    ASSERT_LT(fit, 100U);
    Sink sink = sink_to(file_consumer());
    {
        const FileSizeLimit limit(20'000);
        play(sink, streams, fit + 1);
    }
    EXPECT_EQ(unit_.meps_processed, fit + 1);
    EXPECT_EQ(counters_.packets, fit);
    EXPECT_EQ(counters_.lost[EFBIG], 1U);
    EXPECT_EQ(lost_packets(), 1U);
    EXPECT_EQ(unit_.meps_not_written, 1U);
    EXPECT_EQ(unit_.incomplete_meps_not_written, 0U);
    ASSERT_EQ(files(), (std::vector<std::string>{"run-source-0-0001.mfp"}));
    auto file = MfpFile::open(path("run-source-0-0001.mfp"));  // which ends with a whole packet
    for (std::uint64_t mep = 0; mep < fit; ++mep) {
        const auto found = file->next();
        ASSERT_TRUE(found && *found);
        EXPECT_EQ((*found)->header().event_id, mep * kEventsPerMep);
    }
    const auto end = file->next();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_FALSE(*end);
}

TEST_F(SinkTest, CountsAMepOnceOfWhichSeveralMfpsAreLost) {
    const auto streams = streams_of(3);
    Sink sink = sink_to(file_consumer());
    {
        const FileSizeLimit limit(0);
        play(sink, streams, 10, 7);
    }
    EXPECT_EQ(lost_packets(), 29U);
    EXPECT_EQ(unit_.meps_not_written, 10U);
    EXPECT_EQ(unit_.incomplete_meps_not_written, 1U);
    EXPECT_EQ(counters_.packets, 0U);
    EXPECT_TRUE(files().empty());  // nothing without a packet
}

TEST_F(SinkTest, CountsAMepOnceWhoseFilesCannotBeFinished) {
    // Two of three files cannot be renamed, because folders have their names.
    const auto streams = streams_of(3);
    const auto consumer = file_consumer();
    consumer->consume(0, mep_of(streams, 0));
    for (const char* stream : {"0", "2"}) {
        std::filesystem::create_directory(path(fmt::format("run-source-{}-0001.mfp", stream)));
    }
    consumer->consume(1, mep_of(streams, 1, 2));
    consumer->finish();
    EXPECT_EQ(counters_.files, 1U);
    EXPECT_EQ(counters_.packets, 2U);
    EXPECT_EQ(counters_.lost[EISDIR], 3U);
    EXPECT_EQ(unit_.meps_not_written, 2U);
    EXPECT_EQ(unit_.incomplete_meps_not_written, 1U);
    // Packets of the unfinished file stay on the disk for recovery.
    EXPECT_TRUE(std::filesystem::exists(path("run-source-0-0001.mfp.part")));
}

TEST_F(SinkTest, LeavesUnfinishedFilesOfAKilledUnitAlone) {
    std::ofstream(path("run-source-0-0001.mfp.part")) << "half a file";
    const auto streams = streams_of(1);
    const auto consumer = file_consumer();
    consumer->consume(0, mep_of(streams, 0));
    consumer->finish();
    EXPECT_EQ(files(),
              (std::vector<std::string>{"run-source-0-0001.mfp.part", "run-source-0-0002.mfp"}));
    EXPECT_EQ(std::filesystem::file_size(path("run-source-0-0001.mfp.part")), 11U);
}

TEST_F(SinkTest, RefusesAFolderThatIsNotThere) {
    EXPECT_FALSE(write_meps({.prefix = path("nowhere/run")}, counters_, unit_));
    EXPECT_FALSE(write_meps({.prefix = path("run"), .bytes_per_file = 0}, counters_, unit_));
}

}  // namespace
}  // namespace daqloom::live
