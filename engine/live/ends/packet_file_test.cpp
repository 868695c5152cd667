#include "live/ends/packet_file.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>

#include "live/ends/packets_by_hand_test.hpp"

namespace daqloom::live {
namespace {

using base::Bytes;

class PacketFiles : public FolderTest {
  protected:
    std::string write(const std::vector<Packet>& packets, const std::string& name = "a.mfp") {
        record(name, packets);
        return path(name);
    }

    /// Writes packets to a file without an index, like files of earlier versions.
    std::string write_plain(const std::vector<Packet>& packets, const std::string& name = "a.mfp") {
        const auto whole = write(packets, name);
        std::filesystem::remove(whole + index_ending);
        return whole;
    }
};

/// Successive MFPs of one stream.
std::vector<Packet> mfps(std::uint32_t count, std::uint32_t packing, Bytes fragment) {
    const auto stream = generator_of(5, packing, fragment);
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < count; ++i) {
        packets.push_back(mfp_of(stream, i));
    }
    return packets;
}

/// The packets of a file, and the reason why reading ended.
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

std::pair<std::vector<Packet>, std::string> contents(const std::string& path) {
    auto file = base::value_of(MfpFile::open(path));
    return read(file);
}

TEST_F(PacketFiles, ReturnTheWrittenPackets) {
    // Packets of about 700 bytes, and of 2 MB and more, for which the reader's memory must grow.
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

TEST_F(PacketFiles, ReportThePlaceWhereTheyAreCutOff) {
    const auto packets = mfps(2, 3, 5);
    const auto whole = write_plain(packets);
    const std::size_t first = packets[0].size();
    const std::size_t size = first + packets[1].size();
    for (std::size_t cut = size - 1; cut > first; --cut) {
        std::filesystem::resize_file(whole, cut);
        const auto [found, why] = contents(whole);
        ASSERT_EQ(found.size(), 1) << cut;
        ASSERT_EQ(why.find(whole + ", byte " + std::to_string(first) + ": "), 0) << why;
    }
    std::filesystem::resize_file(whole, first);
    EXPECT_EQ(contents(whole).second, "");
}

TEST_F(PacketFiles, ReportThePlaceOfDamage) {
    const auto packets = mfps(2, 3, 5);
    const auto second = packets[0].size();
    const auto why = [&](std::size_t at, std::vector<std::uint8_t> bytes) {
        auto damaged = packets;
        std::copy(bytes.begin(), bytes.end(), damaged[1].begin() + static_cast<std::ptrdiff_t>(at));
        return contents(write_plain(damaged)).second;
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

/// Packets of a file that are read, also behind damage, and the offsets of the damaged places.
std::pair<std::vector<Packet>, std::vector<Bytes>> read_on(const std::string& path) {
    auto file = base::value_of(MfpFile::open(path));
    std::vector<Packet> packets;
    std::vector<Bytes> places;
    for (;;) {
        const auto view = file.next();
        if (view && !*view) {
            return {packets, places};
        }
        if (view) {
            packets.emplace_back(file.packet().begin(), file.packet().end());
        } else {
            places.push_back(file.offset());
            EXPECT_TRUE(file.skip());
        }
    }
}

void overwrite(const std::string& path, std::size_t at, std::uint8_t mask) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int before = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(before ^ mask));
}

/// With an index any byte of a packet may be damaged; without, one of the bytes for its size.
TEST_F(PacketFiles, GoOnBehindADamagedPacket) {
    constexpr std::uint32_t kPackets = 12;
    const auto packets = mfps(kPackets, 6, 40);
    const std::size_t sizes_at = 20 + 8;
    for (const bool has_index : {true, false}) {
        const auto path = has_index ? write(packets) : write_plain(packets);
        for (std::uint32_t damaged = 0; damaged < kPackets; ++damaged) {
            const std::size_t size = packets[damaged].size();
            for (std::size_t at = 0; at < size; ++at) {
                const bool gives_size =
                    at < 8 || at == 18 || (at >= sizes_at && at < sizes_at + 12);
                if (!has_index && (!gives_size || at == 2 || at == 3)) {
                    continue;
                }
                std::size_t place = 0;
                for (std::uint32_t i = 0; i < damaged; ++i) {
                    place += packets[i].size();
                }
                overwrite(path, place + at, 0x80);
                auto expected = packets;
                expected.erase(expected.begin() + damaged);
                const auto [found, places] = read_on(path);
                ASSERT_EQ(found, expected) << damaged << ", byte " << at;
                ASSERT_EQ(places, std::vector{static_cast<Bytes>(place)});
                overwrite(path, place + at, 0x80);
            }
        }
    }
}

TEST_F(PacketFiles, GiveTheWholePacketBetweenTwoDamagedOnes) {
    const auto packets = mfps(9, 6, 40);
    for (const bool has_index : {true, false}) {
        const auto path = has_index ? write(packets) : write_plain(packets);
        std::vector<Packet> expected;
        for (std::size_t i = 0, place = 0; i < packets.size(); place += packets[i++].size()) {
            if (i % 2 == 1) {
                overwrite(path, place, 0xff);
            } else {
                expected.push_back(packets[i]);
            }
        }
        const auto [found, places] = read_on(path);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(places.size(), 4U);
    }
}

/// Fragments may contain any bytes, even bytes that look like a packet.
TEST_F(PacketFiles, TakeNoPacketOutOfADamagedOne) {
    const auto inner = mfps(4, 1, 40);
    std::vector<Packet> packets;
    for (std::uint64_t event = 0; event < 3; ++event) {
        Packet packet(1'000);
        const protocol::MfpFragment fragment{.payload = inner[event + 1]};
        const auto size =
            protocol::encode_mfp({.event_id = event, .source_id = 5}, {&fragment, 1}, packet);
        packet.resize(static_cast<std::size_t>(*size));
        packets.push_back(packet);
    }
    const auto path = write(packets);
    overwrite(path, packets[0].size() + 1, 0xff);
    EXPECT_EQ(read_on(path).first, (std::vector{packets[0], packets[2]}));
}

TEST_F(PacketFiles, ThatAreCutOffCountTheMissingPackets) {
    const auto packets = mfps(5, 3, 5);
    const auto path = write(packets);
    std::filesystem::resize_file(path, packets[0].size() + packets[1].size() + 7);
    const auto [found, places] = read_on(path);
    EXPECT_EQ(found.size(), 2U);
    EXPECT_EQ(places.size(), 3U);
}

TEST_F(PacketFiles, DoWithoutAnIndexThatIsDamagedOrOfAnotherFile) {
    const auto packets = mfps(5, 3, 5);
    const auto whole = write(packets);
    const auto bytes = std::filesystem::file_size(whole + index_ending);
    for (std::size_t at = 0; at < bytes; ++at) {
        overwrite(whole + index_ending, at, 0x10);
        ASSERT_EQ(contents(whole), std::pair(packets, std::string()));
        overwrite(whole + index_ending, at, 0x10);
    }
    write(mfps(2, 3, 5), "b.mfp");
    std::filesystem::copy_file(path("b.mfp.index"), path("a.mfp.index"),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(contents(path("a.mfp")), std::pair(packets, std::string()));
}

TEST_F(PacketFiles, WithNothingButOtherBytesEndAtOnce) {
    const auto whole = path("zeros.mfp");
    std::ofstream(whole) << std::string(3 << 20, '\xce');
    const auto [found, places] = read_on(whole);
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(places, std::vector{Bytes{0}});
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
    EXPECT_EQ(contents(path("a.mep")).second,
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

TEST_F(PacketFiles, HaveNoIndexOfARemovedFileOfTheirName) {
    const auto whole = write(mfps(3, 4, Bytes{50}));
    std::filesystem::remove(whole);
    ASSERT_TRUE(std::filesystem::exists(whole + index_ending));
    const auto file = base::value_of(PacketFileWriter::create(whole));
    EXPECT_FALSE(std::filesystem::exists(whole + index_ending));  // also if this process is killed
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
