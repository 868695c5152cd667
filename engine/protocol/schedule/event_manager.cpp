#include "protocol/schedule/event_manager.hpp"

#include <fmt/format.h>

#include <utility>

namespace daqloom::protocol {

namespace {

constexpr std::uint32_t most_builders = 1'000'000;
constexpr std::uint32_t most_events_per_builder = 1'000'000;

}  // namespace

base::expected<EventManager> EventManager::make(EventManagerConfig config,
                                                base::RandomStream random) {
    DAQLOOM_REFUSE_IF(config.builders < 1 || config.builders > most_builders,
                      "event manager: {} builders; give 1 to {}", config.builders, most_builders);
    DAQLOOM_REFUSE_IF(
        config.concurrent_events < 1 || config.concurrent_events > most_events_per_builder,
        "event manager: {} concurrent events; give 1 to {}", config.concurrent_events,
        most_events_per_builder);
    return EventManager(config, std::move(random));
}

EventManager::EventManager(EventManagerConfig config, base::RandomStream random)
    : config_(config),
      random_(std::move(random)),
      in_flight_(config.builders, 0),
      assigned_(config.builders, 0),
      free_slots_(std::uint64_t{config.builders} * config.concurrent_events) {}

BuilderIndex EventManager::choose_round_robin() const {
    BuilderIndex builder = next_in_turn_;
    while (in_flight_[builder] == config_.concurrent_events) {
        builder = after(builder);
    }
    return builder;
}

BuilderIndex EventManager::choose_least_busy() const {
    BuilderIndex least = next_in_turn_;
    for (BuilderIndex b = after(least); b != next_in_turn_; b = after(b)) {
        if (in_flight_[b] < in_flight_[least]) {
            least = b;
        }
    }
    return least;
}

BuilderIndex EventManager::choose_random() {
    const auto has_room = [this](std::uint32_t n) { return n < config_.concurrent_events; };
    const auto candidates = std::count_if(in_flight_.begin(), in_flight_.end(), has_room);
    std::uint64_t skip = random_.uniform_int(static_cast<std::uint64_t>(candidates));
    BuilderIndex builder;
    while (!has_room(in_flight_[builder]) || skip-- > 0) {
        ++builder;
    }
    return builder;
}

}  // namespace daqloom::protocol
