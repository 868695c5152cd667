// For tests and fuzzing: an event manager and its builder units under any sequence of inputs, with
// every promise of their headers checked against a plain model after each step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source_test.hpp"
#include "protocol/machines/pull_builder.hpp"
#include "protocol/schedule/event_manager.hpp"

namespace daqloom::protocol {

class EventBuildingCheck {
  public:
    /// Plays `input` and lets what is left in flight finish. Returns the first broken promise, or
    /// nothing. The first bytes choose the configuration, each later one or two a step.
    static std::string broken_promise(std::span<const std::uint8_t> input) {
        EventBuildingCheck check(input);
        while (check.problem_.empty() && !check.input_.empty()) {
            check.step();
            check.compare_state();
        }
        check.finish();
        return check.problem_;
    }

  private:
    enum class Stage { waiting, collecting, built, done };

    struct Event {
        Stage stage = Stage::waiting;
        BuilderIndex builder{};
        ReadoutIndex requested{};    ///< those before this one
        std::uint32_t received = 0;  ///< fragments
    };

    struct Request {
        BuilderIndex builder;
        EventId event;
        ReadoutIndex readout;
        friend auto operator<=>(const Request&, const Request&) = default;
    };

    struct ManagerOut {
        EventBuildingCheck& check;
        void assign(EventId event, BuilderIndex builder) { check.assigned(event, builder); }
    };
    struct BuilderOut {
        EventBuildingCheck& check;
        BuilderIndex builder;
        void request(EventId event, ReadoutIndex readout) {
            check.requested({builder, event, readout});
        }
        void built(EventId event) { check.built(event, builder); }
        void done(EventId event) { check.done(event, builder); }
    };

    explicit EventBuildingCheck(std::span<const std::uint8_t> input)
        : input_(input),
          manager_config_{.builders = 1U + input_.byte() % 5,
                          .concurrent_events = 1U + input_.byte() % 4,
                          .assignment = static_cast<Assignment>(input_.byte() % 3)},
          builder_config_{.readouts = 1U + input_.byte() % 130,
                          .outstanding_fragments = input_.byte() % 140U,
                          .concurrent_events = manager_config_.concurrent_events},
          manager_(
              *EventManager::make(manager_config_, base::RandomStream(input_.byte(), "check"))),
          last_assigned_(manager_config_.builders - 1) {
        for (std::uint32_t b = 0; b < manager_config_.builders; ++b) {
            builders_.push_back(*PullBuilder::make(builder_config_));
        }
    }

    // ---- inputs -------------------------------------------------------------------------------

    void step() {
        switch (input_.byte() % 8) {
            case 0:
            case 1:
                new_event();
                break;
            case 2:
            case 3:
            case 4:
                deliver_a_fragment();
                break;
            case 5:
                process_a_built_event();
                break;
            case 6:
                disturb_a_builder();
                break;
            default:
                disturb_the_manager();
                break;
        }
    }

    void new_event() {
        events_.emplace_back();
        ManagerOut out{*this};
        manager_.on_event(EventId{events_.size() - 1}, out);
    }

    void deliver_a_fragment() {
        if (!requests_.empty()) {
            deliver(*std::next(requests_.begin(), input_.byte() % std::ssize(requests_)));
        }
    }

    void deliver(Request request) {
        requests_.erase(request);
        ++event(request.event).received;
        bytes_ += request.readout.value();
        BuilderOut out{*this, request.builder};
        builders_[request.builder].on_fragment(request.event, request.readout,
                                               request.readout.value(), out);
        promise(event(request.event).received < builder_config_.readouts ||
                    event(request.event).stage == Stage::built,
                "an event with all its fragments is built");
    }

    void process_a_built_event() {
        if (!built_.empty()) {
            process(*std::next(built_.begin(), input_.byte() % std::ssize(built_)));
        }
    }

    void process(EventId id) {
        const BuilderIndex builder = event(id).builder;
        BuilderOut builder_out{*this, builder};
        builders_[builder].on_processed(id, builder_out);
        promise(event(id).stage == Stage::done, "a processed event is done");
        ManagerOut manager_out{*this};
        manager_.on_builder_done(builder, manager_out);
    }

