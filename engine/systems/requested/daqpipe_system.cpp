#include "systems/requested/daqpipe_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using namespace protocol;

namespace {

constexpr std::uint64_t kMostFragments = std::uint64_t{1} << 28;

base::expected<void> validate(const DaqpipeSystemConfig& config) {
    DAQLOOM_REFUSE_IF(
        config.readouts.empty() || config.builders.empty() ||
            config.fragment_bytes.size() != config.readouts.size(),
        "{} readout units, {} builder units and {} sizes of fragments; expected one of each "
        "at least, and a size for each readout unit",
        config.readouts.size(), config.builders.size(), config.fragment_bytes.size());
    DAQLOOM_REFUSE_IF(
        std::uint64_t{config.credits} * config.readouts.size() * config.builders.size() >
            kMostFragments,
        "DAQPIPE: {} credits for each of {} builder units with {} readout units; "
        "give fewer, {} fragments under way at most",
        config.credits, config.builders.size(), config.readouts.size(), kMostFragments);
    return {};
}

}  // namespace

protocol::DaqpipeUnitConfig unit_config(const DaqpipeSystemConfig& config) {
    return {.rules = config,
            .readouts = static_cast<std::uint32_t>(config.readouts.size()),
            .builders = static_cast<std::uint32_t>(config.builders.size()),
            .largest_fragment = protocol::largest_mfp(
                config.fragment_sizes, *std::ranges::max_element(config.fragment_bytes)),
            .seed = config.seed,
            .reserves = false};
}

base::expected<std::unique_ptr<DaqpipeSystem>> DaqpipeSystem::make(
    const DaqpipeSystemConfig& config) {
    DAQLOOM_CHECK(validate(config));
    std::unique_ptr<DaqpipeSystem> system(new DaqpipeSystem(config));
    DAQLOOM_CHECK(system->build(unit_config(config)));
    return system;
}

base::expected<void> DaqpipeSystem::prepare_sources() {
    for (const ReadoutIndex readout : placement_.readouts.node_of.indices()) {
        sizes_.push_back(
            {config_.fragment_sizes, config_.fragment_bytes[readout.value()],
             base::RandomStream(config_.seed, fmt::format("fragment {}", readout.value()))});
    }
    next_slot_.resize(placement_.hosts.size());
    offered_.resize(placement_.hosts.size());
    await_event(Time::zero());
    return {};
}

void DaqpipeSystem::begin_all() {
    for (const std::uint32_t number : config_.is_push ? std::span(placement_.readouts.node_of)
                                                      : std::span(placement_.builders.node_of)) {
        keep_slots(number, Time::zero());
    }
}

void DaqpipeSystem::on_begin(std::uint32_t number, Time now) {
    offered_[number] = first_mep_;
    if (placement_.readouts.unit_on[number] != ReadoutIndex::none()) {
        feed(number, now);
    }
    keep_slots(number, now);
    end_event_wait(now);
}

// ---- sources ------------------------------------------------------------------------------------

void DaqpipeSystem::on_source_event(Time now) {
    ++events_;
    for (const std::uint32_t number : placement_.readouts.node_of) {
        if (run_) [[unlikely]] {
            feed(number, now);
        } else {
            World world{*this, number, now};
            unit(number).on_data(now, world);
        }
    }
    event_waits_ = true;
    end_event_wait(now);
}

void DaqpipeSystem::feed(std::uint32_t number, Time now) {
    if (number == kNoNode || !has_unit(number)) {
        return;
    }
    World world{*this, number, now};
    while (offered_[number] < events_ && unit(number).wants_data()) {
        ++offered_[number];
        unit(number).on_data(now, world);
    }
}

base::Bytes DaqpipeSystem::fragment_of(std::uint32_t number, EventId event) {
    if (run_ && in_run(event) >= offered_[number]) {
        return 0;
    }
    return sizes_[readouts_in_run_.unit_on[number]].next();
}

void DaqpipeSystem::end_event_wait(Time now) {
    if (event_waits_ && manager() != nullptr && manager()->backlog() == 0) {
        event_waits_ = false;
        await_event(now);
    }
}

/// Schedules the next event at its time, or now if that time has passed.
void DaqpipeSystem::await_event(Time now) {
    const Time due = config_.event_interval * static_cast<std::int64_t>(events_);
    nodes().events().push({std::max(now, due), kEvent, 0});
}

void DaqpipeSystem::await_slot(std::uint32_t number, Time now) {
    const Time begin = config_.slot * static_cast<std::int64_t>(next_slot_[number]);
    push(std::max(now, nodes().clock(number).global(begin)), kSlot, number, number);
}

// ---- time slots and consumers -------------------------------------------------------------------

/// Starts the time slots of a unit, by the clock of its node.
void DaqpipeSystem::keep_slots(std::uint32_t number, Time now) {
    if (unit(number).keeps_slots()) {
        const Time local = nodes().clock(number).local(now);
        next_slot_[number] =
            static_cast<std::uint64_t>(std::max<std::int64_t>(local.ps / config_.slot.ps, 0));
        await_slot(number, now);
        ++clocks_;
    }
}

