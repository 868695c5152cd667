// Counters that no list of fields gives: the names under which they leave the engine, and meanings.
#pragma once

#include <array>

namespace daqloom::live {

/// A counter by name.
struct CounterName {
    const char* name;
    const char* meaning;
};

namespace counter_names {

inline constexpr CounterName kElapsed{"elapsed_ps",
                                      "Time since the unit's node was created, at this reading."};
inline constexpr CounterName kCpu{"cpu_ps",
                                  "CPU time of the unit's process since then, all threads."};
inline constexpr CounterName kSteps{"steps",
                                    "MFPs written and received and MEPs processed: progress."};
// ---- sources
inline constexpr CounterName kMfpsBlocked{"mfps_blocked",
                                          "MFPs that waited for a full stream buffer to drain."};
inline constexpr CounterName kMfpsLate{"mfps_late",
                                       "MFPs that came later than the set rate demands."};
// ---- sinks
inline constexpr CounterName kMepsChecked{"meps_checked",
                                          "MEPs checked, every byte of them correct."};
inline constexpr CounterName kMepsWrong{"meps_wrong", "MEPs checked, some bytes of them wrong."};
inline constexpr CounterName kFragmentsChecked{"fragments_checked", "Fragments checked."};
inline constexpr CounterName kFragmentBytesChecked{"fragment_bytes_checked",
                                                   "Bytes of fragments checked."};
inline constexpr CounterName kFilesWritten{"files_written",
                                           "Files completed by `measure.sink = \"file\"`."};
inline constexpr CounterName kPacketsNotWritten{"packets_not_written",
                                                "Packets lost to write errors of the file system."};

inline constexpr std::array kSingle = {kElapsed,
                                       kCpu,
                                       kSteps,
                                       kMfpsBlocked,
                                       kMfpsLate,
                                       kMepsChecked,
                                       kMepsWrong,
                                       kFragmentsChecked,
                                       kFragmentBytesChecked,
                                       kFilesWritten,
                                       kPacketsNotWritten};

// ---- beginnings of names, which a cause completes
inline constexpr CounterName kWrong{"wrong.", "Wrong MEPs by the first error found."};
inline constexpr CounterName kNotWritten{"not_written.",
                                         "Packets not written, by error, such as ENOSPC."};
inline constexpr CounterName kRefused{"refused_",
                                      "Messages and writes refused by the unit's protocol."};
/// The beginning of the names of TransportCounters, and of what was refused among them.
inline constexpr const char* kTransport = "transport.";
inline constexpr CounterName kTransportRefused{
    "transport.refused_", "Messages and connections refused by the transport."};
/// Between the name of a histogram and the number of its bucket.
inline constexpr const char* kBucket = "_bucket.";

}  // namespace counter_names

}  // namespace daqloom::live
