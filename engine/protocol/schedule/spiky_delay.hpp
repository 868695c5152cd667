// A random delay with occasional spikes.
#pragma once

#include "base/distribution.hpp"
#include "base/fields.hpp"
#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

/// Time until a readout card's PCIe write is acknowledged, with latency spikes that the card's
/// buffer has to bridge (readout_cards.hpp).
struct SpikyDelay {
    DAQLOOM_FIELDS(SpikyDelay, (base::DelayDistribution, usual, "Delay that is no spike."),
                   (base::DelayDistribution, spike, "Delay that is a spike."),
                   (double, spike_probability,
                    "Probability that a delay is a spike, 0 to 1; 0 draws nothing for it."))

    [[nodiscard]] base::Time draw(base::RandomStream& random) const {
        const bool is_spike = spike_probability > 0 && random.uniform() < spike_probability;
        return (is_spike ? spike : usual).draw(random);
    }
};

}  // namespace daqloom::protocol
