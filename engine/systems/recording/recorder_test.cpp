// Recordings of small racks, compared with the racks' counters.
#include "systems/recording/recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "systems/rack/fixture_test.hpp"

namespace daqloom::systems {
namespace {

using base::Time;
namespace fs = std::filesystem;

/// A rack of four readout units and two builder units in which no frame is lost.
RackConfig small() {
    RackConfig config = without_chance(atlas_lab());
    config.readout_units = 4;
    config.builder_units = 2;
    config.arrivals.rate_hz = 2e3;
    config.event_size.mean = 200'000;
    config.duration = base::milliseconds(5);
    config.warmup = Time::zero();
    return config;
}

/// The small rack with rings of a few frames, so that fragments are lost and repeated.
RackConfig small_and_lossy() {
    RackConfig config = small();
    config.tor.model = BufferModel::drop_tail;
    config.tor.queue_packets = 6;
    config.tcp.congestion = CongestionControl::newreno;
    config.tcp.rto_min = base::milliseconds(2);
    config.tcp.tail_loss_probe = false;
    config.tcp.rack = false;
    config.duration = base::milliseconds(50);
    return config;
}

class RecorderTest : public RackTest {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override {
        RackTest::TearDown();
        fs::remove_all(folder_);
    }

    [[nodiscard]] std::string file(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    /// Runs a rack to its end and closes the recording.
    Rack& record(const RackConfig& config, const std::map<std::string, std::string>& captures,
                 const std::string& timeline) {
        Rack& rack = make(config);
        const auto recorder = base::value_of(Recorder::make(rack.system(), captures, timeline));
        rack.run(config.duration);
        EXPECT_EQ(base::message_of(recorder->close()), "");
        return rack;
    }

    /// Numbers that tshark reads from each frame of a capture.
    [[nodiscard]] std::vector<std::vector<std::int64_t>> frames(
        const std::string& path, const std::string& names, const std::string& more = "") const {
        std::string command = "tshark -r '" + path + "' " + more + " -T fields";
        std::istringstream stream(names);
        for (std::string name; stream >> name;) {
            command += " -e " + name;
        }
        std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
        std::string output;
        std::array<char, 4096> chunk;
        while (const auto n = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
            output.append(chunk.data(), n);
        }
        EXPECT_EQ(::pclose(pipe), 0) << "these tests need tshark: apt-get install tshark";
        std::vector<std::vector<std::int64_t>> rows;
        std::istringstream lines(output);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream numbers(line);
            rows.emplace_back(std::istream_iterator<std::int64_t>(numbers),
                              std::istream_iterator<std::int64_t>());
        }
        return rows;
    }

    /// The lines of a timeline, one for each entry, that contain `text`.
    [[nodiscard]] std::vector<std::string> entries(const std::string& path,
                                                   const std::string& text) const {
        std::vector<std::string> found;
        std::ifstream in(path);
        for (std::string line; std::getline(in, line);) {
            if (line.find(text) != std::string::npos) {
                found.push_back(line);
            }
        }
        return found;
    }

    static double number(const std::string& entry, const std::string& key) {
        return std::stod(entry.substr(entry.find("\"" + key + "\":") + key.size() + 3));
    }

