// Recorded data for a source of a unit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "live/source.hpp"

namespace daqloom::live {

struct ReplayConfig {
    std::string path;             ///< of a .mfp file
    std::uint16_t source_id = 0;  ///< under which it is replayed
    std::uint16_t packing = 1;    ///< fragments of each of its MFPs
    bool loop = false;            ///< from its beginning again, without end
    /// MFP 0 is the one that was recorded with this number, and the loop is so many numbers long:
    /// files of one recording stay in step, even if one lacks its first or last MFP. 0 meps: from
    /// the file's first to its last.
    std::uint64_t first_mep = 0;
    std::uint64_t meps = 0;
};

/// Reads the whole file once: fails if it is no file of MFPs with ascending numbers and this
/// packing. MFPs keep everything but event id and source id: those follow from their number now.
base::expected<std::unique_ptr<MfpFeed>> replay_mfps(const ReplayConfig& config, Buffer& buffer);

}  // namespace daqloom::live
