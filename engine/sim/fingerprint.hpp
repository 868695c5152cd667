// A hash of the events of a run.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/event.hpp"

namespace daqloom::sim {

/// FNV-1a hash over one word per event, made of its time, kind and index: one multiplication per
/// event, and a different order gives a different hash.
class Fingerprint {
  public:
    void add(const Event& event) {
        const std::uint64_t word = static_cast<std::uint64_t>(event.at.ps) ^
                                   std::rotl(std::uint64_t{event.kind}, 56) ^
                                   (std::uint64_t{event.index} << 32);
        hash_ = (hash_ ^ word) * 0x100000001b3;
    }
    [[nodiscard]] std::uint64_t value() const { return hash_; }

  private:
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace daqloom::sim
