// Pull event building on a node. Events arrive at the event manager at the times of
// `PullRules::arrivals`. A readout unit writes a fragment after its response time. A builder unit
// sends an accepted event to a storage unit after its processing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/pull_builder.hpp"
#include "protocol/machines/storage_sender.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/units/requested_unit.hpp"
#include "protocol/units/timers.hpp"

namespace daqloom::protocol {

/// The world of a pull unit with storage units.
template <class World>
concept StoringWorld = RequestedWorld<World> && requires(World& world, EventId event,
                                                         std::uint32_t slot, StorageIndex unit) {
    /// Send the event in the slot to the storage unit; its acknowledgement is on_stored.
    world.store(event, slot, unit);
};

class PullUnit : public RequestedUnit<PullUnit, PullRules, PullBuilder> {
  public:
    static constexpr RequestedWords words = {"pull building", "concurrent events",
                                             "concurrent events"};
    static constexpr bool limits_writes = false;
    static constexpr bool has_arrivals = true;
    static constexpr bool takes_empty_fragments = false;
    static constexpr std::uint32_t margin = 64;  ///< fragments whose writes are not yet reported

    static std::uint32_t slots(const PullRules& rules) { return rules.concurrent_events; }

    static base::expected<PullUnit> make(Config config);

    // ---- inputs

    /// Handles what is due by now: arrivals, responses, processed events, and the end of waiting
    /// for data. False: nothing was due.
    template <RequestedWorld World>
    bool on_time(base::Time now, World& world) {
        if (now < due_at_) {
            return false;
        }
        give_up_waiting(now, world);
        // Arrivals per call are limited, so that other due work does not wait for them.
        for (std::uint32_t left = most_arrivals; next_arrival_ <= now && left > 0; --left) {
            ManagerOut<World> out{world};
            world.arrived(now);
            manager_->on_event(EventId{arrived_++}, out);
            next_arrival_ = after_begin(arrivals_->next());
        }
        run_due(now, world);
        return true;
    }
    void skip_arrivals(std::uint64_t events) {
        for (; arrivals_ && events > 0; --events) {
            next_arrival_ = after_begin(arrivals_->next());
        }
        update_due();
    }

    template <RequestedWorld World>
    void on_write_done(EventId event, BuilderIndex builder, World& world) {
        settle(event, builder, world);
    }

    /// The consumer has received the event, whose processing (`PullRules`) may last longer.
    template <RequestedWorld World>
    void on_consumed(EventId event, base::Time now, World& world) {
        const auto slot = builder_->slot_of(event);
        if (slot != SlotTable::none && processed_at_[slot] > now) {
            set_timer(processed_at_[slot], {UnitTimer::What::processed, event});
            return;
        }
        finish(event, now, world);
    }

    /// A storage unit has stored the event. False: the event is not on its way to storage.
    template <StoringWorld World>
    bool on_stored(EventId event, base::Time now, World& world) {
        StorageOut<World> out{*this, now, world};
        return storage_->on_stored(event, builder_->slot_of(event), out);
    }

    // ---- observers

    /// The sender of accepted events; null: none is stored.
    [[nodiscard]] const StorageSender* storage() const { return storage_ ? &*storage_ : nullptr; }

    /// The next time at which on_time has work.
    [[nodiscard]] base::Time next_timer() const { return due_at_; }
    /// After on_close: whether the requests of live builder units are written, and assigned events
    /// are built from the fragments of live readout units.
    [[nodiscard]] bool is_drained() const;
    /// One more than the last number of an event that was assigned or had a fragment written.
    [[nodiscard]] std::uint64_t next_event() const {
        return std::max(next_event_, builder_ ? builder_->next_event() : 0);
    }
    /// Whether the unit only waits for arrivals, its own source, a response time or its consumer.
    [[nodiscard]] bool waits_for_its_own() const;
    /// Number of requests for fragments that the source has not yet delivered.
    [[nodiscard]] std::uint32_t waits_for_data() const { return book_ ? book_->waiting() : 0; }
    /// Fragments written, including empty ones that the source had not delivered.
    [[nodiscard]] std::uint64_t written() const { return written_; }
    /// Fragments requested from this readout unit and not yet written.
    [[nodiscard]] std::uint64_t unanswered() const { return unanswered_; }

  private:
    friend RequestedUnit;

    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    /// Arrivals handled in one call of on_time.
    static constexpr std::uint32_t most_arrivals = 1'024;

    /// Requests of a builder unit.
    struct Requests {
        std::uint32_t made = 0;
        std::uint32_t unanswered = 0;
    };
    struct Requester {
        std::uint64_t last_request = unknown;  ///< requests that it makes in all
        bool is_lost = false;
    };

    template <class World>
    struct StorageOut {
        PullUnit& unit;
        base::Time now;
        World& world;

        void store(EventId event, SlotTable::Slot slot, StorageIndex to) {
            world.store(event, slot, to);
        }
        void set_deadline(base::Time at, EventId event, std::uint32_t attempt) {
            unit.set_timer(at, {UnitTimer::What::storage, event, {}, 0, attempt});
        }
        void release(EventId event) { unit.RequestedUnit::on_consumed(event, now, world); }
    };

