// A timeline of a simulation for https://ui.perfetto.dev and chrome://tracing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::sim {

/// Writes the Trace Event Format in JSON, entry by entry, to a file that appears on close().
///
/// The number of entries is limited, since a browser cannot open gigabytes. Further entries are
/// only counted, under otherData.left_out.
class TraceWriter {
  public:
    /// A row of the timeline. Rows of one group are drawn together.
    struct Track {
        std::uint32_t group = 0;
        std::uint32_t row = 0;
    };

    /// A number shown when an entry is selected.
    struct Argument {
        std::string_view name;
        std::int64_t value;
    };

    static constexpr std::uint64_t kDefaultMaxEntries = 1'000'000;  ///< about 100 MB

    static base::expected<TraceWriter> open(std::string path,
                                            std::uint64_t max_entries = kDefaultMaxEntries);

    /// Track with this pair of names, created at first use.
    Track track(std::string_view group, std::string_view row);

    /// Writes a slice from `start` to `end`. Slices of a track may nest but must not overlap.
    void slice(Track track, std::string_view name, base::Time start, base::Time end,
               std::initializer_list<Argument> arguments = {});
    /// An instant without a duration.
    void instant(Track track, std::string_view name, base::Time at,
                 std::initializer_list<Argument> arguments = {});
    /// Sets the value, from `at` on, of a step function of the track's group, drawn as an area.
    void counter(Track track, std::string_view name, base::Time at, std::int64_t value);

    [[nodiscard]] std::uint64_t entries() const { return entries_; }
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

    /// Completes the file. No entry may be written afterwards.
    [[nodiscard]] base::expected<void> close();

  private:
    TraceWriter(base::AtomicFile file, std::uint64_t max_entries);

    bool admit();
    void write(std::string_view fields, std::initializer_list<Argument> arguments = {});
    void write_name(Track track, std::string_view what, std::string_view name);

    base::AtomicFile file_;
    std::uint64_t max_entries_;
    std::uint64_t entries_ = 0;
    std::uint64_t left_out_ = 0;
    bool first_ = true;
    std::map<std::string, std::uint32_t, std::less<>> groups_;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> rows_;
};

}  // namespace daqloom::sim