    /// Inputs that a builder must ignore. Anything that happens to be legitimate is left out.
    void disturb_a_builder() {
        const BuilderIndex b(input_.byte() % manager_config_.builders);
        const EventId id{input_.byte() % 4 == 0 ? ~std::uint64_t{input_.byte()}
                                                : input_.byte() % (events_.size() + 2)};
        const ReadoutIndex readout(input_.byte() % (builder_config_.readouts + 2));
        PullBuilder& builder = builders_[b];
        const auto before = builder.counters();
        const std::size_t outputs = outputs_;
        BuilderOut out{*this, b};
        if (!requests_.contains({b, id, readout})) {
            builder.on_fragment(id, readout, 1, out);
            promise(builder.counters().unexpected_fragments == before.unexpected_fragments + 1,
                    "a fragment that was not requested is counted");
        } else {
            builder.on_fragment(id, readout, -1, out);
            promise(builder.counters().unexpected_fragments == before.unexpected_fragments + 1,
                    "a fragment of a negative size is counted");
        }
        const bool is_known = static_cast<std::uint64_t>(id) < events_.size();
        const bool is_here = is_known && event(id).builder == b &&
                             (event(id).stage == Stage::collecting || built_.contains(id));
        if (is_here || builder.events_held() == builder_config_.concurrent_events) {
            builder.on_assigned(id, out);
            promise(builder.counters().unexpected_assignments == before.unexpected_assignments + 1,
                    "an event for which there is no place is counted");
        }
        if (!is_here || !built_.contains(id)) {
            builder.on_processed(id, out);
            promise(builder.counters().unexpected_processed == before.unexpected_processed + 1,
                    "an event that was not built cannot have been processed");
        }
        promise(outputs_ == outputs, "what does not fit has no effect");
    }

    void disturb_the_manager() {
        BuilderIndex b(input_.byte());
        if (builders_.contains(b) && in_flight(b) > 0) {
            b = b + builders_.size();
        }
        const auto before = manager_.counters();
        const std::size_t outputs = outputs_;
        ManagerOut out{*this};
        manager_.on_builder_done(b, out);
        promise(manager_.counters().unexpected == before.unexpected + 1 && outputs_ == outputs,
                "a report from a builder without events is counted and ignored");
    }

    /// Delivers and processes until nothing is left: every event must end up done.
    void finish() {
        while (problem_.empty() && (!requests_.empty() || !built_.empty())) {
            if (!requests_.empty()) {
                deliver(*requests_.begin());
            } else {
                process(*built_.begin());
            }
            compare_state();
        }
        promise(std::all_of(events_.begin(), events_.end(),
                            [](const Event& e) { return e.stage == Stage::done; }),
                "every event is done in the end");
        std::uint64_t built = 0;
        std::uint64_t bytes = 0;
        for (const PullBuilder& builder : builders_) {
            built += builder.counters().built;
            bytes += builder.counters().fragment_bytes;
        }
        promise(built == events_.size() && bytes == bytes_, "nothing is lost or counted twice");
    }

    // ---- outputs ------------------------------------------------------------------------------

    void assigned(EventId id, BuilderIndex builder) {
        ++outputs_;
        promise(static_cast<std::uint64_t>(id) == next_to_assign_++,
                "events are assigned in the order they came, each once");
        promise(builders_.contains(builder) && has_room(builder),
                "the assigned builder has a free slot");
        if (!problem_.empty()) {
            return;
        }
        if (manager_config_.assignment == Assignment::round_robin) {
            promise(builder == next_with_room(), "round robin takes the next builder with room");
        }
        if (manager_config_.assignment == Assignment::least_busy) {
            for (const BuilderIndex b : base::IndexRange<BuilderIndex>(manager_config_.builders)) {
                promise(in_flight(builder) <= in_flight(b), "no other builder is less busy");
            }
        }
        last_assigned_ = builder;
        event(id) = {.stage = Stage::collecting, .builder = builder};
        unrequested_.push_back(id);
        BuilderOut out{*this, builder};
        builders_[builder].on_assigned(id, out);
    }

