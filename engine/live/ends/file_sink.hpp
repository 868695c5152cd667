// A consumer that writes built events to files, which a replay reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/ends/sink.hpp"
#include "live/memory/counter.hpp"

namespace daqloom::live {

struct FileSinkConfig {
    std::string prefix;                                 ///< a path; its folder exists
    base::Bytes bytes_per_file = base::Bytes{1} << 30;  ///< size of a full file; at least 1
};

/// Written by the sink's thread, read by any thread.
struct FileCounters {
    static constexpr std::size_t errors = 134;  ///< errno values of Linux, and 0

    Counter files;    ///< complete files
    Counter packets;  ///< MFPs in complete files
    /// Packets that could not be written, by errno of the write or of the completion of their file.
    /// Packets that arrive before the next attempt count under the previous error.
    std::array<Counter, errors> lost{};
    Gauge free_bytes;  ///< free space of the file system, once a second
};

/// Writes the MFPs of each stream to its own files: PREFIX-source-17-0001.mfp, …
///
/// A file appears under its name when it is complete; existing files are kept. If a write fails (a
/// full disk), the file ends with its last whole packet, later packets are dropped and counted, and
/// the next file is tried a second later, so that the builder unit is never blocked. A MEP is not
/// written if the size, source or event of an MFP differs from the MEP's table (EBADMSG).
/// `counters` and `unit`, which counts MEPs not written, must outlive the consumer.
base::expected<std::unique_ptr<MepConsumer>> write_meps(FileSinkConfig config,
                                                        FileCounters& counters, NodeCounters& unit);

}  // namespace daqloom::live