    explicit PullUnit(Config config)
        : RequestedUnit(std::move(config)),
          responds_at_once_(config_.rules.response.kind == base::DelayDistribution::Kind::fixed &&
                            config_.rules.response.mean == base::Time::zero()),
          response_(config_.rules.response) {}

    // ---- hooks

    template <class World>
    void on_assigned(EventId event, World& world) {
        if (const auto slot = builder_->slot_of(event); slot != SlotTable::none) {
            world.collect(event, slot);
        }
    }
    void on_built(SlotTable::Slot slot, base::Time now) {
        processed_at_[slot] = now + base::draw_total(config_.rules.processing, *processing_random_);
    }
    [[nodiscard]] bool is_lost(BuilderIndex builder) const {
        return any_is_lost_ && requesters_[builder].is_lost;
    }
    [[nodiscard]] bool is_served(BuilderIndex builder, std::uint64_t waiting) const {
        const Requester& requester = requesters_[builder];
        const Requests& requests = requests_[builder];
        return requester.is_lost ||
               (requests.made == requester.last_request && requests.unanswered == waiting);
    }
    void count_request(BuilderIndex builder) {
        Requests& requests = requests_[builder];
        ++requests.made;
        ++requests.unanswered;
        ++unanswered_;
    }
    bool on_last_request(BuilderIndex builder, std::uint64_t requests);
    template <class World>
    void lose(std::span<const BuilderIndex> builders, World& /*world*/) {
        is_closing_ = true;
        next_arrival_ = base::Time::never();
        for (const BuilderIndex builder : builders) {
            if (book_) {
                requesters_[builder].is_lost = any_is_lost_ = true;
            }
        }
        update_due();
    }

    template <class World>
    void serve(EventId event, const RequestBook::Request& request, base::Time now, World& world) {
        const base::Time at = responds_at_once_ ? now : now + response_.draw(*response_random_);
        const UnitTimer timer{UnitTimer::What::response, event, request.builder, request.offset};
        if (at <= now && now < due_at_) {
            respond(timer, world);
            return;
        }
        set_timer(at, timer);
        run_due(now, world);
    }

    // ---- timers

    [[nodiscard]] base::Time after_begin(base::Time time) const {
        return time == base::Time::never() ? time : config_.begin + time;
    }
    void set_timer(base::Time at, const UnitTimer& timer) {
        timers_.set(at, timer);
        due_at_ = std::min(due_at_, at);
    }
    void update_due() { due_at_ = std::min({timers_.next(), next_arrival_, give_up_at_}); }

    template <class World>
    void run_due(base::Time now, World& world) {
        if (now < due_at_) {
            return;
        }
        for (auto timer = timers_.take(now); timer; timer = timers_.take(now)) {
            if (timer->what == UnitTimer::What::response) {
                respond(*timer, world);
            } else if (timer->what == UnitTimer::What::processed) {
                finish(timer->event, now, world);
            } else if constexpr (StoringWorld<World>) {
                StorageOut<World> out{*this, now, world};
                storage_->on_deadline(timer->event, builder_->slot_of(timer->event), timer->attempt,
                                      now, out);
            }
        }
        update_due();
    }
    /// Ends the processing of an event, which is stored or released.
    template <class World>
    void finish(EventId event, base::Time now, World& world) {
        if constexpr (StoringWorld<World>) {
            const auto slot = storage_ ? builder_->slot_of(event) : SlotTable::none;
            StorageOut<World> out{*this, now, world};
            if (slot != SlotTable::none && storage_->on_processed(event, slot, now, out)) {
                return;
            }
        }
        RequestedUnit::on_consumed(event, now, world);
    }

    template <class World>
    void respond(const UnitTimer& timer, World& world) {
        if (!is_lost(timer.builder)) {
            next_event_ = std::max(next_event_, number(timer.event) + 1);
            ++written_;
            world.write(timer.event, timer.builder, timer.offset, world.held(timer.event));
        } else {
            settle(timer.event, timer.builder, world);
        }
    }

    /// Settles a request that is answered or whose builder unit is lost.
    template <class World>
    void settle(EventId event, BuilderIndex builder, World& world) {
        --requests_[builder].unanswered;
        --unanswered_;
        give_back_written(event, world);
    }

    // ---- data that each request touches
    alignas(64) base::Table<BuilderIndex, Requests> requests_;  ///< by each builder unit
    std::uint64_t next_event_ = 0;
    std::uint64_t unanswered_ = 0;
    std::uint64_t written_ = 0;
    base::Time due_at_ = base::Time::never();  ///< the earliest of timers, arrival, end of waiting
    bool responds_at_once_ = false;
    bool any_is_lost_ = false;

    base::DelayDistribution response_;
    std::unique_ptr<base::RandomStream> response_random_;  ///< none: no readout unit
    Timers timers_;                                        ///< responses and processed events
    base::Time next_arrival_ = base::Time::never();
    bool is_closing_ = false;

    std::unique_ptr<Arrivals> arrivals_;  ///< none: no event manager
    std::uint64_t arrived_ = 0;

    std::unique_ptr<base::RandomStream> processing_random_;
    std::vector<base::Time> processed_at_;  ///< by slot
    std::optional<StorageSender> storage_;  ///< none: no builder unit, or no storage unit

    base::Table<BuilderIndex, Requester> requesters_;
};

using PullUnitConfig = PullUnit::Config;

}  // namespace daqloom::protocol
