#include "live/epoch.hpp"

#include <algorithm>

#include "live/clock.hpp"

namespace daqloom::live {

namespace {

/// So that a data thread with nothing to do still shows that it lives.
constexpr base::Time kLongestSleep = base::milliseconds(100);

}  // namespace

void run_epoch(Epoch& epoch, Transport& transport, NodeCounters& counters, Halt& halt) {
    std::uint32_t requests = 0;
    epoch.begin();
    while (!halt.is_abandoned()) {
        if (const std::uint32_t asked = halt.requests(); asked != requests) {
            requests = asked;
            epoch.on_close(halt.lost());
        }
        const bool heard = transport.poll(epoch);
        const bool stepped = epoch.step(now());
        counters.loops.add(1);
        if (requests > 0 && epoch.is_drained()) {
            return;
        }
        if (!heard && !stepped) {
            const base::Time from = now();
            transport.wait(std::min(epoch.next_timer(), from + kLongestSleep));
            epoch.on_slept(now() - from);
        }
    }
}

}  // namespace daqloom::live
