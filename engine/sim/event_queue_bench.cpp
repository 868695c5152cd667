// The hold model: with n events pending, pop the earliest and push one for a random time later.
//
// Time steps are exponential with a mean of n · 5 ns, so that an event is popped each 5 ns of
// virtual time, as in a simulated rack; they are drawn beforehand. One item is one pop and one
// push; rates are per CPU second. The reference is the heap of the standard library, with the order
// of insertion as a second key, which keeps events at equal times in order.
#include <benchmark/benchmark.h>

#include <queue>
#include <random>

#include "sim/event_queue.hpp"

namespace daqloom::sim {
namespace {

constexpr double kSpacingPs = 5000;
constexpr std::size_t kIncrements = 1 << 18;

std::vector<base::Time> exponential_increments(double mean_ps) {
    std::mt19937_64 random(1);
    std::exponential_distribution<double> exponential(1 / mean_ps);
    std::vector<base::Time> increments(kIncrements);
    for (auto& increment : increments) {
        increment.ps = static_cast<std::int64_t>(exponential(random));
    }
    return increments;
}

class BinaryHeap {
  public:
    void push(Event event) { heap_.push({event, inserted_++}); }
    Event pop() {
        const Event event = heap_.top().event;
        heap_.pop();
        return event;
    }
    [[nodiscard]] std::size_t size() const { return heap_.size(); }

  private:
    struct Entry {
        Event event;
        std::uint64_t number;
    };
    struct Later {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.event.at != b.event.at ? a.event.at > b.event.at : a.number > b.number;
        }
    };
    std::priority_queue<Entry, std::vector<Entry>, Later> heap_;
    std::uint64_t inserted_ = 0;
};

template <class Queue>
void hold(benchmark::State& state) {
    const auto pending = static_cast<std::size_t>(state.range(0));
    const auto increments = exponential_increments(kSpacingPs * static_cast<double>(pending));
    Queue queue;
    std::size_t next = 0;
    auto push_later = [&](Event event) {
        event.at += increments[next++ % kIncrements];
        queue.push(event);
    };
    for (std::uint32_t i = 0; i < pending; ++i) {
        push_later({base::Time::zero(), 0, i});
    }
    for (std::size_t i = 0; i < 4 * pending + 1'000'000; ++i) {  // forget the start, adapt
        push_later(queue.pop());
    }
    for (auto _ : state) {
        push_later(queue.pop());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
    state.counters["pending"] = static_cast<double>(queue.size());
}
BENCHMARK(hold<EventQueue>)->Arg(200)->Arg(20'000)->Arg(500'000);
BENCHMARK(hold<RadixWheel>)->Arg(200)->Arg(20'000)->Arg(500'000);
BENCHMARK(hold<BinaryHeap>)->Arg(200)->Arg(20'000)->Arg(500'000);

}  // namespace
}  // namespace daqloom::sim
