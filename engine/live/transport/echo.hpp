// Exchanges messages between one unit and others over any transport, to measure round trips and
// processor time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
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
    std::uint32_t unit = 0;  ///< 0 sends to all others together, like a builder unit
    Token token = {};
    Waiting waiting = Waiting::blocking;  ///< otherwise polling counts as processor time
    std::size_t most_bytes = 24;          ///< limit on a message
};

struct RoundTrips {
    DAQLOOM_FIELDS(RoundTrips,
                   (std::vector<base::Time>, times,
                    "Duration of each round until all have answered, at unit 0 (s)."),
                   (std::vector<base::Time>, latencies,
                    "Time from post to arrival of a message, at units other than 0 (s)."),
                   (base::Time, processor,
                    "CPU time of this process, all threads, over all rounds (s)."),
                   (std::uint64_t, messages,
                    "Messages that this unit sent and received, over all rounds."))
};

/// Unit 0 of the exchange, or a unit that exchanges messages with unit 0.
class Echo final : private TransportEvents {
  public:
    /// Fails with one sentence.
    static base::expected<std::unique_ptr<Echo>> make(const EchoConfig& config);

    [[nodiscard]] std::vector<std::byte> address() const { return transport_->address(); }
    /// Connects unit 0 to all others, and each other unit to unit 0; `others`: addresses in the
    /// order of units. Fails if one of them does not answer by `until`.
    base::expected<void> connect(std::vector<std::vector<std::byte>> others, base::Time until);
    /// Exchanges `rounds` messages of `bytes` bytes, whose first 8 bytes contain the time of
    /// posting. A pause before each message lets processors fall asleep. All units use the same
    /// arguments. Fails if this is not over by `until`, or another unit is gone.
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
