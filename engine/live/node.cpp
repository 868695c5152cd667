#include "live/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "live/buffer.hpp"
#include "live/clock.hpp"
#include "live/doorbell.hpp"
#include "live/ends.hpp"
#include "live/epoch.hpp"
#include "live/members.hpp"
#include "live/transport/make.hpp"

namespace daqloom::live {

namespace {

constexpr UnitIndex kMostUnits = 65'536;

base::expected<void> check(const NodeConfig& config) {
    for (const auto* slots : {&config.readout_in_slot, &config.builder_in_slot}) {
        for (const UnitIndex unit : *slots) {
            if (unit != nobody && unit >= kMostUnits) {
                return base::failure(
                    fmt::format("unit {} in a slot; give 0 to {}", unit, kMostUnits - 1));
            }
        }
    }
    if (config.streams < 1 || config.streams > most_streams) {
        return base::failure(
            fmt::format("{} streams; give 1 to {}", config.streams, most_streams));
    }
    return {};
}

/// The data flow of one epoch. What it uses outlives it.
struct Running {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Epoch> epoch;
    Halt halt;
    std::jthread thread;
};

}  // namespace

struct Node::Parts {
    explicit Parts(NodeConfig given) : config(std::move(given)) {}
    ~Parts() { stop(); }

    [[nodiscard]] bool is_in(const std::vector<UnitIndex>& slots) const {
        return std::ranges::find(slots, config.self) != slots.end();
    }
    [[nodiscard]] bool reads() const { return is_in(config.readout_in_slot); }
    [[nodiscard]] bool builds() const { return is_in(config.builder_in_slot); }
    [[nodiscard]] UnitIndex units() const {
        UnitIndex most = 0;
        for (const auto* slots : {&config.readout_in_slot, &config.builder_in_slot}) {
            for (const UnitIndex unit : *slots) {
                most = unit == nobody ? most : std::max(most, unit + 1);
            }
        }
        return most;
    }

    base::expected<void> make_buffers();
    base::expected<void> renew_output();
    void stop();

    NodeConfig config;
    std::optional<Doorbell> doorbell;
    NodeCounters counters;
    std::vector<Buffer> streams;
    Ends ends;
    std::unique_ptr<Running> running;
    std::uint32_t epoch = 0;
    std::vector<UnitIndex> members;
    /// Whether somebody who is not a member any more may still write to the output buffer, or its
    /// consumer is not through with it.
    bool is_output_in_use = false;
};

base::expected<std::unique_ptr<Node>> Node::make(NodeConfig config) {
    if (auto checked = check(config); !checked) {
        return tl::unexpected(checked.error());
    }
    auto parts = std::make_unique<Parts>(std::move(config));
    if (auto made = parts->make_buffers(); !made) {
        return tl::unexpected(made.error());
    }
    return std::unique_ptr<Node>(new Node(std::move(parts)));
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() = default;

}  // namespace daqloom::live
