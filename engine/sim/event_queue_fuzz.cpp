// Compares any sequence of pushes and pops with a heap of (time, insertion number).
#include <functional>
#include <queue>
#include <utility>

#include "base/fuzz_test.hpp"
#include "sim/event_queue.hpp"

using daqloom::base::require;
using daqloom::base::Time;
using daqloom::sim::Event;
using daqloom::sim::EventQueue;
using daqloom::sim::RadixWheel;

namespace {

using Entry = std::pair<std::int64_t, std::uint32_t>;

/// Each byte is an operation: below 64, pop; else push at a distance of (byte & 31) << shift. The
/// shift grows with the bits above, so that events fall on every level of the wheel.
template <class Queue>
void play(const std::uint8_t* data, std::size_t size) {
    Queue queue;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> reference;
    std::uint32_t inserted = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (data[i] < 64) {
            if (reference.empty()) {
                continue;
            }
            const auto [at_ps, index] = reference.top();
            reference.pop();
            require(queue.next_time() == Time{at_ps});
            require(queue.pop() == Event{Time{at_ps}, 0, index});
        } else {
            const int shift = (data[i] >> 5) * 6 - 12;
            const auto distance = static_cast<std::int64_t>(data[i] & 31) << shift;
            const std::int64_t at_ps = queue.now().ps + distance;
            queue.push({Time{at_ps}, 0, inserted});
            reference.emplace(at_ps, inserted++);
        }
        require(queue.size() == reference.size());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    play<RadixWheel>(data, size);
    play<EventQueue>(data, size);
    return 0;
}
