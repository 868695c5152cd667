// A consumer that writes built events to files, which a replay reads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/ends/sink.hpp"

namespace daqloom::live {

enum class FileFormat {
    mep,  ///< whole MEPs: PREFIX-0001.mep, …
    mfp,  ///< the MFPs of each stream: PREFIX-source-17-0001.mfp, …
};

struct FileSinkConfig {
    std::string prefix;  ///< a path; its folder exists
    FileFormat format = FileFormat::mep;
    base::Bytes bytes_per_file = base::Bytes{1} << 30;  ///< the next file after so many; at least 1
};

/// Written by the sink's thread, read by any thread.
struct FileCounters {
    static constexpr std::size_t errors = 134;  ///< of Linux, and 0

    std::atomic<std::uint64_t> files{0};    ///< complete
    std::atomic<std::uint64_t> packets{0};  ///< MEPs or MFPs in complete files
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> failed_files{0};  ///< that could not be made or finished
    /// Packets that could not be written, by errno, at the write or when their file was finished.
    /// Packets that arrive before the next attempt count for the previous error.
    std::array<std::atomic<std::uint64_t>, errors> lost{};
};

/// A file appears under its name when it is complete; existing files are kept. If no more can be
/// written (a full disk), the file ends with its last whole packet, later packets are dropped and
/// counted, and the next file is tried a second later: the builder unit is never blocked.
/// `counters` and `unit`, in which it counts MEPs not written, must outlive the consumer.
base::expected<std::unique_ptr<MepConsumer>> write_meps(FileSinkConfig config,
                                                        FileCounters& counters, NodeCounters& unit);

}  // namespace daqloom::live