void DaqpipeSystem::on_event(const sim::Event& event) {
    switch (event.kind) {
        case kEvent:
            on_source_event(event.at);
            break;
        case kSlot: {
            World world{*this, event.index, event.at};
            unit(event.index).on_slot(next_slot_[event.index]++, event.at, world);
            await_slot(event.index, event.at);
            break;
        }
        case kProcessed: {
            const InProcess built = in_process_[event.index];
            in_process_.release(event.index);
            World world{*this, built.node, event.at};
            unit(built.node).on_consumed(built.event, event.at, world);
            break;
        }
        default:
            RequestedSystem::on_event(event);
    }
}

void DaqpipeSystem::forget(std::uint32_t kind, std::uint32_t index) {
    if (kind == kProcessed) {
        in_process_.release(index);
    }
}

void DaqpipeSystem::on_written(const Message& message, Time now) {
    ++counted_.fragments_written;
    counted_.bytes_written += message.bytes;
    World world{*this, message.from, now};
    unit(message.from)
        .on_write_done(EventId{message.content.number}, placement_.builders.unit_on[message.to],
                       world);
    report_input(message.from, now);
}

void DaqpipeSystem::on_built(std::uint32_t number, EventId event, const EventRecord& record,
                             Time now) {
    if (recording_) {
        recorded_.push_back({EventId{in_run(event)}, builder_on(number), record.assigned, now});
    }
    counted_.bytes_built += record.collected;
    push(now + base::draw_total(config_.processing, processing_), kProcessed,
         in_process_.put({number, event}), number);
}

// ---- counts -------------------------------------------------------------------------------------

void DaqpipeSystem::on_counting() {
    if (config_.warmup > Time::zero()) {  // without a warm-up, counting starts at time zero
        before_ = sums();
    }
}

bool DaqpipeSystem::stalled() const {
    if (run_) {
        return false;
    }
    const std::size_t clocks = clocks_ + flows().awaited() + (event_waits_ ? 0 : 1) +
                               (is_warm() ? 0 : 1) + transport().idle_events();
    const bool awaits_message =
        nodes().messages_under_way() > 0 || (clocks_ == 0 && events_not_built() > 0);
    return awaits_message && nodes().events().size() == clocks;
}

std::uint64_t DaqpipeSystem::events_not_built() const {
    std::uint64_t all = 0;
    each_under_way([&](std::uint64_t, const EventRecord&) { ++all; });
    return all;
}

std::vector<DaqpipeSystem::AssignedEvent> DaqpipeSystem::events_under_way() const {
    std::vector<AssignedEvent> all;
    each_under_way([&](std::uint64_t number, const EventRecord& record) {
        all.push_back({EventId{number}, record.builder, record.assigned, record.collected});
    });
    return all;
}

DaqpipeReport DaqpipeSystem::sums() const {
    DaqpipeReport all = counted_;
    all.window = now();
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    all.unexpected += refused_;
    for (std::uint32_t number = 0; number < placement_.hosts.size(); ++number) {
        if (has_unit(number)) {
            add(unit(number), all);
        }
    }
    return all;
}

void DaqpipeSystem::add(const DaqpipeUnit& unit, DaqpipeReport& sums) const {
    sums.unexpected += unit.unexpected_messages();
    if (const auto* builder = unit.builder()) {
        const DaqpipeBuilder::Counters& counted = builder->counters();
        const Deliveries events = delivered(counted);
        sums.events_built += events.built;
        sums.events_incomplete += events.incomplete;
        sums.unexpected +=
            counted.unexpected_fragments + counted.unexpected_processed + counted.unexpected_slots;
    }
    if (const auto* readout = unit.readout()) {
        const DaqpipeReadout::Counters& counted = readout->counters();
        sums.unexpected += counted.unexpected_completions + counted.unexpected_slots;
    }
}

DaqpipeReport DaqpipeSystem::report() const {
    DaqpipeReport after = base::since(sums(), before_);
    after.events_under_way = events_not_built();
    return after;
}

base::expected<void> DaqpipeSystem::check_own_books() const {
    using Builder = RequestingBuilder::Counters;
    using Readout = DaqpipeReadout::Counters;
    Bytes collecting = 0;
    each_under_way(
        [&](std::uint64_t, const EventRecord& record) { collecting += record.collected; });
    const std::uint64_t taken = sum(&DaqpipeUnit::builder, &Builder::fragment_bytes);
    return balance({{"requests", sum(&DaqpipeUnit::builder, &Builder::requests),
                     sum(&DaqpipeUnit::readout, &Readout::requests), under_way(Kind::request)},
                    {"bytes", sum(&DaqpipeUnit::readout, &Readout::fragment_bytes), taken,
                     static_cast<std::uint64_t>(bytes_under_way_)},
                    {"collected bytes", taken, static_cast<std::uint64_t>(counted_.bytes_built),
                     static_cast<std::uint64_t>(collecting)}});
}

}  // namespace daqloom::systems
