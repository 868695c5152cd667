// The index of a file of MFPs, NAME.mfp.index beside NAME.mfp: size, first event and checksum of
// each packet, with which a reader detects damage and continues after it. An index is optional.
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

/// Entries of the index of a file; none where the index is missing, damaged, or of a shorter file.
std::optional<std::vector<IndexEntry>> read_index(const std::string& path, base::Bytes file_bytes);

/// Writes the index of a file, complete under its name; false, and no index, where that fails.
bool write_index(const std::string& path, std::span<const IndexEntry> entries);

}  // namespace daqloom::live