  private:
    fs::path folder_ = fs::path(testing::TempDir()) /
                       ("recorder_" + std::to_string(::getpid()) + "_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RecorderTest, CapturesEveryFrameThatALinkDelivers) {
    const std::vector<std::string> links{"access.1.down", "uplink.0.up", "source.3.up"};
    std::map<std::string, std::string> captures;
    for (const std::string& link : links) {
        captures[link] = file(link);
    }
    const Rack& rack = record(small(), captures, "");
    const std::array<LinkIndex, 3> indices{rack.access_down(1), rack.uplink_down(0) + 1,
                                           rack.readout_up(3)};
    for (std::size_t i = 0; i < links.size(); ++i) {
        ASSERT_EQ(rack.network().link_name(indices[i]), links[i]);
        const ethernet::LinkCounters& counters = rack.network().port(indices[i]).counters();
        std::uint64_t acks = 0;
        std::int64_t bytes = 0;
        const auto rows = frames(file(links[i]), "frame.len tcp.len");
        for (const auto& row : rows) {
            bytes += row.at(0) + 4;  // a capture has no frame check sequence
            acks += row.at(1) == 0 ? 1 : 0;
        }
        EXPECT_GT(rows.size(), 10U);
        EXPECT_EQ(rows.size(), counters.frames);
        EXPECT_EQ(acks, counters.ack_frames);
        EXPECT_EQ(bytes, counters.frame_bytes);
    }
}

TEST_F(RecorderTest, ShowsStreamsWithoutGapsWhereNothingIsLost) {
    record(small(), {{"access.0.down", file("down")}}, "");
    std::map<std::int64_t, std::int64_t> expected;  // by port of the builder
    for (const auto& row : frames(file("down"), "tcp.dstport tcp.seq tcp.len tcp.srcport",
                                  "-o tcp.relative_sequence_numbers:FALSE")) {
        EXPECT_EQ(row.at(3), 9000);
        const auto next = expected.try_emplace(row.at(0), 1).first;
        EXPECT_EQ(row.at(1), next->second);
        next->second += row.at(2);
    }
    EXPECT_EQ(expected.size(), 4U);
    EXPECT_EQ(expected.begin()->first, 50'000);
    EXPECT_EQ(expected.rbegin()->first, 50'003);
}

TEST_F(RecorderTest, LeavesTheRunAsItIs) {
    const Rack& recorded =
        record(small_and_lossy(), {{"access.0.up", file("up")}, {"access.0.down", file("down")}},
               file("trace.json"));
    EXPECT_EQ(recorded.fingerprint(), run(small_and_lossy()).fingerprint());
}

TEST_F(RecorderTest, ShowsSackBlocksBeyondTheAcknowledgement) {
    record(small_and_lossy(), {{"access.0.up", file("up")}}, "");
    const auto rows =
        frames(file("up"), "tcp.ack tcp.options.sack_le tcp.options.sack_re",
               "-o tcp.relative_sequence_numbers:FALSE -Y 'tcp.options.sack.count==1'");
    EXPECT_GT(rows.size(), 3U);
    for (const auto& row : rows) {
        EXPECT_LT(row.at(0), row.at(1));
        EXPECT_LT(row.at(1), row.at(2));
    }
}

TEST_F(RecorderTest, DrawsASliceForEveryEventBuiltWithItsLatency) {
    Rack& rack = record(small(), {}, file("trace.json"));
    const auto slices = entries(file("trace.json"), R"("ph":"X")");
    EXPECT_GT(slices.size(), 5U);
    EXPECT_EQ(slices.size(), rack.report().events_built);
    double longest_us = 0;
    for (const std::string& slice : slices) {
        longest_us = std::max(longest_us, number(slice, "dur"));
    }
    EXPECT_DOUBLE_EQ(longest_us, rack.latency().max().seconds() * 1e6);
}

TEST_F(RecorderTest, GivesEventsThatOverlapRowsOfTheirOwn) {
    RackConfig config = small();
    config.arrivals.rate_hz = 40e3;  // beyond what the links carry
    config.concurrent_events = 3;
    record(config, {}, file("trace.json"));
    std::map<double, std::vector<std::pair<double, double>>> rows;
    for (const std::string& slice : entries(file("trace.json"), R"("ph":"X")")) {
        const double start = number(slice, "ts");
        rows[number(slice, "tid")].emplace_back(start, start + number(slice, "dur"));
    }
    EXPECT_EQ(rows.size(), 2U * 3U);
    for (auto& [row, slices] : rows) {
        std::sort(slices.begin(), slices.end());
        for (std::size_t i = 1; i < slices.size(); ++i) {
            EXPECT_LE(slices[i - 1].second, slices[i].first + 1e-9) << "row " << row;
        }
    }
}

TEST_F(RecorderTest, MarksEveryDropAndEveryTimeOut) {
    Rack& rack = record(small_and_lossy(), {}, file("trace.json"));
    const RackReport report = rack.report();
    EXPECT_GT(report.drops, 0U);
    EXPECT_GT(report.tcp.timeouts(), 0U);
    EXPECT_EQ(entries(file("trace.json"), R"("name":"drop")").size(), report.drops);
    EXPECT_EQ(entries(file("trace.json"), R"("name":"timeout of )").size(), report.tcp.timeouts());
}

TEST_F(RecorderTest, DrawsTheOccupancyOfTheTopOfRack) {
    Rack& rack = record(small(), {}, file("trace.json"));
    const double peak = static_cast<double>(rack.report().tor_peak);
    const auto samples = entries(file("trace.json"), R"("ph":"C")");
    ASSERT_GT(samples.size(), 100U);
    EXPECT_LE(samples.size(), 2U * 10'001U);
    double highest = 0;
    for (const std::string& sample : samples) {
        highest = std::max(highest, number(sample, "value"));
    }
    // Frames on the wire, at most 1 µs and a frame of 25 Gb/s per builder, are still counted.
    EXPECT_NEAR(highest, peak, 2 * (25e9 / 8 * 1e-6 + 2 * 1538));
    EXPECT_EQ(number(samples.back(), "value"), 0);
}

TEST_F(RecorderTest, RefusesALinkThatDoesNotExistOneFileForTwoAndFilesThatCannotBeWritten) {
    Rack& rack = make(small());
    const auto refusal = [&](const char* other_link, const char* other_file, const char* timeline) {
        return base::message_of(Recorder::make(
            rack.system(), {{"access.0.down", file("a")}, {other_link, file(other_file)}},
            file(timeline)));
    };
    const std::string link = refusal("access.2.down", "b", "trace.json");
    EXPECT_NE(link.find("\"access.2.down\""), std::string::npos);
    EXPECT_NE(link.find("from source.0.up to access.1.up"), std::string::npos);
    EXPECT_NE(refusal("access.1.down", "a", "trace.json"), "");
    EXPECT_NE(refusal("access.1.down", "b", "a"), "");
    EXPECT_NE(refusal("access.1.down", "b", "missing/trace.json").find("missing/trace.json"),
              std::string::npos);
    EXPECT_EQ(files(), 0U);
}

TEST_F(RecorderTest, LeavesNoFileBehindWhenItIsNotClosed) {
    Rack& rack = make(small());
    {
        const auto recorder =
            Recorder::make(rack.system(), {{"access.0.down", file("a")}}, file("trace.json"));
        ASSERT_TRUE(recorder);
        rack.run(base::milliseconds(2));
        EXPECT_EQ(files(), 2U);
    }
    EXPECT_EQ(files(), 0U);
    rack.run(base::milliseconds(5));  // the recorder is closed
}

}  // namespace
}  // namespace daqloom::systems
