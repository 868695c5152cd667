// Written capture files are read back by tshark, with verification of checksums switched on.
#include "ethernet/pcapng.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/failure_test.hpp"

namespace daqloom::ethernet {
namespace {

using base::Time;
using SackBlock = CapturedFrame::SackBlock;

class PcapngTest : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(std::system("tshark --version > /dev/null 2>&1"), 0)
            << "these tests need tshark: apt-get install tshark";
    }
    void TearDown() override { std::filesystem::remove(path_); }

    /// The lines that tshark prints about the file.
    [[nodiscard]] std::vector<std::string> tshark(const std::string& arguments) const {
        const auto command = "tshark -r '" + path_ +
                             "' -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE "
                             "-o tcp.relative_sequence_numbers:FALSE " +
                             arguments + " 2>&1 | grep -v 'Running as user'";
        std::string output;
        std::FILE* pipe = ::popen(command.c_str(), "r");
        std::array<char, 4096> chunk;
        while (const auto n = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
            output.append(chunk.data(), n);
        }
        ::pclose(pipe);
        std::vector<std::string> lines;
        std::istringstream stream(output);
        for (std::string line; std::getline(stream, line);) {
            lines.push_back(line);
        }
        return lines;
    }

    [[nodiscard]] std::vector<std::string> fields(const std::string& names) const {
        std::istringstream stream(names);
        std::string arguments = "-T fields -E separator=' '";
        for (std::string name; stream >> name;) {
            arguments += " -e " + name;
        }
        return tshark(arguments);
    }

    void write(const std::vector<CapturedFrame>& frames, PcapngWriter::Options options = {}) const {
        auto writer = base::value_of(PcapngWriter::open(path_, "tor.port3", options));
        for (const auto& frame : frames) {
            writer.frame(frame);
        }
        ASSERT_TRUE(writer.close());
    }

    std::string path_ = testing::TempDir() + "pcapng_" + std::to_string(::getpid()) + "_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name() + ".pcapng";
};

using Lines = std::vector<std::string>;

