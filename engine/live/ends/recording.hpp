// A recording: a folder of files of MFPs, written by a run or by `daqloom data generate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::live {

/// MFPs of one stream, by ascending number: that of its first event over the packing factor.
struct RecordedFile {
    std::string path;
    std::uint16_t source_id = 0;
    std::uint64_t first = 0;  ///< number
    std::uint64_t last = 0;
    base::Bytes largest = 0;  ///< MFP
};

/// Every builder unit of a run writes files of every stream, and begins new ones now and then: a
/// stream's MFPs are in any number of files, here and there.
struct Recording {
    std::vector<RecordedFile> files;  ///< by path
    std::uint64_t first = 0;          ///< number, of all streams together
    std::uint64_t count = 0;          ///< from the first to the last

    /// All files that end in .mfp; or `path` itself, if that is such a file. Reads indices, or
    /// headers only. Fails for none, and for what is no file of MFPs of this packing factor,
    /// ascending, of one stream; damaged places behind its first MFP are skipped.
    static base::expected<Recording> open(const std::string& path, std::uint32_t packing);
};

}  // namespace daqloom::live
