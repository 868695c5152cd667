// The sizes of events and of their fragments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

struct EventSizeConfig {
    enum class Kind {
        fixed,      ///< always `mean`
        gaussian,   ///< `spread` is the standard deviation, at most a third of the mean
        gamma,      ///< `spread` is the standard deviation
        poisson,    ///< `quantum` times a Poisson number of mean `mean / quantum`
        histogram,  ///< a bin by its weight, then evenly within the bin
    };

    /// Sizes `lower` to `upper`, both included.
    struct Bin {
        base::Bytes lower = 0;
        base::Bytes upper = 0;
        double weight = 0;
    };

    DAQLOOM_FIELDS(EventSizeConfig, (Kind, kind, "Distribution.", Kind::fixed),
                   (base::Bytes, mean, "Mean size (B); no meaning for `histogram`."),
                   (double, spread_bytes, "Standard deviation of `gaussian` and `gamma`."),
                   (base::Bytes, quantum, "Quantum of `poisson` (B).", 1),
                   (std::vector<Bin>, histogram, "Bins of `histogram`."))
};

/// The sizes of successive events: at least one byte, at most 2^40.
class EventSizes {
  public:
    static base::expected<EventSizes> make(EventSizeConfig config, base::RandomStream random);

    base::Bytes next();

  private:
    EventSizes(EventSizeConfig config, base::RandomStream random);
    base::Bytes draw_from_histogram();

    EventSizeConfig config_;
    base::RandomStream random_;
    std::discrete_distribution<std::size_t> bin_;
};

/// The part of an event that one readout unit holds. The parts of all readout units add up to the
/// event and differ by at most one byte. Some parts are empty if the event has fewer bytes than
/// there are readout units.
constexpr base::Bytes fragment_size(base::Bytes event_size, ReadoutIndex readout,
                                    std::uint32_t readouts) {
    return event_size / readouts + (readout.value() < event_size % readouts ? 1 : 0);
}

/// The size of each readout unit's fragment: its part of the event, by weight. The parts add up to
/// the event, except that an empty part is raised to one byte, so that every readout unit answers.
class FragmentShares {
  public:
    /// `weights`: one weight above zero for each readout unit, or empty for equal parts.
    FragmentShares(std::uint32_t readouts, const std::vector<double>& weights);

    [[nodiscard]] base::Bytes fragment(base::Bytes event_size, ReadoutIndex readout) const {
        const base::Bytes part =
            cumulative_.empty() ? fragment_size(event_size, readout, readouts_)
                                : before(readout + 1, event_size) - before(readout, event_size);
        return std::max<base::Bytes>(part, 1);
    }

  private:
    /// Sum of the bytes held by the readout units with numbers below `readout`.
    [[nodiscard]] base::Bytes before(ReadoutIndex readout, base::Bytes event_size) const {
        return static_cast<base::Bytes>(cumulative_[readout] * static_cast<double>(event_size));
    }

    std::uint32_t readouts_;
    /// Cumulative shares from 0 to 1, one more than there are readout units; empty: equal parts.
    base::Table<ReadoutIndex, double> cumulative_;
};

}  // namespace daqloom::protocol
