#include "systems/daqpipe_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "systems/daqpipe_world.hpp"

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using namespace protocol;

namespace {

constexpr std::uint64_t most_fragments = std::uint64_t{1} << 28;

FragmentSizes sizes_of(const DaqpipeSystemConfig& config) {
    return config.is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
}

}  // namespace

protocol::DaqpipeUnitConfig unit_config(const DaqpipeSystemConfig& config) {
    return {.rules = config,
            .readouts = static_cast<std::uint32_t>(config.readouts.size()),
            .builders = static_cast<std::uint32_t>(config.builders.size()),
            .largest_fragment = protocol::largest_mfp(
                sizes_of(config), *std::ranges::max_element(config.fragment_bytes)),
            .seed = config.seed};
}

base::expected<std::unique_ptr<DaqpipeSystem>> DaqpipeSystem::make(
    const DaqpipeSystemConfig& config) {
    std::unique_ptr<DaqpipeSystem> system(new DaqpipeSystem(config));
    DAQLOOM_CHECK(system->place_units());
    system->nodes().events().push({config.warmup, kWarm, 0});
    system->await_event(Time::zero());
    if (config.run) {
        DAQLOOM_CHECK(system->begin_run());
        return system;
    }
    const Placement& placed = system->placement_;
    for (const std::uint32_t node :
         config.is_push ? std::span(placed.readouts.node_of) : std::span(placed.builders.node_of)) {
        system->keep_slots(node, Time::zero());
    }
    system->start_flows();
    return system;
}

base::expected<void> DaqpipeSystem::place_units() {
    if (config_.readouts.empty() || config_.builders.empty() ||
        config_.fragment_bytes.size() != config_.readouts.size()) {
        return base::failure(fmt::format(
            "{} readout units, {} builder units and {} sizes of fragments; expected one of each "
            "at least, and a size for each readout unit",
            config_.readouts.size(), config_.builders.size(), config_.fragment_bytes.size()));
    }
    DAQLOOM_TRY(placement, Placement::make(config_.readouts, config_.builders));
    placement_ = std::move(placement);
    return place_nodes(config_, config_, kFlowDue).and_then([&] { return make_units(); });
}

base::expected<void> DaqpipeSystem::make_units() {
    const protocol::DaqpipeUnitConfig config = unit_config(config_);
    if (std::uint64_t{config_.credits} * config.readouts * config.builders > most_fragments) {
        return base::failure(
            fmt::format("DAQPIPE: {} credits for each of {} builder units with {} readout units; "
                        "give fewer, {} fragments under way at most",
                        config_.credits, config.builders, config.readouts, most_fragments));
    }
    auto next = BuilderIndex(placement_.builders.node_of.size());
    for (std::uint32_t node = 0; node < placement_.readouts.unit_on.size(); ++node) {
        DAQLOOM_TRY(unit, make_unit(node));
        placed_.push_back({std::move(unit)});
        const BuilderIndex builder = placement_.builders.unit_on[node];
        const bool is_spare = builder == BuilderIndex::none() &&
                              placement_.readouts.unit_on[node] == ReadoutIndex::none();
        builder_on_.push_back(is_spare ? next++ : builder);
    }
    for (const ReadoutIndex readout : placement_.readouts.node_of.indices()) {
        sizes_.push_back(
            {sizes_of(config_), config_.fragment_bytes[readout.value()],
             base::RandomStream(config_.seed, fmt::format("fragment {}", readout.value()))});
    }
    return {};
}

/// That of the epoch on this node.
base::expected<DaqpipeUnit> DaqpipeSystem::make_unit(std::uint32_t node) const {
    protocol::DaqpipeUnitConfig config = unit_config(config_);
    config.readouts = static_cast<std::uint32_t>(placement_.readouts.node_of.size());
    config.builders = static_cast<std::uint32_t>(placement_.builders.node_of.size());
    config.readout = placement_.readouts.unit_on[node];
    config.builder = placement_.builders.unit_on[node];
    return DaqpipeUnit::make(config);
}

