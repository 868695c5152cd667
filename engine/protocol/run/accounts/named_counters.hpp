// Counters of a unit, by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace daqloom::protocol {

/// A reading of a unit's counters: integers, and times in seconds (`…_s`). The run control
/// interprets only the counters of `counter_names`, and sums all others.
struct NamedCounters {
    using Value = std::variant<std::int64_t, double>;

    std::map<std::string, Value, std::less<>> by_name;

    /// A counter as an integer; 0 if the unit does not have this counter.
    [[nodiscard]] std::int64_t count(std::string_view name) const;
    /// A counter as a real number; 0 if the unit does not have this counter.
    [[nodiscard]] double number(std::string_view name) const;

    /// Text of the causes for which packets were not written to files, such as "No space left on
    /// device".
    [[nodiscard]] std::string causes_of_loss() const;
};

/// The counters that the run control and the process of a unit read.
namespace counter_names {

inline constexpr const char* beats = "beats";
inline constexpr const char* elapsed_s = "elapsed_s";
inline constexpr const char* made_s = "made_s";
inline constexpr const char* next_mep = "next_mep";
inline constexpr const char* steps = "steps";
inline constexpr const char* streams_broken = "streams_broken";
inline constexpr const char* waits = "waits";
inline constexpr const char* meps_granted = "meps_granted";
inline constexpr const char* meps_built = "meps_built";
inline constexpr const char* meps_incomplete = "meps_incomplete";
inline constexpr const char* meps_dropped = "meps_dropped";
inline constexpr const char* meps_discarded = "meps_discarded";
inline constexpr const char* meps_not_written = "meps_not_written";
/// Prefix; the name of a file-system error follows, such as ENOSPC.
inline constexpr const char* not_written = "not_written.";

}  // namespace counter_names

}  // namespace daqloom::protocol
