#include "systems/daqpipe_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::DaqpipeBuilder;
using protocol::DaqpipeReadout;
using protocol::EventId;
using protocol::EventManager;
using protocol::FragmentSizes;
using protocol::ReadoutIndex;

namespace {

constexpr std::uint32_t most_parallel_sends = 65'536;
constexpr std::uint64_t most_fragments = std::uint64_t{1} << 28;

/// The sum over units of what one of their counters says.
template <class Units, class Counter>
std::uint64_t sum(const Units& units, Counter counter) {
    return std::accumulate(units.begin(), units.end(), std::uint64_t{0},
                           [&](std::uint64_t so_far, const auto& unit) {
                               return so_far + static_cast<std::uint64_t>(unit.counters().*counter);
                           });
}

}  // namespace

struct DaqpipeSystem::ManagerOut {
    DaqpipeSystem& system;
    Time now;

    void assign(EventId event, BuilderIndex builder) {
        system.assigned_.emplace(static_cast<std::uint64_t>(event), Assigned{event, builder, now});
        system.send(system.readout_node_[ReadoutIndex()], system.builder_node_[builder],
                    {.what = Say::assign, .builder = builder, .event = event},
                    system.config_.control_bytes, now);
    }
};

struct DaqpipeSystem::BuilderOut {
    DaqpipeSystem& system;
    BuilderIndex self;
    Time now;

    void request(EventId event, ReadoutIndex source, Bytes place) {
        system.send(system.builder_node_[self], system.readout_node_[source],
                    {Say::request, self, source, event, place},
                    system.config_.control_bytes + kOffsetBytes, now);
    }
    void built(EventId event) {
        const auto assigned = system.assigned_.find(static_cast<std::uint64_t>(event));
        if (system.warm_) {
            system.latency_.record(now - assigned->second.at);
        }
        if (system.recording_) {
            system.recorded_.push_back({event, self, assigned->second.at, now});
        }
        system.counted_.bytes_built += assigned->second.collected;
        system.assigned_.erase(assigned);
        const std::uint32_t place = system.in_process_.put({self, event});
        system.nodes().events().push(
            {now + system.config_.processing.draw(system.processing_), kProcessed, place});
    }
    void done(EventId event) {
        system.send(system.builder_node_[self], system.readout_node_[ReadoutIndex()],
                    {.what = Say::done, .builder = self, .event = event},
                    system.config_.control_bytes, now);
    }
};

struct DaqpipeSystem::ReadoutOut {
    DaqpipeSystem& system;
    ReadoutIndex self;
    Time now;

    void write(const protocol::DaqpipeWrite& write) {
        system.send(system.readout_node_[self], system.builder_node_[write.builder],
                    {Say::write, write.builder, self, write.event, write.place}, write.bytes, now);
    }
};

