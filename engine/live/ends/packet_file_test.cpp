#include "live/ends/packet_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {
namespace {

using base::Bytes;
using Packet = std::vector<std::uint8_t>;

class PacketFiles : public testing::Test {
  protected:
    PacketFiles() {
        std::string name = (std::filesystem::temp_directory_path() / "packets-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~PacketFiles() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
    std::string write(const std::vector<Packet>& packets, const std::string& name = "a.mfp") {
        auto writer = PacketFileWriter::create(path(name));
        Bytes bytes = 0;
        for (const Packet& packet : packets) {
            EXPECT_TRUE(writer->append(packet));
            bytes += static_cast<Bytes>(packet.size());
        }
        EXPECT_EQ(writer->packets(), packets.size());
        EXPECT_EQ(writer->bytes(), bytes);
        EXPECT_TRUE(writer->commit());
        return path(name);
    }

    std::filesystem::path folder_;
};

/// Successive MFPs of one stream.
std::vector<Packet> mfps(std::uint32_t count, std::uint32_t packing, Bytes fragment) {
    const auto stream =
        *protocol::MfpGenerator::make({.source_id = 5,
                                       .packing = packing,
                                       .sizes = std::make_shared<protocol::PatternSizes>(
                                           protocol::FragmentSizes::poisson, fragment, 1)});
    std::vector<Packet> packets(count, Packet(static_cast<std::size_t>(stream.largest())));
    for (std::uint32_t i = 0; i < count; ++i) {
        packets[i].resize(
            static_cast<std::size_t>(*stream.generate(std::uint64_t{i} * packing, packets[i])));
    }
    return packets;
}

/// The packets of a file, and why there are no more.
template <class File>
std::pair<std::vector<Packet>, std::string> read(File& file) {
    std::vector<Packet> packets;
    for (;;) {
        const auto view = file.next();
        if (!view) {
            return {packets, view.error().message};
        }
        if (!*view) {
            return {packets, ""};
        }
        packets.emplace_back(file.packet().begin(), file.packet().end());
    }
}

TEST_F(PacketFiles, GiveBackWhatWasWritten) {
    // Packets of about 700 bytes, and of 2 MB and more, which the reader's memory has to grow for.
    auto packets = mfps(3000, 10, 65);
    for (Packet& packet : mfps(3, 1000, 2500)) {
        packets.push_back(std::move(packet));
    }
    packets.push_back(packets.front());
    auto file = MfpFile::open(write(packets));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(read(*file), std::pair(packets, std::string()));
    EXPECT_FALSE((*file->next()).has_value());  // still at its end
    ASSERT_TRUE(file->rewind());
    EXPECT_EQ(file->offset(), 0);
    EXPECT_EQ(read(*file).first, packets);
}

TEST_F(PacketFiles, WithoutPacketsAreEmpty) {
    auto file = MfpFile::open(write({}));
    EXPECT_FALSE((*file->next()).has_value());
}

TEST_F(PacketFiles, SayWhereTheyAreCutOff) {
    const auto packets = mfps(2, 3, 5);
    const auto whole = write(packets);
    const std::size_t first = packets[0].size();
    const std::size_t size = first + packets[1].size();
    for (std::size_t cut = size - 1; cut > first; --cut) {
        std::filesystem::resize_file(whole, cut);
        auto file = MfpFile::open(whole);
        const auto [found, why] = read(*file);
        ASSERT_EQ(found.size(), 1) << cut;
        ASSERT_EQ(why.find(whole + ", byte " + std::to_string(first) + ": "), 0) << why;
    }
    std::filesystem::resize_file(whole, first);
    auto file = MfpFile::open(whole);
    EXPECT_EQ(read(*file).second, "");
}

TEST_F(PacketFiles, SayWhereTheyAreDamaged) {
    const auto packets = mfps(2, 3, 5);
    const auto second = packets[0].size();
    const auto why = [&](std::size_t at, std::vector<std::uint8_t> bytes) {
        auto damaged = packets;
        std::copy(bytes.begin(), bytes.end(), damaged[1].begin() + static_cast<std::ptrdiff_t>(at));
        auto file = MfpFile::open(write(damaged));
        return read(*file).second;
    };
    const std::string where = path("a.mfp") + ", byte " + std::to_string(second) + ": ";
    EXPECT_EQ(why(0, {0}), where + "no MFP: it begins with 0x4000 instead of 0x40ce");
    EXPECT_EQ(why(4, {0xff, 0xff, 0xff, 0xff}),
              where + "a packet of 4294967295 bytes is cut off after " +
                  std::to_string(packets[1].size()) + ", where the file ends");
    EXPECT_EQ(why(4, {3, 0, 0, 0}), where + "packet size 3; expected at least 20");
    EXPECT_EQ(why(18, {77}), where + "MFP of source 0x0005: align 77; expected 0 to 16");
}

TEST_F(PacketFiles, FailAgainAfterTheyFailed) {
    auto packets = mfps(2, 3, 5);
    packets[1][0] = 0;
    auto file = MfpFile::open(write(packets));
    const auto why = read(*file).second;
    EXPECT_FALSE(why.empty());
    EXPECT_EQ(read(*file), std::pair(std::vector<Packet>(), why));
}

TEST_F(PacketFiles, MayBecomeShorterWhileTheyAreRead) {
    const auto packets = mfps(4, 1000, 2000);  // 2 MB each: beyond what is read ahead
    const auto whole = write(packets);
    auto file = MfpFile::open(whole);
    ASSERT_TRUE((*file->next()).has_value());
    std::filesystem::resize_file(whole, packets[0].size() + 100);
    const auto [found, why] = read(*file);
    EXPECT_TRUE(found.empty());
    EXPECT_NE(why.find("is cut off after 100, where the file ends"), std::string::npos) << why;
}

TEST_F(PacketFiles, OfMepsAreReadTheSameWay) {
    Packet mep(60, 7);
    const std::vector<protocol::MepEntry> entries = {{.offset = 56, .bytes = 4, .source_id = 1}};
    ASSERT_TRUE(protocol::encode_mep({}, entries, mep));
    const std::vector<Packet> packets(5, mep);
    auto file = MepFile::open(write(packets, "a.mep"));
    EXPECT_EQ(read(*file).first, packets);
    auto wrong = MfpFile::open(path("a.mep"));
    EXPECT_EQ(read(*wrong).second,
              path("a.mep") + ", byte 0: no MFP: it begins with 0x454d instead of 0x40ce");
}

TEST_F(PacketFiles, ThatDoNotClaimMemoryTheyDoNotFill) {
    Packet mep(60, 7);
    ASSERT_TRUE(protocol::encode_mep({}, {}, mep));
    mep[38] = 0x7f;  // 127 · 2^48 + 60 bytes
    auto file = MepFile::open(write({mep}, "a.mep"));
    EXPECT_EQ(
        read(*file).second,
        path("a.mep") + ", byte 0: packet size 35747322042253372; at most 8589934592 is read");
}

TEST_F(PacketFiles, AreFiles) {
    EXPECT_EQ(MfpFile::open(path("none")).error().message,
              "cannot read " + path("none") + ": No such file or directory");
    EXPECT_EQ(MfpFile::open(folder_).error().message,
              "cannot read " + folder_.string() + ": it is no file");
    EXPECT_EQ(MfpFile::open("/dev/zero").error().message, "cannot read /dev/zero: it is no file");
}

TEST_F(PacketFiles, AppearWhenTheyAreComplete) {
    {
        auto writer = PacketFileWriter::create(path("b.mfp"));
        EXPECT_TRUE(writer->append(Packet(100)));
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(PacketFiles, AreLockedWhileTheyAreWritten) {
    auto writer = PacketFileWriter::create(path("c.mfp"));
    ASSERT_TRUE(writer);
    EXPECT_FALSE(PacketFileWriter::create(path("c.mfp")));
    EXPECT_TRUE(writer->append(Packet(100)));
    const OwnedFd part(::open(path("c.mfp.part").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(part);
    EXPECT_NE(::flock(part.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(errno, EWOULDBLOCK);
    ASSERT_TRUE(writer->commit());
    EXPECT_EQ(::flock(part.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_TRUE(std::filesystem::exists(path("c.mfp")));
    EXPECT_FALSE(std::filesystem::exists(path("c.mfp.part")));
}

}  // namespace
}  // namespace daqloom::live
