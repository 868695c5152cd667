// DPDK's environment (EAL), which a process can start only once.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/expected.hpp"

namespace daqloom::softswitch::io {

class Eal {
  public:
    /// Starts DPDK with the arguments of EAL, without a program name. Fails with one sentence, also
    /// if this process has already started DPDK.
    static base::expected<Eal> start(std::span<const std::string> arguments);

    Eal(Eal&& other) noexcept : is_there_(std::exchange(other.is_there_, false)) {}
    Eal& operator=(Eal&&) = delete;
    ~Eal();

  private:
    Eal() = default;
    bool is_there_ = true;
};

}  // namespace daqloom::softswitch::io
