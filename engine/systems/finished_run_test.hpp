// A system that is played to the end of its run, for tests.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

namespace daqloom::systems {

/// Throws what is wrong with the configuration, or with the books at the end.
template <class System, class Config>
std::unique_ptr<System> play(const Config& config) {
    auto made = System::make(config);
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    (*made)->run(config.duration);
    if (const auto conserved = (*made)->check_conservation(); !conserved) {
        throw std::runtime_error(conserved.error().message);
    }
    return std::move(*made);
}

}  // namespace daqloom::systems
