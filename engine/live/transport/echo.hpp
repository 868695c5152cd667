// Messages to another unit and back, over any transport: how long one takes, and what it costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/make.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

struct EchoConfig {
    std::string transport = "tcp";
    TcpConfig tcp = {};
    bool begins = false;  ///< one of the two sends the first message
    Token token = {};
    Waiting waiting = Waiting::blocking;  ///< else the time that it polls counts as a cost
    std::size_t bytes = 24;               ///< of a message
};

struct RoundTrips {
    std::vector<base::Time> times;  ///< of each; empty where the other one begins
    base::Time processor;           ///< CPU time of this process, all threads, in all of them
    std::uint64_t messages = 0;     ///< sent and received here in that time
};

/// One end of a pair of units.
class Echo final : private TransportEvents {
  public:
    /// Fails with one sentence.
    static base::expected<std::unique_ptr<Echo>> make(const EchoConfig& config);

    [[nodiscard]] std::vector<std::byte> address() const { return transport_->address(); }
    /// Fails where the other one does not answer by then.
    base::expected<void> connect(std::vector<std::byte> other, base::Time until);
    /// `rounds` messages there and back, with a pause before each, in which processors fall asleep;
    /// both ends are told the same numbers. Fails where that takes longer than until then, or the
    /// other one is gone.
    base::expected<RoundTrips> run(std::uint32_t rounds, base::Time pause, base::Time until);

  private:
    explicit Echo(const EchoConfig& config) : config_(config), message_(config.bytes) {}

    void on_message(UnitIndex /*from*/, std::span<const std::byte> /*bytes*/) override {
        ++received_;
    }
    void on_written(UnitIndex, std::uint32_t) override {}
    void on_write_done(std::uint64_t) override {}
    void on_unreachable(UnitIndex) override { is_alone_ = true; }

    [[nodiscard]] UnitIndex other() const { return UnitIndex(config_.begins ? 1U : 0U); }
    base::expected<void> send(base::Time until);
    base::expected<void> receive(base::Time until);
    base::expected<void> work(base::Time until);

    EchoConfig config_;
    std::vector<std::byte> message_;
    std::optional<Doorbell> doorbell_;
    std::unique_ptr<Transport> transport_;
    std::uint64_t received_ = 0;
    std::uint64_t taken_ = 0;
    bool is_alone_ = false;
};

}  // namespace daqloom::live
