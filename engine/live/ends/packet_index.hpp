// The index of a file of MFPs, NAME.mfp.index beside NAME.mfp: size, first event and checksum of
// each packet. A reader uses it to detect damage and to continue behind it. An index is optional.
// Little-endian:
//
//      0  magic u32 "DLIX" | version u32, 1
//      8  per packet: event id u64 | bytes u32 | CRC32C of these u32
//         CRC32C u32, of all before it
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace daqloom::live {

struct IndexEntry {
    std::uint64_t event_id = 0;
    std::uint32_t bytes = 0;
    std::uint32_t checksum = 0;

    static IndexEntry of(std::span<const std::uint8_t> mfp);
    friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

inline constexpr const char* index_ending = ".index";

/// Index entries of a file; none if the index is missing, damaged or shorter than the file.
std::optional<std::vector<IndexEntry>> read_index(const std::string& path, base::Bytes file_bytes);

/// Writes the complete index of a file. False: this failed, and there is no index.
bool write_index(const std::string& path, std::span<const IndexEntry> entries);

}  // namespace daqloom::live
