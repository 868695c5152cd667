// Recorded data for a source of a unit.
#pragma once

#include <cstdint>
#include <memory>

#include "base/expected.hpp"
#include "live/ends/recording.hpp"
#include "live/ends/source.hpp"

namespace daqloom::live {

struct ReplayConfig {
    std::uint16_t source_id = 0;  ///< in the recording, and as it is replayed
    std::uint16_t packing = 1;    ///< fragments of each MFP
    bool loop = false;            ///< from the recording's beginning again, without end
};

/// MFP 0 is the one that has the recording's first number: sources stay in step, even if one of
/// them lacks its first or last MFP. MFPs keep everything but their event id, which follows from
/// their number now. Fails if the recording has none of the stream, or one that is larger than the
/// buffer. Of a number that is there twice, either is replayed.
base::expected<std::unique_ptr<MfpFeed>> replay_mfps(const Recording& recording,
                                                     const ReplayConfig& config, Buffer& buffer);

}  // namespace daqloom::live
