#include "systems/daqpipe_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

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

/// See protocol::DaqpipeWorld.
struct DaqpipeSystem::World {
    DaqpipeSystem& system;
    std::uint32_t self;  ///< node
    Time now;

    void send(ReadoutIndex to, const UnitMessage& said) {
        system.send(self, system.placement_.readouts.node_of[to], said, now);
    }
    void send(BuilderIndex to, const UnitMessage& said) {
        system.send(self, system.placement_.builders.node_of[to], said, now);
    }
    Bytes held(EventId /*event*/) { return system.placed_[self].sizes->next(); }
    void write(EventId event, BuilderIndex to, Bytes /*offset*/, Bytes bytes) {
        ++system.writes_under_way_;
        system.bytes_under_way_ += bytes;
        system.nodes().send({.from = self,
                             .to = system.placement_.builders.node_of[to],
                             .bytes = bytes,
                             .is_data = true,
                             .completes = true,
                             .content = {.number = static_cast<std::uint64_t>(event)}},
                            now);
    }
    void give_back(std::uint32_t /*count*/) {}
    void assigned(EventId event, BuilderIndex builder) {
        system.assigned_.emplace(static_cast<std::uint64_t>(event), Assigned{event, builder, now});
    }
    void collect(EventId /*event*/, std::uint32_t /*slot*/) {}
    static Bytes place(std::uint32_t /*slot*/, ReadoutIndex /*readout*/) { return 0; }
    void deliver(EventId event, std::uint32_t /*slot*/) {
        const auto assigned = system.assigned_.find(static_cast<std::uint64_t>(event));
        if (system.warm_) {
            system.latency_.record(now - assigned->second.assigned);
        }
        if (system.recording_) {
            system.recorded_.push_back(
                {event, system.placed_[self].builder, assigned->second.assigned, now});
        }
        system.counted_.bytes_built += assigned->second.collected_bytes;
        system.assigned_.erase(assigned);
        const std::uint32_t place = system.in_process_.put({self, event});
        system.nodes().events().push(
            {now + system.config_.processing.draw(system.processing_), kProcessed, place});
    }
};

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
    sim::EventQueue& events = system->nodes().events();
    events.push({config.warmup, kWarm, 0});
    system->await_event(Time::zero());
    if (config.slot > Time::zero()) {
        for (const std::uint32_t node : config.is_push
                                            ? std::span(system->placement_.readouts.node_of)
                                            : std::span(system->placement_.builders.node_of)) {
            const Time local = system->nodes().clock(node).local(Time::zero());
            system->placed_[node].next_slot =
                static_cast<std::uint64_t>(std::max<std::int64_t>(local.ps / config.slot.ps, 0));
            system->await_slot(node, Time::zero());
            ++system->clocks_;
        }
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
    return place(config_, placement_.hosts, kFlowDue).and_then([&] { return make_units(); });
}

base::expected<void> DaqpipeSystem::make_units() {
    protocol::DaqpipeUnitConfig config = unit_config(config_);
    if (std::uint64_t{config_.credits} * config.readouts * config.builders > most_fragments) {
        return base::failure(
            fmt::format("DAQPIPE: {} credits for each of {} builder units with {} readout units; "
                        "give fewer, {} fragments under way at most",
                        config_.credits, config.builders, config.readouts, most_fragments));
    }
    for (std::size_t node = 0; node < placement_.hosts.size(); ++node) {
        const ReadoutIndex readout = placement_.readouts.unit_on[node];
        config.readout = readout;
        config.builder = placement_.builders.unit_on[node];
        DAQLOOM_TRY(unit, DaqpipeUnit::make(config));
        placed_.push_back({std::move(unit), readout, config.builder, {}});
        if (readout != ReadoutIndex::none()) {
            placed_.back().sizes.emplace(
                sizes_of(config_), config_.fragment_bytes[readout.value()],
                base::RandomStream(config_.seed, fmt::format("fragment {}", readout.value())));
        }
    }
    return {};
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
    World world{*this, letter.to, now};
    Placed& node = placed_[letter.to];
    const Placed& sender = placed_[letter.from];
    if (letter.is_data) {
        --writes_under_way_;
        bytes_under_way_ -= letter.bytes;
        assigned_.find(letter.content.number)->second.collected_bytes += letter.bytes;
        node.unit.on_fragment(EventId{letter.content.number}, sender.readout, letter.bytes, now,
                              world);
        return;
    }
    --under_way(letter.content.kind);
    if (!node.unit.on_message(sender.readout, sender.builder, letter.content.message(), now,
                              world)) {
        ++refused_;
    }
    if (event_waits_ && letter.content.kind == Say::done && manager().backlog() == 0) {
        event_waits_ = false;
        await_event(now);
    }
}

void DaqpipeSystem::on_written(const Letter& letter, Time now) {
    ++counted_.fragments_written;
    counted_.bytes_written += letter.bytes;
    World world{*this, letter.from, now};
    placed_[letter.from].unit.on_write_done(EventId{letter.content.number}, world);
}

void DaqpipeSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    switch (event.kind) {
        case kEvent:
            ++events_;
            for (const std::uint32_t node : placement_.readouts.node_of) {
                World world{*this, node, now};
                placed_[node].unit.on_data(now, world);
            }
            event_waits_ = manager().backlog() > 0;
            if (!event_waits_) {
                await_event(now);
            }
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
        default:
            break;
    }
}

/// The next event waits for its time, and for the manager to have none left that no builder takes.
void DaqpipeSystem::await_event(Time now) {
    const Time due = config_.event_interval * static_cast<std::int64_t>(events_);
    nodes().events().push({std::max(now, due), kEvent, 0});
}

void DaqpipeSystem::await_slot(std::uint32_t node, Time now) {
    const Time begin = config_.slot * static_cast<std::int64_t>(placed_[node].next_slot);
    nodes().events().push({std::max(now, nodes().clock(node).global(begin)), kSlot, node});
}

bool DaqpipeSystem::stalled() const {
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
    all.events_built = sum(&DaqpipeUnit::builder, &DaqpipeBuilder::Counters::built);
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    all.events_under_way = assigned_.size();
    all.unexpected = refused_ + manager().counters().unexpected;
    for (const auto counter : {&DaqpipeBuilder::Counters::unexpected_assignments,
                               &DaqpipeBuilder::Counters::unexpected_fragments,
                               &DaqpipeBuilder::Counters::unexpected_processed,
                               &DaqpipeBuilder::Counters::unexpected_slots}) {
        all.unexpected += sum(&DaqpipeUnit::builder, counter);
    }
    for (const auto counter : {&DaqpipeReadout::Counters::unexpected_requests,
                               &DaqpipeReadout::Counters::unexpected_completions,
                               &DaqpipeReadout::Counters::unexpected_slots}) {
        all.unexpected += sum(&DaqpipeUnit::readout, counter);
    }
    return all;
}

DaqpipeReport DaqpipeSystem::report() const {
    DaqpipeReport after = base::since(sums(), before_);
    after.events_under_way = assigned_.size();
    return after;
}

base::expected<void> DaqpipeSystem::check_conservation() const {
    DAQLOOM_CHECK(check_books(sums().unexpected));
    const EventManager::Counters& managed = manager().counters();
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
         {Book{"events", managed.events, managed.assigned, manager().backlog()},
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
