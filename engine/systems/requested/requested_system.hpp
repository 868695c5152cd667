// Event building by requests in virtual time: units of pull building or of DAQPIPE on the nodes of
// a network. Requests, reports and fragments are messages between nodes.
//
// An event of the epoch has a record from its assignment until it is built. A unit may not be
// called from within its own outputs: inputs that an output causes are queued until the call
// returns.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/requested_unit.hpp"
#include "protocol/units/unit_message.hpp"
#include "sim/histogram.hpp"
#include "systems/message_content.hpp"
#include "systems/run/regrouping_system.hpp"

namespace daqloom::systems {

struct RequestedConfig : SystemConfig, RegroupingConfig {
    DAQLOOM_FIELDS(
        RequestedConfig,
        (std::vector<NodeIndex>, readouts,
         "Host of each readout unit. The event manager is on that of readout unit 0, and where "
         "units regroup, of the first one of the epoch."),
        (std::vector<NodeIndex>, builders,
         "Host of each builder unit; a readout and a builder unit may share a host."))
};

/// Content of a message between nodes: a unit's message, or the fragment of event `number`, which
/// is empty if `round` is 1.
using RequestedContent = MessageContent<1>;

template <class Unit>
class RequestedSystem : public RegroupingSystem<RequestedContent> {
  public:
    /// Latency from the assignment of an event until it is built, after the warm-up.
    [[nodiscard]] const sim::Histogram& latency() const { return latency_; }
    /// Checks the conservation of packets and, without a run control, of events, messages and
    /// fragments. Under a run control, late inputs and inputs from lost units are ignored; each
    /// event must be built, delivered incomplete or lost for one cause.
    [[nodiscard]] base::expected<void> check_conservation() const {
        if (run_) {
            return check_books().and_then([&] { return check_fates(); });
        }
        DAQLOOM_CHECK(check_books(unexpected()));
        using Counters = protocol::RequestingBuilder::Counters;
        const protocol::EventManager::Counters& managed = manager()->counters();
        std::uint64_t written = 0;
        for (const Unit& each : units_) {
            written += each.written();
        }
        return balance({{"events", managed.events, managed.assigned, manager()->backlog()},
                        {"assignments", managed.assigned, sum(&Unit::builder, &Counters::assigned),
                         under_way(Kind::assign)},
                        {"fragments", written, sum(&Unit::builder, &Counters::fragments),
                         writes_under_way_},
                        {"reports", sum(&Unit::builder, &Counters::done), managed.done,
                         under_way(Kind::done)}})
            .and_then([&] { return check_own_books(); });
    }

  protected:
    using Kind = protocol::UnitMessage::Kind;

    enum EventKind : std::uint32_t {
        kFirstOfProtocol = SystemNodes::kFirstOtherEvent,  ///< up to three kinds of the protocol
        kWarm = kFirstOfProtocol + 3,
        kFlowDue,  ///< index: sender of a flow
        kWake,     ///< a timer is due; index: node of the unit
        // ---- see RunEvents
        kOfEpoch,
        kControl,
        kSchedule,
    };
    struct EventRecord {
        base::Time assigned;
        base::Bytes size = 0;  ///< bytes of the whole event; see on_assigned
        base::Bytes collected =
            0;  ///< bytes received, if writes are limited or a run control exists
        protocol::BuilderIndex builder;
        bool is_built = false;
    };
    /// An input that a unit's output causes at the same time, queued until the unit returns: a
    /// message that bypasses the network, or the end of an event's consumption.
    struct Input {
        bool is_message = true;
        std::uint32_t from = 0;  ///< node
        std::uint32_t to = 0;
        protocol::UnitMessage message = {};
        protocol::EventId event = {};
    };
    /// A write that is complete when it is posted.
    struct WriteCompletion {
        std::uint32_t by = 0;  ///< node
        protocol::BuilderIndex builder = {};
        protocol::EventId event = {};
    };
    struct World;

    explicit RequestedSystem(const RequestedConfig& config)
        : RegroupingSystem({kOfEpoch, kControl, kSchedule}), config_(config) {}

