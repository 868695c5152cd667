// Runs of a system for tests, to its end or to a given time.
#pragma once

#include <algorithm>
#include <memory>

#include "base/expected_test.hpp"
#include "base/units.hpp"

namespace daqloom::systems {

/// Runs a system until `until`, after `prepare(system)`. Throws if its configuration is refused or
/// a conservation law is broken.
template <class System, class Config, class Prepare>
std::unique_ptr<System> play(Config config, base::Time until, Prepare prepare) {
    config.duration = std::max(config.duration, until);
    auto system = base::value_of(System::make(config));
    prepare(*system);
    system->run(until);
    base::value_of(system->check_conservation());
    return system;
}
template <class System, class Config>
std::unique_ptr<System> play(const Config& config, base::Time until) {
    return play<System>(config, until, [](System&) {});
}
template <class System, class Config>
std::unique_ptr<System> play(const Config& config) {
    return play<System>(config, config.duration);
}

}  // namespace daqloom::systems
