// A system that is played to the end of its run, or for a while, for tests.
#pragma once

#include <algorithm>
#include <memory>

#include "base/expected_test.hpp"
#include "base/units.hpp"

namespace daqloom::systems {

/// Runs until then, after `prepare(system)`. Throws what is not simulated, or broken.
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
