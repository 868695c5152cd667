// DAQPIPE on a node. The event manager assigns an event when the source of readout unit 0 has
// delivered its fragment of the event.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/daqpipe.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/units/requested_unit.hpp"

namespace daqloom::protocol {

class DaqpipeUnit : public RequestedUnit<DaqpipeUnit, DaqpipeRules, DaqpipeBuilder> {
  public:
    static constexpr RequestedWords words = {"DAQPIPE", "credits", "credits for events"};
    static constexpr bool limits_writes = true;
    static constexpr bool has_arrivals = false;
    static constexpr bool takes_empty_fragments = true;
    static constexpr std::uint32_t margin = 0;

    static std::uint32_t slots(const DaqpipeRules& rules) { return rules.credits; }

    static base::expected<DaqpipeUnit> make(const Config& config);

    // ---- inputs

    template <RequestedWorld World>
    bool on_time(base::Time now, World& world) {
        return give_up_waiting(now, world);
    }

    template <RequestedWorld World>
    void on_slot(std::uint64_t slot, base::Time now, World& world) {
        if (config_.rules.is_push && readout_) {
            ReadoutOut<World> out{world};
            readout_->on_slot(slot, out);
        } else if (!config_.rules.is_push && builder_) {
            BuilderOut<World> out{*this, now, world};
            builder_->on_slot(slot, out);
        }
    }

    template <RequestedWorld World>
    void on_write_done(EventId event, BuilderIndex builder, World& world) {
        give_back_written(event, world);
        ReadoutOut<World> out{world};
        readout_->on_write_done(builder, out);
    }

    template <RequestedWorld World>
    void on_end(base::Time now, World& world) {
        if (builder_) {
            BuilderOut<World> out{*this, now, world};
            builder_->on_end(out);
        }
    }

    // ---- observers

    /// The next time at which on_time has work.
    [[nodiscard]] base::Time next_timer() const { return give_up_at_; }
    [[nodiscard]] bool keeps_slots() const {
        return config_.rules.slot > base::Time::zero() &&
               (config_.rules.is_push ? readout_.has_value() : builder_.has_value());
    }
    /// After on_close: whether the requests of live builder units are written, and the fragments
    /// that live readout units hold for assigned events have arrived.
    [[nodiscard]] bool is_drained() const {
        return (!readout_ || readout_->is_drained()) && (!builder_ || builder_->is_drained());
    }
    /// One more than the last number of an event that was assigned or had a fragment written.
    [[nodiscard]] std::uint64_t next_event() const {
        return std::max(readout_ ? readout_->next_event() : 0,
                        builder_ ? builder_->next_event() : 0);
    }
    /// Whether the unit only waits for its own source or consumer, so that no progress is expected.
    [[nodiscard]] bool waits_for_its_own() const {
        return waits_for_data() || waits_for_consumer();
    }
    /// Whether the readout unit writes nothing because its source has delivered no data.
    [[nodiscard]] bool waits_for_data() const {
        return readout_ && readout_->in_flight() == 0 &&
               (book_->waiting() > 0 || (manager_ && manager_->backlog() == 0));
    }
    /// Fragments written.
    [[nodiscard]] std::uint64_t written() const {
        return readout_ ? readout_->counters().fragments : 0;
    }
    /// Fragments that are being written.
    [[nodiscard]] std::uint64_t unanswered() const { return readout_ ? readout_->in_flight() : 0; }
    [[nodiscard]] std::uint64_t unexpected_messages() const {
        return RequestedUnit::unexpected_messages() +
               (readout_ ? readout_->counters().unexpected_requests : 0);
    }
    [[nodiscard]] const DaqpipeReadout* readout() const { return readout_ ? &*readout_ : nullptr; }

  private:
    friend RequestedUnit;

    static constexpr std::uint32_t most_parallel_sends = 65'536;

    template <class World>
    struct ReadoutOut {
        World& world;

        void write(const DaqpipeWrite& write) {
            world.write(write.event, write.builder, write.place, write.bytes);
        }
    };

    explicit DaqpipeUnit(const Config& config) : RequestedUnit(config) {}

    template <class World>
    void serve(EventId event, const RequestBook::Request& request, base::Time /*now*/,
               World& world) {
        ReadoutOut<World> out{world};
        readout_->on_request(event, request.builder, request.offset, world.held(event), out);
    }
    [[nodiscard]] bool is_served(BuilderIndex builder, std::uint64_t waiting) const {
        return readout_->is_served(builder, waiting);
    }
    bool on_last_request(BuilderIndex builder, std::uint64_t requests) {
        readout_->on_last_request(builder, requests);
        return true;
    }
    template <class World>
    void lose(std::span<const BuilderIndex> builders, World& world) {
        if (readout_) {
            ReadoutOut<World> out{world};
            readout_->on_close(builders, out);
        }
    }

    std::optional<DaqpipeReadout> readout_;
};

using DaqpipeUnitConfig = DaqpipeUnit::Config;

inline base::expected<DaqpipeUnit> DaqpipeUnit::make(const Config& config) {
    const DaqpipeRules& rules = config.rules;
    const bool is_timed = rules.slot > base::Time::zero();
    DAQLOOM_REFUSE_IF(rules.parallel_sends < 1 || rules.parallel_sends > most_parallel_sends,
                      "DAQPIPE: {} parallel sends; give 1 to {}", rules.parallel_sends,
                      most_parallel_sends);
    DaqpipeUnit unit(config);
    DAQLOOM_CHECK(unit.prepare({}));
    if (config.readout != ReadoutIndex::none()) {
        const std::uint64_t together = std::uint64_t{rules.credits} * rules.parallel_sends;
        const std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
        const auto limit = static_cast<std::uint32_t>(std::min(together, most));
        DAQLOOM_TRY(readout, DaqpipeReadout::make({.self = config.readout,
                                                   .builders = config.builders,
                                                   .credits = rules.credits,
                                                   .parallel_sends = rules.is_push ? limit : 0,
                                                   .is_timed = is_timed && rules.is_push}));
        unit.readout_.emplace(std::move(readout));
    }
    if (config.builder != BuilderIndex::none()) {
        DAQLOOM_TRY(builder, DaqpipeBuilder::make(
                                 {.self = config.builder,
                                  .readouts = config.readouts,
                                  .credits = rules.credits,
                                  .parallel_sends = rules.is_push ? 0 : rules.parallel_sends,
                                  .largest_fragment = config.largest_fragment,
                                  .is_timed = is_timed && !rules.is_push,
                                  .when_incomplete = config.when_incomplete}));
        unit.builder_.emplace(std::move(builder));
    }
    return unit;
}

}  // namespace daqloom::protocol