    /// Places and starts the units. `config`: common to all units, without unit numbers.
    /// `storages`: hosts of storage units.
    base::expected<void> build(typename Unit::Config config,
                               const std::vector<NodeIndex>& storages = {}) {
        unit_config_ = std::move(config);
        DAQLOOM_TRY(placement, Placement::make(config_.readouts, config_.builders));
        placement_ = std::move(placement);
        DAQLOOM_CHECK(place_nodes(config_, config_, kFlowDue, storages));
        DAQLOOM_CHECK(make_units());
        nodes().events().push({config_.warmup, kWarm, 0});
        DAQLOOM_CHECK(prepare_sources());
        if (config_.run) {
            return make_run(config_, config_, config_.readouts, config_.builders, false);
        }
        begin_all();
        start_flows();
        return {};
    }
    /// Last unit of a node.
    [[nodiscard]] Unit& unit(std::uint32_t node) { return units_[node]; }
    [[nodiscard]] const Unit& unit(std::uint32_t node) const { return units_[node]; }

    // ---- hooks of a protocol
    /// Called when units have been made and placed.
    virtual base::expected<void> prepare_sources() = 0;
    /// Starts all units of a system without a run control.
    virtual void begin_all() = 0;
    /// Called when the unit of an epoch starts.
    virtual void on_begin(std::uint32_t node, base::Time now) = 0;
    virtual void on_lease(std::uint32_t /*node*/, base::Time /*now*/) {}
    virtual void on_epoch() {}
    virtual void on_retire(const Unit& unit) = 0;
    virtual void on_counting() = 0;
    /// Size of a message on the wire.
    [[nodiscard]] virtual base::Bytes bytes_of(const protocol::UnitMessage& message) const = 0;
    /// Whether messages of this kind bypass the network and take no time.
    [[nodiscard]] virtual bool is_at_once(Kind /*kind*/) const { return false; }
    /// Called when the unit on a node is about to get a request for the event.
    virtual void on_request(std::uint32_t /*node*/, protocol::EventId /*event*/,
                            base::Time /*now*/) {}
    virtual void on_assignment(EventRecord& /*event*/, base::Time /*now*/) {}
    virtual void on_report(base::Time /*now*/) {}
    virtual void on_assigned(EventRecord& event) = 0;
    /// Bytes of an event's fragment at the readout unit on a node; called once per event.
    [[nodiscard]] virtual base::Bytes fragment_of(std::uint32_t node, protocol::EventId event) = 0;
    virtual void on_built(std::uint32_t node, protocol::EventId event, const EventRecord& record,
                          base::Time now) = 0;
    /// Sends a copy of an accepted event to a storage unit.
    virtual void store(std::uint32_t /*node*/, protocol::EventId /*event*/,
                       protocol::StorageIndex /*to*/, base::Time /*now*/) {}
    /// Called for messages to and from storage units.
    virtual void on_storage_message(const Message& /*message*/, base::Time /*now*/) {}

    void on_event(const sim::Event& event) override {
        switch (event.kind) {
            case kWake: {
                World world{*this, event.index, event.at};
                if (wake_at_[event.index] <= event.at) {
                    wake_at_[event.index] = base::Time::never();
                }
                unit(event.index).on_time(event.at, world);
                settle(event.index, event.at);
                break;
            }
            case kWarm:
                begin_counting(config_, event.at);
                on_counting();
                is_warm_ = true;
                break;
            case kFlowDue:
                on_flow_due(event);
                break;
            default:
                on_run_event(event);
        }
    }
    void on_message(const Message& message, base::Time now) final {
        if (is_storage(message.to) || is_storage(message.from)) [[unlikely]] {
            on_storage_message(message, now);
            return;
        }
        if (!has_unit(message.to)) [[unlikely]] {
            keep_early(message);
            return;
        }
        if (message.is_data) {
            --writes_under_way_;
            bytes_under_way_ -= message.bytes;
            const protocol::EventId event{message.content.number};
            const base::Bytes bytes = message.content.round == 1 ? 0 : message.bytes;
            if ((Unit::limits_writes || run_) && is_recorded(event)) {
                record(event).collected += bytes;
            }
            World world{*this, message.to, now};
            unit(message.to)
                .on_fragment(event, placement_.readouts.unit_on[message.from], bytes, now, world);
        } else {
            --under_way_[static_cast<std::size_t>(message.content.kind)];
            receive(message.from, message.to, message.content.message(), now);
        }
        settle(message.to, now);
        report_input(message.to, now);
    }
    void on_written(const Message& /*message*/, base::Time /*now*/) override {}