/// By the clock of a unit that keeps to time slots.
void DaqpipeSystem::keep_slots(std::uint32_t node, Time now) {
    if (placed_[node].unit.keeps_slots()) {
        const Time local = nodes().clock(node).local(now);
        placed_[node].next_slot =
            static_cast<std::uint64_t>(std::max<std::int64_t>(local.ps / config_.slot.ps, 0));
        await_slot(node, now);
        ++clocks_;
    }
}

void DaqpipeSystem::send(std::uint32_t from, std::uint32_t to, const UnitMessage& said, Time now) {
    ++under_way(said.kind);
    nodes().send({.from = from,
                  .to = to,
                  .bytes = message_bytes(config_.control_bytes, said),
                  .content = Note::of(said)},
                 now);
}

void DaqpipeSystem::on_letter(const Letter& letter, Time now) {
    if (!has_unit(letter.to)) [[unlikely]] {
        keep_early(letter);
        return;
    }
    World world{*this, letter.to, now};
    Placed& node = placed_[letter.to];
    const ReadoutIndex readout = placement_.readouts.unit_on[letter.from];
    if (letter.is_data) {
        --writes_under_way_;
        bytes_under_way_ -= letter.bytes;
        const EventId event{letter.content.number};
        const auto assigned = assigned_.find(in_run(event));
        if (assigned != assigned_.end()) {  // else given out without it
            assigned->second.collected_bytes += letter.bytes;
        }
        node.unit.on_fragment(event, readout, letter.content.round == 1 ? 0 : letter.bytes, now,
                              world);
        tell_run(letter.to, now);
        return;
    }
    --under_way(letter.content.kind);
    if (!node.unit.on_message(readout, placement_.builders.unit_on[letter.from],
                              letter.content.message(), now, world)) {
        ++refused_;
    }
    if (letter.content.kind == Say::done) {
        end_event_wait(now);
    }
    tell_run(letter.to, now);
}

void DaqpipeSystem::on_written(const Letter& letter, Time now) {
    ++counted_.fragments_written;
    counted_.bytes_written += letter.bytes;
    World world{*this, letter.from, now};
    placed_[letter.from].unit.on_write_done(EventId{letter.content.number}, world);
    tell_run(letter.from, now);
}

void DaqpipeSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    switch (event.kind) {
        case kEvent:
            ++events_;
            for (const std::uint32_t node : placement_.readouts.node_of) {
                if (run_) [[unlikely]] {
                    feed(node, now);
                } else {
                    World world{*this, node, now};
                    placed_[node].unit.on_data(now, world);
                }
            }
            event_waits_ = true;
            end_event_wait(now);
            break;
        case kSlot: {
            World world{*this, event.index, now};
            Placed& node = placed_[event.index];
            node.unit.on_slot(node.next_slot++, world);
            await_slot(event.index, now);
            break;
        }
        case kProcessed: {
            const InProcess built = in_process_[event.index];
            in_process_.release(event.index);
            World world{*this, built.node, now};
            placed_[built.node].unit.on_consumed(built.event, now, world);
            break;
        }
        case kWarm:
            begin_counting(config_, now);
            if (config_.warmup > Time::zero()) {  // else all counts, from the first instant on
                before_ = sums();
            }
            warm_ = true;
            break;
        case kFlowDue:
            on_flow_due(event);
            break;
        case kPatience: {
            World world{*this, event.index, now};
            placed_[event.index].unit.on_time(now, world);
            break;
        }
        default:
            on_run_event(event);
    }
}

void DaqpipeSystem::end_event_wait(Time now) {
    if (event_waits_ && manager() != nullptr && manager()->backlog() == 0) {
        event_waits_ = false;
        await_event(now);
    }
}

/// The next event waits for its time, and for the manager to have none left that no builder takes.
void DaqpipeSystem::await_event(Time now) {
    const Time due = config_.event_interval * static_cast<std::int64_t>(events_);
    nodes().events().push({std::max(now, due), kEvent, 0});
}