    void requested(Request request) {
        ++outputs_;
        const auto oldest = std::find_if(unrequested_.begin(), unrequested_.end(), [&](EventId id) {
            return event(id).builder == request.builder;
        });
        promise(oldest != unrequested_.end() && *oldest == request.event,
                "requests go out for the builder's oldest event that lacks some");
        if (!problem_.empty()) {
            return;
        }
        promise(request.readout == event(request.event).requested++,
                "requests go out readout unit by readout unit, each once");
        if (event(request.event).requested.value() == builder_config_.readouts) {
            unrequested_.erase(oldest);
        }
        requests_.insert(request);
    }

    void built(EventId id, BuilderIndex builder) {
        ++outputs_;
        promise(event(id).builder == builder && event(id).stage == Stage::collecting &&
                    event(id).received == builder_config_.readouts,
                "an event is built once, from all its fragments");
        event(id).stage = Stage::built;
        built_.insert(id);
    }

    void done(EventId id, BuilderIndex builder) {
        ++outputs_;
        promise(event(id).builder == builder && event(id).stage == Stage::built,
                "an event is done once, after it was built");
        event(id).stage = Stage::done;
        built_.erase(id);
    }

    // ---- model --------------------------------------------------------------------------------

    void compare_state() {
        bool all_full = true;
        for (const BuilderIndex b : base::IndexRange<BuilderIndex>(manager_config_.builders)) {
            const PullBuilder& builder = builders_[b];
            const auto outstanding = static_cast<std::uint64_t>(
                std::count_if(requests_.begin(), requests_.end(),
                              [b](const Request& r) { return r.builder == b; }));
            const std::uint64_t limit = builder_config_.outstanding_fragments;
            promise(builder.outstanding() == outstanding, "outstanding fragments are counted");
            promise(limit == 0 || builder.counters().outstanding_peak <= limit,
                    "outstanding fragments keep within their limit");
            const bool waits = std::any_of(unrequested_.begin(), unrequested_.end(),
                                           [&](EventId id) { return event(id).builder == b; });
            promise(!waits || outstanding == limit, "nothing waits while the limit permits it");
            promise(builder.events_held() == in_flight(b) && manager_.in_flight(b) == in_flight(b),
                    "manager and builder agree on the events in flight");
            promise(in_flight(b) <= manager_config_.concurrent_events,
                    "events in flight keep within their limit");
            all_full = all_full && !has_room(b);
        }
        promise(manager_.backlog() == events_.size() - next_to_assign_, "the backlog is counted");
        promise(all_full || manager_.backlog() == 0, "no event waits while a builder has room");
    }

    [[nodiscard]] std::uint32_t in_flight(BuilderIndex b) const {
        return static_cast<std::uint32_t>(
            std::count_if(events_.begin(), events_.end(), [b](const Event& e) {
                return e.builder == b && (e.stage == Stage::collecting || e.stage == Stage::built);
            }));
    }
    [[nodiscard]] bool has_room(BuilderIndex b) const {
        return in_flight(b) < manager_config_.concurrent_events;
    }
    [[nodiscard]] BuilderIndex next_with_room() const {
        BuilderIndex b = last_assigned_;
        do {
            b = builders_.contains(b + 1) ? b + 1 : BuilderIndex();
        } while (!has_room(b) && b != last_assigned_);
        return b;
    }

    Event& event(EventId id) { return events_.at(static_cast<std::size_t>(id)); }

    void promise(bool kept, const char* text) {
        if (!kept && problem_.empty()) {
            problem_ = text;
        }
    }

    base::ByteSource input_;
    EventManagerConfig manager_config_;
    PullBuilderConfig builder_config_;
    EventManager manager_;
    base::Table<BuilderIndex, PullBuilder> builders_;

    std::vector<Event> events_;
    std::uint64_t next_to_assign_ = 0;
    BuilderIndex last_assigned_;
    std::deque<EventId> unrequested_;  ///< assigned, some readout units not asked; oldest first
    std::set<Request> requests_;       ///< not yet answered
    std::set<EventId> built_;          ///< not yet processed
    std::uint64_t bytes_ = 0;          ///< delivered
    std::size_t outputs_ = 0;
    std::string problem_;
};

}  // namespace daqloom::protocol
