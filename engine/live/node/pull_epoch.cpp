// An epoch under pull building: the unit of this node between transport, source and consumer.
#include <algorithm>
#include <optional>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/node/requested_epoch.hpp"
#include "protocol/units/pull_unit.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::EventId;
using protocol::PullUnit;
using protocol::ReadoutIndex;
using protocol::UnitMessage;

std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }

class PullEpoch final : public RequestedEpoch {
  public:
    PullEpoch(const EpochParts& parts, Members members)
        : RequestedEpoch(parts, std::move(members)) {}

    base::expected<void> make_unit();

    void begin() override {}
    bool step(Time now) override;
    [[nodiscard]] Time next_timer() const override { return unit_->next_timer(); }
    void on_lease(std::uint64_t mep_end) override;
    void on_close(std::span<const UnitIndex> lost) override;
    [[nodiscard]] bool is_drained() const override {
        return unit_->is_drained() && post_.is_empty();
    }
    void end() override {}
    [[nodiscard]] std::uint64_t next_mep() const override { return in_run(unit_->next_event()); }

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;

  private:
    struct World;

    void count();
    [[nodiscard]] Counter* cause_of_waiting() const override;
    [[nodiscard]] bool waits_for_its_own() const override { return unit_->waits_for_its_own(); }

    std::optional<PullUnit> unit_;
    std::uint64_t dropped_ = 0;  ///< counted until now
};

/// See PullWorld.
struct PullEpoch::World {
    PullEpoch& epoch;

    void send(ReadoutIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.readouts[to], message);
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.builders[to], message);
    }
    [[nodiscard]] Bytes held(EventId event) const {
        return static_cast<Bytes>(epoch.mfp(number(event)).size());
    }
    void write(EventId event, BuilderIndex to, Bytes offset) {
        epoch.write_mfp(number(event), to, offset);
    }
    void give_back(std::uint32_t count) {
        for (; count > 0; --count) {
            epoch.stream_->give_back();
        }
    }
    void assigned(EventId event) { epoch.counters_.answered_to(epoch.in_run(number(event)) + 1); }
    void collect(EventId event, std::uint32_t slot) { epoch.collect(event, slot); }
    [[nodiscard]] Bytes place(std::uint32_t slot, ReadoutIndex readout) {
        return epoch.clear_place(slot, readout);
    }
    void deliver(EventId event, std::uint32_t slot) {
        epoch.deliver(event, slot, [&](ReadoutIndex readout) {
            return epoch.size_of(slot, readout) > 0;  // a fragment has one byte at least
        });
    }
};

base::expected<void> PullEpoch::make_unit() {
    if (auto made = make_memory(); !made) {
        return made;
    }
    auto unit = PullUnit::make({.rules = config(),
                                .readout = self_readout(),
                                .builder = self_builder(),
                                .readouts = readouts(),
                                .builders = builders(),
                                .when_incomplete = config().delivers_incomplete
                                                       ? protocol::WhenIncomplete::deliver
                                                       : protocol::WhenIncomplete::drop,
                                .seed = config().seed,
                                .begin = now()});
    if (!unit) {
        return tl::unexpected(unit.error());
    }
    unit_.emplace(std::move(*unit));
    if (self_readout() != ReadoutIndex::none()) {
        make_stream(unit_->window());
    }
    if (self_builder() != BuilderIndex::none()) {
        make_places();
    }
    return {};
}

bool PullEpoch::step(Time now) {
    World world{*this};
    bool did = post_.retry();
    did |= unit_->on_time(now, world);
    for (; stream_ && unit_->wants_data() && stream_->has_next(); did = true) {
        take();
        unit_->on_data(now, world);
    }
    if (unit_->builder() != nullptr) {
        did |=
            take_back([&](std::uint64_t event) { unit_->on_consumed(EventId{event}, now, world); });
    }
    count();
    return did;
}

void PullEpoch::count() {
    std::uint64_t writes = 0;
    if (const auto* builder = unit_->builder()) {
        const auto& counters = builder->counters();
        writes += counters.unexpected_fragments + counters.from_lost;
        counters_.meps_dropped.add(counters.dropped - std::exchange(dropped_, counters.dropped));
    }
    if (const auto* manager = unit_->manager()) {
        counters_.events_waiting.set(manager->backlog());
    }
    count_refused(unit_->unexpected_messages(), writes);
}

Counter* PullEpoch::cause_of_waiting() const {
    if (!stream_) {
        return nullptr;
    }
    if (unit_->waits_for_data() > 0) {
        return &counters_.waiting_for_source;
    }
    return unit_->unanswered() > 0 || !post_.is_empty() ? &counters_.waiting_for_network
                                                        : &counters_.waiting_for_builder;
}

void PullEpoch::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    const auto message = message_of(from, bytes);
    if (!message) {
        return;
    }
    World world{*this};
    if (!unit_->on_message(members_.readout_of[from], members_.builder_of[from], *message, now(),
                           world)) {
        refuse_message();
    }
}

void PullEpoch::on_written(UnitIndex from, std::uint32_t bits) {
    if (const auto here = arrived(from, bits)) {
        World world{*this};
        unit_->on_fragment(here->event, here->readout, here->bytes, now(), world);
    }
}

void PullEpoch::on_write_done(std::uint64_t context) {
    count_written(context);
    World world{*this};
    unit_->on_write_done(EventId{context}, world);
}

void PullEpoch::on_lease(std::uint64_t mep_end) {
    World world{*this};
    unit_->on_lease(in_epoch(mep_end), world);
}

void PullEpoch::on_close(std::span<const UnitIndex> lost) {
    const Lost gone = lose(lost);
    World world{*this};
    unit_->on_close(gone.readouts, gone.builders, now(), world);
}

}  // namespace

base::expected<std::unique_ptr<Epoch>> make_pull_epoch(const EpochParts& parts, Members members) {
    auto epoch = std::make_unique<PullEpoch>(parts, std::move(members));
    if (auto made = epoch->make_unit(); !made) {
        return tl::unexpected(made.error());
    }
    return epoch;
}

}  // namespace daqloom::live
