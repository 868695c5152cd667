// Built events are written to files, which a replay reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/sink.hpp"

namespace daqloom::live {

enum class FileFormat {
    mep,  ///< whole MEPs: PREFIX-0001.mep, …
    mfp,  ///< the MFPs of each source: PREFIX-source-17-0001.mfp, …
};

struct FileSinkConfig {
    std::string prefix;  ///< a path; its folder exists
    FileFormat format = FileFormat::mep;
    base::Bytes bytes_per_file = base::Bytes{1} << 30;  ///< the next file after so many; at least 1
};

/// Written by the sink's thread, read by anybody.
struct FileCounters {
    std::atomic<std::uint64_t> files{0};    ///< complete
    std::atomic<std::uint64_t> packets{0};  ///< MEPs or MFPs in complete files
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> failed_files{0};
    /// Packets of files that failed, and those that came while none was tried again.
    std::atomic<std::uint64_t> lost{0};
};

/// A file appears under its name when it is complete; those that are there already stay. Where a
/// file cannot be written (a full disk) its packets are lost and counted, and the next is tried a
/// second later: the builder is never held up. `counters` outlive the consumer.
base::expected<std::unique_ptr<MepConsumer>> write_meps(FileSinkConfig config,
                                                        FileCounters& counters);

}  // namespace daqloom::live