/// A request, its reply in full frames, and acknowledgements with every option.
std::vector<CapturedFrame> conversation() {
    static constexpr std::array<SackBlock, 4> blocks{
        {{1525, 2972}, {5000, 6000}, {7000, 8000}, {9000, 9500}}};
    std::vector<CapturedFrame> frames;
    CapturedFrame request{.at = Time{1'000'000},
                          .source_host = network::NodeIndex(2),
                          .destination_host = network::NodeIndex(300),
                          .source_port = 40'001,
                          .destination_port = 9000,
                          .seq = 0xffffff00,
                          .ack = 77,
                          .flags = kTcpAck | kTcpPsh,
                          .ecn = Ecn::kCapable0,
                          .window = 1000,
                          .payload_bytes = 64};
    frames.push_back(request);
    CapturedFrame reply{.source_host = network::NodeIndex(300),
                        .destination_host = network::NodeIndex(2),
                        .source_port = 9000,
                        .destination_port = 40'001,
                        .seq = 77,
                        .ack = 0xffffff40,
                        .window = 65'535,
                        .timestamps = true,
                        .ts_value = 4'000'000'000,
                        .ts_echo = 5};
    for (std::uint32_t i = 0; i < 20; ++i) {
        reply.at = Time{2'000'000 + 123'456 * i};
        reply.ecn = i % 7 == 0 ? Ecn::kCongested : Ecn::kCapable0;
        reply.flags = i == 19 ? kTcpAck | kTcpPsh : kTcpAck;
        reply.payload_bytes = i % 2 == 0 ? 1448 : 1447;  // odd lengths pad the checksum
        frames.push_back(reply);
        reply.seq += reply.payload_bytes;
    }
    for (std::size_t n = 0; n <= blocks.size(); ++n) {
        CapturedFrame ack = request;
        ack.at = Time{5'000'000 + static_cast<std::int64_t>(n)};
        ack.seq = 0xffffff40;
        ack.flags = kTcpAck | kTcpEce;
        ack.payload_bytes = 0;
        ack.sack = std::span(blocks).first(n);
        ack.timestamps = false;
        frames.push_back(ack);
        ack.timestamps = true;
        frames.push_back(ack);
    }
    return frames;
}

TEST_F(PcapngTest, TsharkFindsNothingToComplainAbout) {
    const auto frames = conversation();
    write(frames);
    EXPECT_EQ(tshark("").size(), frames.size());
    EXPECT_EQ(tshark("-Y '_ws.malformed || tcp.checksum_bad.expert || ip.checksum_bad.expert || "
                     "tcp.checksum.status == Bad || ip.checksum.status == Bad'"),
              Lines{});
    write(frames, {.snap_length = 65'535});  // tshark checks only what was captured in full
    EXPECT_EQ(tshark("-Y 'tcp.checksum.status == Good && ip.checksum.status == Good'").size(),
              frames.size());
    EXPECT_EQ(tshark("-Y _ws.malformed"), Lines{});
}

TEST_F(PcapngTest, EveryFieldComesBack) {
    write({{.at = Time{1'234'567'890'123},
            .source_host = network::NodeIndex(0),
            .destination_host = network::NodeIndex(65'535),
            .source_port = 1,
            .destination_port = 2,
            .seq = 4'294'967'295,
            .ack = 3,
            .flags = kTcpAck | kTcpCwr | kTcpFin,
            .traffic_class = TrafficClass(6),
            .ecn = Ecn::kCongested,
            .window = 4,
            .payload_bytes = 8948}});
    EXPECT_EQ(
        fields("frame.time_epoch frame.interface_name frame.len frame.cap_len eth.src eth.dst "
               "ip.src ip.dst ip.dsfield.dscp ip.dsfield.ecn ip.len"),
        Lines{"1.234567890 tor.port3 9002 96 02:00:00:00:00:01 02:00:00:01:00:00 10.0.0.1 "
              "10.1.0.0 48 3 8988"});
    EXPECT_EQ(
        fields("tcp.srcport tcp.dstport tcp.seq_raw tcp.ack_raw tcp.len tcp.window_size_value "
               "tcp.flags"),
        Lines{"1 2 4294967295 3 8948 4 0x0091"});
}

TEST_F(PcapngTest, ADatagramComesBack) {
    std::vector<CapturedFrame> datagrams;
    for (std::uint32_t payload = 1; payload <= 3; ++payload) {
        datagrams.push_back({.source_host = network::NodeIndex(4),
                             .destination_host = network::NodeIndex(6),
                             .source_port = 50'006,
                             .destination_port = 9000,
                             .is_datagram = true,
                             .payload_bytes = 1469 + payload});
    }
    write(datagrams, {.snap_length = 65'535});
    const std::string checked = "-o udp.check_checksum:TRUE -Y 'udp.checksum.status == Good'";
    EXPECT_EQ(tshark(checked).size(), datagrams.size());
    EXPECT_EQ(tshark("-Y '_ws.malformed || ip.checksum.status == Bad'"), Lines{});
    EXPECT_EQ(fields("ip.src ip.dst udp.srcport udp.dstport udp.length frame.len").front(),
              "10.0.0.5 10.0.0.7 50006 9000 1478 1512");
}

TEST_F(PcapngTest, OptionsComeBackAndAShortFrameIsPaddedAsEthernetDoes) {
    const std::vector<SackBlock> blocks{{10, 20}, {30, 40}};
    CapturedFrame ack{.timestamps = true, .ts_value = 11, .ts_echo = 12, .sack = blocks};
    write({ack});
    EXPECT_EQ(fields("tcp.options.timestamp.tsval tcp.options.timestamp.tsecr "
                     "tcp.options.sack_le tcp.options.sack_re tcp.hdr_len tcp.len"),
              Lines{"11 12 10,30 20,40 52 0"});
    write({CapturedFrame{}});
    EXPECT_EQ(fields("frame.len frame.cap_len tcp.len"), Lines{"60 60 0"});
}

TEST_F(PcapngTest, CountsFramesBeyondItsBound) {
    auto writer = PcapngWriter::open(path_, "link", {.max_frames = 3});
    ASSERT_TRUE(writer);
    for (int i = 0; i < 5; ++i) {
        writer->frame({.at = Time{i}});
    }
    EXPECT_EQ(writer->frames(), 3U);
    EXPECT_EQ(writer->left_out(), 2U);
    ASSERT_TRUE(writer->close());
    EXPECT_EQ(tshark("").size(), 3U);
}

TEST_F(PcapngTest, NothingAppearsWithoutClose) {
    {
        auto writer = PcapngWriter::open(path_, "link");
        ASSERT_TRUE(writer);
        writer->frame({});
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PcapngTest, AFolderThatDoesNotExistIsRefused) {
    EXPECT_TRUE(base::fails_with("cannot write", PcapngWriter::open(path_ + "/x/y", "link")));
}

}  // namespace
}  // namespace daqloom::ethernet
