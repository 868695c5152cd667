// Recorded data for a source of a unit.
#pragma once

#include <cstdint>
#include <memory>

#include "base/expected.hpp"
#include "live/ends/recording.hpp"
#include "live/ends/source.hpp"

namespace daqloom::live {

struct ReplayConfig {
    std::uint16_t source_id = 0;  ///< of the recorded and the replayed stream
    std::uint16_t packing = 1;    ///< fragments of each MFP
};

/// Replays the recording without end. MFP 0 has the recording's first number: sources stay in step,
/// even if one of them lacks its first or last MFP. Only event ids change: they follow from the
/// replayed numbers. Fails if the recording has no MFP of the stream, or one that is larger than
/// the buffer. If a number exists twice, either MFP is replayed.
base::expected<std::unique_ptr<MfpFeed>> replay_mfps(const Recording& recording,
                                                     const ReplayConfig& config, Buffer& buffer);

}  // namespace daqloom::live