    /// Passes on queued inputs and sets the timer, after each call of the unit on a node.
    void settle(std::uint32_t node, base::Time now) {
        if (!completions_.empty() || !inputs_.empty()) {
            pass_inputs(now);
        }
        wake_in_time(node, now);
    }
    /// Nodes of storage units follow those of other units.
    [[nodiscard]] bool is_storage(std::uint32_t node) const { return node >= units_.size(); }
    [[nodiscard]] std::uint32_t node_of(protocol::StorageIndex unit) const {
        return static_cast<std::uint32_t>(units_.size()) + unit.value();
    }
    void queue_input(const Input& input) { inputs_.push_back(input); }

    /// Null if the event manager's unit has not begun in this epoch, or is lost.
    [[nodiscard]] const protocol::EventManager* manager() const {
        const std::uint32_t there = placement_.readouts.node_of.front();
        return there != kNoNode && has_unit(there) ? unit(there).manager() : nullptr;
    }
    /// Number in the run of an event of this epoch.
    [[nodiscard]] std::uint64_t in_run(protocol::EventId event) const {
        return first_mep_ + number_of(event);
    }
    [[nodiscard]] bool is_recorded(protocol::EventId event) const {
        return number_of(event) - first_record_ < records_.size();
    }
    [[nodiscard]] EventRecord& record(protocol::EventId event) {
        return records_[static_cast<std::uint32_t>(number_of(event) - first_record_)];
    }
    /// Calls `see(number in the run, record)` for each event that is assigned and not built.
    template <class See>
    void each_under_way(See see) const {
        for (std::uint32_t place = 0; place < records_.size(); ++place) {
            if (!records_[place].is_built) {
                see(first_mep_ + first_record_ + place, records_[place]);
            }
        }
    }
    /// Builder unit of a node in the whole run; spares have the numbers after the builder units.
    [[nodiscard]] protocol::BuilderIndex builder_on(std::uint32_t node) const {
        return builder_on_[node];
    }
    [[nodiscard]] bool is_warm() const { return is_warm_; }

    /// Inputs that units ignored; a correct run without losses has none.
    [[nodiscard]] virtual std::uint64_t unexpected() const {
        std::uint64_t all = refused_;
        for (const Unit& each : units_) {
            all += each.unexpected_messages();
        }
        return all;
    }
    [[nodiscard]] virtual base::expected<void> check_own_books() const { return {}; }
    struct Book {
        const char* subject;
        std::uint64_t given;
        std::uint64_t taken;
        std::uint64_t under_way;
    };
    static base::expected<void> balance(std::initializer_list<Book> books) {
        for (const Book& book : books) {
            if (book.given != book.taken + book.under_way) {
                return base::defect(fmt::format("{} {} were given, {} taken, {} are under way",
                                                book.given, book.subject, book.taken,
                                                book.under_way));
            }
        }
        return {};
    }
    /// Sum of one counter over the units' machines.
    template <class Machine, class Count>
    [[nodiscard]] std::uint64_t sum(Machine machine, Count count) const {
        std::uint64_t all = 0;
        for (const Unit& each : units_) {
            if (const auto* has = (each.*machine)(); has != nullptr) {
                all += static_cast<std::uint64_t>(has->counters().*count);
            }
        }
        return all;
    }
    [[nodiscard]] std::uint64_t under_way(Kind kind) const {
        return under_way_[static_cast<std::size_t>(kind)];
    }

    std::uint64_t refused_ = 0;  ///< messages refused by units
    std::uint64_t writes_under_way_ = 0;
    base::Bytes bytes_under_way_ = 0;

