// A builder unit under any sequence of messages, most of them nonsense: it asks for every fragment
// once, builds every event once, and keeps its limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>

#include "protocol/pull_builder.hpp"

using namespace daqloom::protocol;

namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

struct Driver {
    std::set<std::pair<EventId, SourceIndex>> requested;
    std::set<EventId> built_and_held;

    void request(EventId event, SourceIndex source) {
        require(requested.emplace(event, source).second);
    }
    void built(EventId event) { require(built_and_held.insert(event).second); }
    void done(EventId event) {
        require(built_and_held.erase(event) == 1);
        // The identifier may come again: what was asked for its predecessor is history.
        std::erase_if(requested, [event](const auto& asked) { return asked.first == event; });
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) {
        return 0;
    }
    const PullBuilderConfig config{.sources = 1U + data[0] % 70U,
                                   .outstanding_fragments = data[1] % 16U,
                                   .concurrent_events = 1U + data[2] % 5U};
    auto made = PullBuilder::make(config);
    require(made.has_value());
    PullBuilder& builder = *made;
    Driver driver;
    for (std::size_t i = 3; i + 1 < size; i += 2) {
        const EventId event{data[i] % 8U};
        const SourceIndex source{data[i + 1] % 72U};
        switch (data[i] >> 6) {
            case 0:
                builder.on_assigned(event, driver);
                break;
            case 1:
                builder.on_processed(event, driver);
                break;
            default:
                builder.on_fragment(event, source, data[i + 1], driver);
        }
        const auto& counters = builder.counters();
        require(builder.events_held() == counters.assigned - counters.done);
        require(builder.events_held() <= config.concurrent_events);
        require(builder.outstanding() == counters.requests - counters.fragments);
        require(config.outstanding_fragments == 0 ||
                builder.outstanding() <= config.outstanding_fragments);
        require(driver.built_and_held.size() == counters.built - counters.done);
    }
    return 0;
}
