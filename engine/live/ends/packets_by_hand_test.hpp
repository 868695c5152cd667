// For tests: generated MFPs, MEPs of MFPs, and files of packets in a temporary folder.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/expected_test.hpp"
#include "live/ends/packet_file.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

using Packet = std::vector<std::uint8_t>;

inline protocol::MfpGenerator generator_of(std::uint16_t source_id, std::uint32_t packing = 10,
                                           base::Bytes mean = 50) {
    static std::map<base::Bytes, std::shared_ptr<protocol::PatternSizes>> tables;
    auto& sizes = tables[mean];
    if (sizes == nullptr) {
        sizes = std::make_shared<protocol::PatternSizes>(protocol::FragmentSizes::poisson, mean, 1);
    }
    return base::value_of(
        protocol::MfpGenerator::make({.source_id = source_id, .packing = packing, .sizes = sizes}));
}

inline Packet mfp_of(const protocol::MfpGenerator& generator, std::uint64_t number) {
    Packet mfp(static_cast<std::size_t>(generator.largest()));
    const std::uint64_t event = number * generator.packing();
    mfp.resize(static_cast<std::size_t>(base::value_of(generator.generate(event, mfp))));
    return mfp;
}

/// The MEP of MFPs from sources 0, 1, …; an empty MFP stands for a missing one.
inline Packet mep_of(std::uint64_t number, std::uint32_t events, const std::vector<Packet>& mfps) {
    auto at = protocol::mep_overhead(static_cast<std::uint32_t>(mfps.size()));
    std::vector<protocol::MepEntry> entries;
    for (std::uint16_t source_id = 0; const Packet& mfp : mfps) {
        entries.push_back(
            {.offset = at,
             .bytes = static_cast<base::Bytes>(mfp.size()),
             .source_id = source_id++,
             .state = mfp.empty() ? protocol::MepState::missing : protocol::MepState::complete});
        at += (static_cast<base::Bytes>(mfp.size()) + 63) / 64 * 64;
    }
    Packet mep(static_cast<std::size_t>(at));
    for (std::size_t i = 0; i < mfps.size(); ++i) {
        std::ranges::copy(mfps[i], mep.begin() + entries[i].offset);
    }
    base::value_of(protocol::encode_mep(
        {.mep = protocol::MepId{number}, .event_id = number * events, .events = events}, entries,
        mep));
    return mep;
}

/// A test with a temporary folder, which is removed at the end of the test.
class FolderTest : public testing::Test {
  protected:
    FolderTest() {
        std::string name = (std::filesystem::temp_directory_path() / "daqloom-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~FolderTest() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
    /// A file of packets.
    void record(const std::string& name, const std::vector<Packet>& packets) const {
        auto file = base::value_of(PacketFileWriter::create(folder_ / name));
        base::Bytes bytes = 0;
        for (const Packet& packet : packets) {
            EXPECT_TRUE(file.append(packet));
            bytes += static_cast<base::Bytes>(packet.size());
        }
        EXPECT_EQ(file.packets(), packets.size());
        EXPECT_EQ(file.bytes(), bytes);
        EXPECT_TRUE(file.commit());
    }

    std::filesystem::path folder_;
};

}  // namespace daqloom::live
