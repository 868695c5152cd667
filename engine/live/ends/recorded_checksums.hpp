// Checksums of a recording: the expected content of the packets of its replay.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "live/ends/packet_index.hpp"
#include "live/ends/recording.hpp"
#include "protocol/data/mep_check.hpp"

namespace daqloom::live {

/// The checksums of a recording, from the indices of its files. A replay changes only the event ids
/// of the recording, so each number has one recorded MFP per stream. Takes 16 bytes of memory per
/// recorded MFP.
class RecordedChecksums {
  public:
    /// Without a recording: every MFP is unknown.
    explicit RecordedChecksums(std::uint16_t packing) : packing_(packing) {}
    /// Also reads files without an index, up to `most_read` bytes in total.
    RecordedChecksums(const Recording& recording, std::uint16_t packing,
                      base::Bytes most_read = 250'000'000);

    /// Compares all MFPs of the MEP that fills `memory`, up to `streams` of them, with the
    /// recording. MFPs of missing or unread files are unknown; only their structure is checked.
    [[nodiscard]] protocol::DataCheck check_mep(std::uint32_t streams,
                                                std::span<const std::uint8_t> memory) const;

  private:
    /// Adds an MFP or its fault to `found`.
    void check_mfp(std::uint16_t source_id, std::span<const std::uint8_t> mfp,
                   protocol::DataCheck& found) const;
    [[nodiscard]] bool is_recorded(std::uint16_t source_id, const IndexEntry& mfp) const;
    [[nodiscard]] bool is_unknown(std::uint16_t source_id, std::uint64_t number) const;

    std::uint16_t packing_;
    std::uint64_t first_ = 0;  ///< number in the recording of the replay's number 0
    std::uint64_t count_ = 1;
    std::map<std::uint16_t, std::vector<IndexEntry>> streams_;  ///< by event id
    std::vector<RecordedFile> unread_;
};

}  // namespace daqloom::live