void DaqpipeSystem::await_slot(std::uint32_t node, Time now) {
    const Time begin = config_.slot * static_cast<std::int64_t>(placed_[node].next_slot);
    push(std::max(now, nodes().clock(node).global(begin)), kSlot, node, node);
}

bool DaqpipeSystem::stalled() const {
    if (run_) {
        return false;
    }
    const std::size_t clocks = clocks_ + flows().awaited() + (event_waits_ ? 0 : 1) +
                               (warm_ ? 0 : 1) + transport().idle_events();
    const bool awaits_message =
        nodes().letters_under_way() > 0 || (clocks_ == 0 && !assigned_.empty());
    return awaits_message && nodes().events().size() == clocks;
}

template <class Machine, class Count>
std::uint64_t DaqpipeSystem::sum(const Machine* (DaqpipeUnit::*machine)() const,
                                 Count count) const {
    std::uint64_t all = 0;
    for (const Placed& node : placed_) {
        if (const Machine* has = (node.unit.*machine)(); has != nullptr) {
            all += static_cast<std::uint64_t>(has->counters().*count);
        }
    }
    return all;
}

std::vector<DaqpipeSystem::Assigned> DaqpipeSystem::events_under_way() const {
    std::vector<Assigned> all;
    all.reserve(assigned_.size());
    for (const auto& [event, assigned] : assigned_) {
        all.push_back(assigned);
    }
    std::ranges::sort(all, {}, &Assigned::event);
    return all;
}

DaqpipeReport DaqpipeSystem::sums() const {
    DaqpipeReport all = counted_;
    all.window = now();
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    all.events_under_way = assigned_.size();
    all.unexpected += refused_;
    for (std::uint32_t node = 0; node < placed_.size(); ++node) {
        if (has_unit(node)) {
            add(placed_[node].unit, all);
        }
    }
    return all;
}

void DaqpipeSystem::add(const DaqpipeUnit& unit, DaqpipeReport& sums) const {
    sums.unexpected += unit.unexpected_messages();
    if (const auto* builder = unit.builder()) {
        const DaqpipeBuilder::Counters& counted = builder->counters();
        const Delivered events = delivered(counted);
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
    after.events_under_way = assigned_.size();
    return after;
}

/// Inputs that came too late, or from lost units, are ignored where units regroup.
base::expected<void> DaqpipeSystem::check_conservation() const {
    if (run_) {
        return check_books().and_then([&] { return check_fates(); });
    }
    DAQLOOM_CHECK(check_books(sums().unexpected));
    const EventManager::Counters& managed = manager()->counters();
    Bytes collecting = 0;
    for (const auto& [event, assigned] : assigned_) {
        collecting += assigned.collected_bytes;
    }
    struct Book {
        const char* of;
        std::uint64_t given;
        std::uint64_t taken;
        std::uint64_t under_way;
    };
    for (const Book& book :
         {Book{"events", managed.events, managed.assigned, manager()->backlog()},
          Book{"assignments", managed.assigned,
               sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::assigned),
               under_way(Say::assign)},
          Book{"requests", sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::requests),
               sum(&DaqpipeUnit::readout, &DaqpipeReadout::Counters::requests),
               under_way(Say::request)},
          Book{"fragments", sum(&DaqpipeUnit::readout, &DaqpipeReadout::Counters::fragments),
               sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::fragments), writes_under_way_},
          Book{"bytes", sum(&DaqpipeUnit::readout, &DaqpipeReadout::Counters::fragment_bytes),
               sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::fragment_bytes),
               static_cast<std::uint64_t>(bytes_under_way_)},
          Book{"collected bytes",
               sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::fragment_bytes),
               static_cast<std::uint64_t>(counted_.bytes_built),
               static_cast<std::uint64_t>(collecting)},
          Book{"reports", sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::done), managed.done,
               under_way(Say::done)}}) {
        if (book.given != book.taken + book.under_way) {
            return base::defect(fmt::format("{} {} were given, {} taken, {} are under way",
                                            book.given, book.of, book.taken, book.under_way));
        }
    }
    return {};
}

}  // namespace daqloom::systems