  private:
    static std::uint64_t number_of(protocol::EventId event) {
        return static_cast<std::uint64_t>(event);
    }
    base::expected<void> make_units() {
        auto next = protocol::BuilderIndex(placement_.builders.node_of.size());
        units_.reserve(placement_.hosts.size());
        wake_at_.assign(placement_.hosts.size(), base::Time::never());
        for (std::uint32_t number = 0; number < placement_.hosts.size(); ++number) {
            DAQLOOM_TRY(unit, make_unit(number));
            units_.push_back(std::move(unit));
            const protocol::BuilderIndex builder = placement_.builders.unit_on[number];
            const bool is_spare =
                builder == protocol::BuilderIndex::none() &&
                placement_.readouts.unit_on[number] == protocol::ReadoutIndex::none();
            builder_on_.push_back(is_spare ? next++ : builder);
        }
        return {};
    }
    /// Makes the node's unit of this epoch.
    [[nodiscard]] base::expected<Unit> make_unit(std::uint32_t number) const {
        auto config = unit_config_;
        config.readouts = static_cast<std::uint32_t>(placement_.readouts.node_of.size());
        config.builders = static_cast<std::uint32_t>(placement_.builders.node_of.size());
        config.readout = placement_.readouts.unit_on[number];
        config.builder = placement_.builders.unit_on[number];
        return Unit::make(std::move(config));
    }
    void send(std::uint32_t from, std::uint32_t to, const protocol::UnitMessage& message,
              base::Time now) {
        if (is_at_once(message.kind)) {
            queue_input({.from = from, .to = to, .message = message});
            return;
        }
        ++under_way_[static_cast<std::size_t>(message.kind)];
        nodes().send({.from = from,
                      .to = to,
                      .bytes = bytes_of(message),
                      .content = RequestedContent::of(message)},
                     now);
    }
    /// Writes a fragment. A write is done at its completion or, for units that do not limit writes,
    /// when it is posted.
    void write(std::uint32_t from, std::uint32_t to, protocol::EventId event,
               protocol::BuilderIndex builder, base::Bytes bytes, base::Time now) {
        const bool is_empty = bytes == 0 && run_;
        ++writes_under_way_;
        bytes_under_way_ += bytes;
        nodes().send({.from = from,
                      .to = to,
                      .bytes = is_empty ? config_.control_bytes : bytes,
                      .is_data = true,
                      .completes = Unit::limits_writes,
                      .content = {.number = number_of(event), .round = is_empty ? 1U : 0U}},
                     now);
        if constexpr (!Unit::limits_writes) {
            completions_.push_back({from, builder, event});
        }
    }
    /// Counts a delivered event, and drops the records of the oldest events if they are built.
    void deliver(std::uint32_t number, protocol::EventId event, base::Time now) {
        EventRecord& built = record(event);
        if (run_) [[unlikely]] {
            count_delivery(number_of(event));
        }
        if (is_warm_) {
            latency_.record(now - built.assigned);
        }
        built.is_built = true;
        on_built(number, event, built, now);
        for (; !records_.empty() && records_.front().is_built; ++first_record_) {
            records_.pop();
        }
    }
    void receive(std::uint32_t from, std::uint32_t to, const protocol::UnitMessage& message,
                 base::Time now) {
        const protocol::EventId event{message.number};
        if (message.kind == Kind::request) {
            on_request(to, event, now);
        } else if (message.kind == Kind::assign && is_recorded(event)) {
            on_assignment(record(event), now);
        }
        World world{*this, to, now};
        if (!unit(to).on_message(placement_.readouts.unit_on[from],
                                 placement_.builders.unit_on[from], message, now, world)) {
            ++refused_;
        }
        if (message.kind == Kind::done) {
            on_report(now);
        }
    }
    /// Passes queued inputs to their units, in order; an input may queue others.
    void pass_inputs(base::Time now) {
        for (const WriteCompletion& write : completions_) {
            World world{*this, write.by, now};
            unit(write.by).on_write_done(write.event, write.builder, world);
        }
        completions_.clear();
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const Input input = inputs_[i];
            if (!input.is_message) {
                World world{*this, input.to, now};
                unit(input.to).on_consumed(input.event, now, world);
            } else if (has_unit(input.to)) [[likely]] {
                receive(input.from, input.to, input.message, now);
            } else {
                keep_early({.from = input.from,
                            .to = input.to,
                            .content = RequestedContent::of(input.message)});
                continue;
            }
            wake_in_time(input.to, now);
        }
        inputs_.clear();
    }
    void wake_in_time(std::uint32_t number, base::Time now) {
        const base::Time due = unit(number).next_timer();
        if (due != wake_at_[number]) {
            wake_at_[number] = due;
            if (due != base::Time::never()) {
                push(std::max(due, now), kWake, number, number);
            }
        }
    }