base::expected<std::unique_ptr<DaqpipeSystem>> DaqpipeSystem::make(
    const DaqpipeSystemConfig& config) {
    std::unique_ptr<DaqpipeSystem> system(new DaqpipeSystem(config));
    if (auto placed = system->place_units(); !placed) {
        return tl::unexpected(placed.error());
    }
    if (auto made = system->make_units(); !made) {
        return tl::unexpected(made.error());
    }
    sim::EventQueue& events = system->nodes().events();
    events.push({config.warmup, kWarm, 0});
    system->await_event(Time::zero());
    if (system->is_timed()) {
        for (const std::uint32_t node : system->nodes_that_keep_slots()) {
            const Time local = system->nodes().clock(node).local(Time::zero());
            system->next_slot_.push_back(
                static_cast<std::uint64_t>(std::max<std::int64_t>(local.ps / config.slot.ps, 0)));
            system->await_slot(static_cast<std::uint32_t>(system->next_slot_.size() - 1),
                               Time::zero());
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
    auto placement = Placement::make(config_.readouts, config_.builders);
    if (!placement) {
        return tl::unexpected(placement.error());
    }
    readout_node_ = std::move(placement->readout_node);
    builder_node_ = std::move(placement->builder_node);
    if (auto placed = place(config_, std::move(placement->hosts), kFlowDue); !placed) {
        return tl::unexpected(placed.error());
    }
    return {};
}

base::expected<void> DaqpipeSystem::make_units() {
    if (config_.parallel_sends < 1 || config_.parallel_sends > most_parallel_sends) {
        return base::failure(fmt::format("DAQPIPE: {} parallel sends; give 1 to {}",
                                         config_.parallel_sends, most_parallel_sends));
    }
    const auto readouts = static_cast<std::uint32_t>(readout_node_.size());
    const auto builders = static_cast<std::uint32_t>(builder_node_.size());
    const std::uint64_t together = std::uint64_t{config_.credits} * config_.parallel_sends;

    if (std::uint64_t{config_.credits} * readouts * builders > most_fragments) {
        return base::failure(
            fmt::format("DAQPIPE: {} credits for each of {} builder units with {} readout units; "
                        "give fewer, {} fragments under way at most",
                        config_.credits, builders, readouts, most_fragments));
    }
    auto manager = EventManager::make({.builders = builders, .concurrent_events = config_.credits},
                                      base::RandomStream(config_.seed, "assignment"));
    if (!manager) {
        return tl::unexpected(manager.error());
    }
    manager_ = std::move(*manager);

    const auto kind = config_.is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
    const Bytes largest =
        protocol::largest_mfp(kind, *std::ranges::max_element(config_.fragment_bytes));
    for (const BuilderIndex self : builder_node_.indices()) {
        auto builder =
            DaqpipeBuilder::make({.self = self,
                                  .readouts = readouts,
                                  .credits = config_.credits,
                                  .parallel_sends = config_.is_push ? 0 : config_.parallel_sends,
                                  .largest_fragment = largest,
                                  .is_timed = is_timed() && !config_.is_push});
        if (!builder) {
            return tl::unexpected(builder.error());
        }
        builders_.push_back(std::move(*builder));
    }
    for (const ReadoutIndex self : readout_node_.indices()) {
        auto readout = DaqpipeReadout::make(
            {.self = self,
             .builders = builders,
             .credits = config_.credits,
             .parallel_sends = config_.is_push ? static_cast<std::uint32_t>(
                                                     std::min<std::uint64_t>(together, ~0U))
                                               : 0,
             .is_timed = is_timed() && config_.is_push});
        if (!readout) {
            return tl::unexpected(readout.error());
        }
        readouts_.push_back(std::move(*readout));
        sizes_.push_back(
            {kind, config_.fragment_bytes[self.value()],
             base::RandomStream(config_.seed, fmt::format("fragment {}", self.value()))});
    }
    return {};
}

void DaqpipeSystem::send(std::uint32_t from, std::uint32_t to, const Note& note, Bytes bytes,
                         Time now) {
    const bool is_data = note.what == Say::write;
    ++under_way_[static_cast<std::size_t>(note.what)];
    bytes_under_way_ += is_data ? bytes : 0;
    nodes().send({.from = from,
                  .to = to,
                  .bytes = bytes,
                  .is_data = is_data,
                  .completes = is_data,
                  .content = note},
                 now);
}

void DaqpipeSystem::on_letter(const Letter& letter, Time now) {
    const Note& note = letter.content;
    --under_way_[static_cast<std::size_t>(note.what)];
    switch (note.what) {
        case Say::assign: {
            BuilderOut out{*this, note.builder, now};
            builders_[note.builder].on_assigned(note.event, out);
            break;
        }
        case Say::request: {
            const Bytes bytes = sizes_[note.source].next();
            ReadoutOut out{*this, note.source, now};
            readouts_[note.source].on_request(note.event, note.builder, note.place, bytes, out);
            break;
        }
        case Say::write: {
            bytes_under_way_ -= letter.bytes;
            assigned_.find(static_cast<std::uint64_t>(note.event))->second.collected +=
                letter.bytes;
            BuilderOut out{*this, note.builder, now};
            builders_[note.builder].on_fragment(note.event, note.source, letter.bytes, out);
            break;
        }
        case Say::done: {
            ManagerOut out{*this, now};
            manager_->on_builder_done(note.builder, out);
            if (event_waits_ && manager_->backlog() == 0) {
                event_waits_ = false;
                await_event(now);
            }
            break;
        }
    }
}

void DaqpipeSystem::on_written(const Letter& letter, Time now) {
    ++counted_.fragments_written;
    counted_.bytes_written += letter.bytes;
    ReadoutOut out{*this, letter.content.source, now};
    readouts_[letter.content.source].on_write_done(letter.content.builder, out);
}

void DaqpipeSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    switch (event.kind) {
        case kEvent: {
            ManagerOut out{*this, now};
            manager_->on_event(EventId{events_++}, out);
            event_waits_ = manager_->backlog() > 0;
            if (!event_waits_) {
                await_event(now);
            }
            break;
        }
        case kSlot:
            begin_slot(event.index, now);
            break;
        case kProcessed: {
            const InProcess built = in_process_[event.index];
            in_process_.release(event.index);
            BuilderOut out{*this, built.builder, now};
            builders_[built.builder].on_processed(built.event, out);
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

void DaqpipeSystem::await_slot(std::uint32_t unit, Time now) {
    const Time begin = config_.slot * static_cast<std::int64_t>(next_slot_[unit]);
    const hosts::Clock& clock = nodes().clock(nodes_that_keep_slots()[unit]);
    nodes().events().push({std::max(now, clock.global(begin)), kSlot, unit});
}

void DaqpipeSystem::begin_slot(std::uint32_t unit, Time now) {
    const std::uint64_t slot = next_slot_[unit]++;
    if (config_.is_push) {
        ReadoutOut out{*this, ReadoutIndex(unit), now};
        readouts_[out.self].on_slot(slot, out);
    } else {
        BuilderOut out{*this, BuilderIndex(unit), now};
        builders_[out.self].on_slot(slot, out);
    }
    await_slot(unit, now);
}

bool DaqpipeSystem::stalled() const {
    const std::size_t clocks = next_slot_.size() + flows().awaited() + (event_waits_ ? 0 : 1) +
                               (warm_ ? 0 : 1) + transport().idle_events();
    const bool awaits_message =
        nodes().letters_under_way() > 0 || (!is_timed() && !assigned_.empty());
    return awaits_message && nodes().events().size() == clocks;
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
    all.events_built = sum(builders_, &DaqpipeBuilder::Counters::built);
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    all.events_under_way = assigned_.size();
    all.unexpected = manager_->counters().unexpected;
    for (const auto counter : {&DaqpipeBuilder::Counters::unexpected_assignments,
                               &DaqpipeBuilder::Counters::unexpected_fragments,
                               &DaqpipeBuilder::Counters::unexpected_processed,
                               &DaqpipeBuilder::Counters::unexpected_slots}) {
        all.unexpected += sum(builders_, counter);
    }
    for (const auto counter : {&DaqpipeReadout::Counters::unexpected_requests,
                               &DaqpipeReadout::Counters::unexpected_completions,
                               &DaqpipeReadout::Counters::unexpected_slots}) {
        all.unexpected += sum(readouts_, counter);
    }
    return all;
}

DaqpipeReport DaqpipeSystem::report() const {
    const DaqpipeReport all = sums();
    DaqpipeReport after = all;
    DaqpipeReport::each([&](const char*, auto member, const char*) {
        after.*member = static_cast<std::remove_reference_t<decltype(after.*member)>>(
            all.*member - before_.*member);
    });
    after.events_under_way = all.events_under_way;
    return after;
}

base::expected<void> DaqpipeSystem::check_conservation() const {
    if (auto books = check_books(); !books) {
        return books;
    }
    if (const std::uint64_t unexpected = sums().unexpected; unexpected > 0) {
        return base::defect(
            fmt::format("{} inputs came to units that did not expect them", unexpected));
    }
    const EventManager::Counters& manager = manager_->counters();
    Bytes collecting = 0;
    for (const auto& [event, assigned] : assigned_) {
        collecting += assigned.collected;
    }
    struct Book {
        const char* of;
        std::uint64_t given;
        std::uint64_t taken;
        std::uint64_t under_way;
    };
    for (const Book& book :
         {Book{"events", manager.events, manager.assigned, manager_->backlog()},
          Book{"assignments", manager.assigned, sum(builders_, &DaqpipeBuilder::Counters::assigned),
               under_way_[0]},
          Book{"requests", sum(builders_, &DaqpipeBuilder::Counters::requests),
               sum(readouts_, &DaqpipeReadout::Counters::requests), under_way_[1]},
          Book{"fragments", sum(readouts_, &DaqpipeReadout::Counters::fragments),
               sum(builders_, &DaqpipeBuilder::Counters::fragments), under_way_[2]},
          Book{"bytes", sum(readouts_, &DaqpipeReadout::Counters::fragment_bytes),
               sum(builders_, &DaqpipeBuilder::Counters::fragment_bytes),
               static_cast<std::uint64_t>(bytes_under_way_)},
          Book{"collected bytes", sum(builders_, &DaqpipeBuilder::Counters::fragment_bytes),
               static_cast<std::uint64_t>(counted_.bytes_built),
               static_cast<std::uint64_t>(collecting)},
          Book{"reports", sum(builders_, &DaqpipeBuilder::Counters::done), manager.done,
               under_way_[3]}}) {
        if (book.given != book.taken + book.under_way) {
            return base::defect(fmt::format("{} {} were given, {} taken, {} are under way",
                                            book.given, book.of, book.taken, book.under_way));
        }
    }
    return {};
}

}  // namespace daqloom::systems
