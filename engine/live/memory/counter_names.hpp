// The names of counters, under which they leave the engine: those that no list of fields gives.
#pragma once

namespace daqloom::live::counter_names {

inline constexpr const char* kSteps = "steps";
// ---- sources
inline constexpr const char* kMfpsBlocked = "mfps_blocked";
inline constexpr const char* kMfpsLate = "mfps_late";
// ---- sinks
inline constexpr const char* kMepsChecked = "meps_checked";
inline constexpr const char* kMepsWrong = "meps_wrong";
inline constexpr const char* kFragmentsChecked = "fragments_checked";
inline constexpr const char* kFragmentBytesChecked = "fragment_bytes_checked";
inline constexpr const char* kFilesWritten = "files_written";
inline constexpr const char* kPacketsNotWritten = "packets_not_written";
// ---- beginnings of names, which a cause, a counter or the number of a bucket completes
inline constexpr const char* kWrong = "wrong.";
inline constexpr const char* kNotWritten = "not_written.";
inline constexpr const char* kTransport = "transport.";
inline constexpr const char* kBucket = "_bucket.";

/// Calls see(name in Python, name) for each.
template <class See>
void each(See see) {
    see("steps", kSteps);
    see("mfps_blocked", kMfpsBlocked);
    see("mfps_late", kMfpsLate);
    see("meps_checked", kMepsChecked);
    see("meps_wrong", kMepsWrong);
    see("fragments_checked", kFragmentsChecked);
    see("fragment_bytes_checked", kFragmentBytesChecked);
    see("files_written", kFilesWritten);
    see("packets_not_written", kPacketsNotWritten);
    see("wrong", kWrong);
    see("not_written", kNotWritten);
    see("transport", kTransport);
    see("bucket", kBucket);
}

}  // namespace daqloom::live::counter_names
