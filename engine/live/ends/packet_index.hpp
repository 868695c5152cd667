// The index of a file of MFPs, NAME.mfp.index beside NAME.mfp: place, first event and checksum of
// each packet, with which a reader finds what is damaged and goes on behind it. Files without one
// can be read as well. Little-endian:
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

/// Entries of the index of a file; none where the index is missing, damaged, or that of a shorter
/// file.
std::optional<std::vector<IndexEntry>> read_index(const std::string& path, base::Bytes file_bytes);

/// Index of a file, complete under its name; false, and there is none, where that is not possible.
bool write_index(const std::string& path, std::span<const IndexEntry> entries);

}  // namespace daqloom::live
