// Messages from one unit to others and back, over any transport: how long they take, and what one
// costs.
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
    std::uint32_t units = 2;
    std::uint32_t unit = 0;  ///< 0 asks all others at once, as a builder unit asks readout units
    Token token = {};
    Waiting waiting = Waiting::blocking;  ///< else the time that it polls counts as a cost
    std::size_t most_bytes = 24;          ///< of a message
};

struct RoundTrips {
    std::vector<base::Time> times;  ///< of each round, until all have answered; of unit 0
    /// From when a message to this unit was posted until it has heard it; of the others.
    std::vector<base::Time> latencies;
    base::Time processor;        ///< CPU time of this process, all threads, in all of them
    std::uint64_t messages = 0;  ///< sent and received here in that time
};

/// A unit of those that speak with the first one.
class Echo final : private TransportEvents {
  public:
    /// Fails with one sentence.
    static base::expected<std::unique_ptr<Echo>> make(const EchoConfig& config);

    [[nodiscard]] std::vector<std::byte> address() const { return transport_->address(); }
    /// To all others, or of these to the first; in the order of units. Fails where one does not
    /// answer by then.
    base::expected<void> connect(std::vector<std::vector<std::byte>> others, base::Time until);
    /// `rounds` messages of so many bytes there and back, of which the first 8 tell when it was
    /// posted, with a pause before each, in which processors fall asleep; all units are told the
    /// same numbers. Fails where that takes longer than until then, or another one is gone.
    base::expected<RoundTrips> run(std::uint32_t rounds, std::size_t bytes, base::Time pause,
                                   base::Time until);

  private:
    explicit Echo(const EchoConfig& config) : config_(config), message_(config.most_bytes) {}

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex, std::uint32_t) override {}
    void on_write_done(std::uint64_t) override {}
    void on_unreachable(UnitIndex) override { is_alone_ = true; }

    [[nodiscard]] bool asks() const { return config_.unit == 0; }
    base::expected<void> send(UnitIndex to, base::Time until);
    base::expected<void> receive(std::uint64_t messages, base::Time until);
    base::expected<void> work(base::Time until);

    EchoConfig config_;
    std::vector<std::byte> message_;
    std::optional<Doorbell> doorbell_;
    std::unique_ptr<Transport> transport_;
    std::uint64_t received_ = 0;
    std::uint64_t taken_ = 0;
    std::vector<base::Time> latencies_;
    bool is_alone_ = false;
};

}  // namespace daqloom::live