    // ---- units that regroup
    /// Drops all records: events that lost units were collecting are never built.
    void begin_epoch(const std::vector<protocol::EpochSlot>& /*slots*/, base::Time /*now*/) final {
        on_epoch();
        records_.clear();
        first_record_ = 0;
        inputs_.clear();
        completions_.clear();
    }
    void begin_unit(std::uint32_t number, std::uint64_t event_end, base::Time now) final {
        unit(number) = std::move(make_unit(number).value());  // cannot fail: fewer members
        wake_at_[number] = base::Time::never();
        lease_unit(number, event_end, now);
        on_begin(number, now);
    }
    void lease_unit(std::uint32_t number, std::uint64_t event_end, base::Time now) final {
        World world{*this, number, now};
        unit(number).on_lease(event_end, world);
        settle(number, now);
        on_lease(number, now);
    }
    void close_unit(std::uint32_t number, const Lost& lost, base::Time now) final {
        World world{*this, number, now};
        unit(number).on_close(lost.readouts, lost.builders, now, world);
        settle(number, now);
    }
    [[nodiscard]] bool has_drained(std::uint32_t number) const final {
        return unit(number).is_drained();
    }
    void end_unit(std::uint32_t number, base::Time now) final {
        World world{*this, number, now};
        unit(number).on_end(now, world);
    }
    [[nodiscard]] std::uint64_t next_mep_of(std::uint32_t number) const final {
        return unit(number).next_event();
    }
    void retire_unit(std::uint32_t number) final { on_retire(unit(number)); }
    void add_counts(std::uint32_t number, UnitCounts& all) const final {
        const Unit& here = unit(number);
        if (const auto* builder = here.builder()) {
            const auto& counted = builder->counters();
            all.granted += static_cast<std::int64_t>(counted.assigned);
            const Deliveries meps = delivered(counted);
            all.built += static_cast<std::int64_t>(meps.built);
            all.incomplete += static_cast<std::int64_t>(meps.incomplete);
            all.dropped += static_cast<std::int64_t>(counted.dropped);
            all.steps += counted.fragments + counted.built;
        }
        all.steps += here.written();
    }
    [[nodiscard]] bool waits(UnitIndex unit) const final {
        return has_unit(unit.value()) && units_[unit.value()].waits_for_its_own();
    }
    void forget(std::uint32_t /*kind*/, std::uint32_t /*index*/) override {}

    const RequestedConfig& config_;
    typename Unit::Config unit_config_;
    std::vector<Unit> units_;          ///< by node
    std::vector<base::Time> wake_at_;  ///< by node
    std::vector<protocol::BuilderIndex> builder_on_;
    base::Ring<EventRecord> records_;  ///< from the oldest event of the epoch that is not built
    std::uint64_t first_record_ = 0;
    std::vector<Input> inputs_;
    std::vector<WriteCompletion> completions_;
    std::array<std::uint64_t, 16> under_way_{};  ///< messages, by kind
    bool is_warm_ = false;
    sim::Histogram latency_;
};

/// Outputs of the unit on a node; see RequestedWorld.
template <class Unit>
struct RequestedSystem<Unit>::World {
    RequestedSystem& system;
    std::uint32_t self;  ///< node
    base::Time now;

    void send(protocol::ReadoutIndex to, const protocol::UnitMessage& message) {
        const auto& node_of = system.placement_.readouts.node_of;
        if (message.kind == Kind::request) {
            const protocol::ReadoutIndex last(node_of.size() - 1);
            system.nodes().expect(self, node_of[std::min(to + 4, last)]);
        }
        system.send(self, node_of[to], message, now);
    }
    void send(protocol::BuilderIndex to, const protocol::UnitMessage& message) {
        system.send(self, system.placement_.builders.node_of[to], message, now);
    }

    // ---- outputs of a readout unit

    [[nodiscard]] base::Bytes held(protocol::EventId event) {
        return system.fragment_of(self, event);
    }
    void write(protocol::EventId event, protocol::BuilderIndex to, base::Bytes /*offset*/,
               base::Bytes bytes) {
        system.write(self, system.placement_.builders.node_of[to], event, to, bytes, now);
    }
    void give_back(std::uint32_t /*count*/) {}

    // ---- outputs of the event manager

    void arrived(base::Time /*at*/) {}
    void assigned(protocol::EventId event, protocol::BuilderIndex builder) {
        const std::uint32_t there = system.placement_.builders.node_of[builder];
        EventRecord record{.assigned = now, .builder = system.builder_on_[there]};
        system.on_assigned(record);
        system.records_.push(record);
        if (system.run_) [[unlikely]] {
            system.count_answer(self, number_of(event));
        }
    }

    // ---- outputs of a builder unit

    void collect(protocol::EventId /*event*/, std::uint32_t /*slot*/) {}
    [[nodiscard]] static base::Bytes place(std::uint32_t /*slot*/,
                                           protocol::ReadoutIndex /*readout*/) {
        return 0;
    }
    void deliver(protocol::EventId event, std::uint32_t /*slot*/) {
        system.deliver(self, event, now);
    }
    void store(protocol::EventId event, std::uint32_t /*slot*/, protocol::StorageIndex to) {
        system.store(self, event, to, now);
    }
};

}  // namespace daqloom::systems
