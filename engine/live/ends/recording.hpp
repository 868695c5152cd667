// A recording: a folder of files of MFPs, written by a run or by `daqloom data generate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::live {

/// MFPs of one stream, by ascending number (the first event id divided by the packing factor).
struct RecordedFile {
    std::string path;
    std::uint16_t source_id = 0;
    std::uint64_t first = 0;  ///< number of its first MFP
    std::uint64_t last = 0;
    base::Bytes largest = 0;  ///< largest MFP
};

/// Files of a run. Every builder unit writes files for every stream, and begins new ones now and
/// then, so the MFPs of a stream are spread over many files.
struct Recording {
    std::vector<RecordedFile> files;  ///< by path
    std::uint64_t first = 0;          ///< first number, over all streams
    std::uint64_t count = 0;          ///< numbers from the first to the last

    /// Opens all files that end in .mfp; or `path` itself, if it is such a file. Reads indices, or
    /// headers only. Fails without files, and for a file without ascending MFPs of this packing
    /// factor and one stream. Damaged places after the first MFP are skipped.
    static base::expected<Recording> open(const std::string& path, std::uint32_t packing);
};

}  // namespace daqloom::live
