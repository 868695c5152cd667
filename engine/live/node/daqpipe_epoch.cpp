// An epoch under DAQPIPE: the readout unit, the builder unit or both of a node; on the node of
// readout unit 0 the event manager too.
//
// The event manager learns of an event when its own readout unit has its MFP.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/node/requested_epoch.hpp"
#include "live/node/slot_clock.hpp"
#include "protocol/machines/daqpipe.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/request_book.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::DaqpipeBuilder;
using protocol::DaqpipeReadout;
using protocol::DaqpipeWrite;
using protocol::EventId;
using protocol::EventManager;
using protocol::ReadoutIndex;
using protocol::RequestBook;
using protocol::UnitMessage;
using Kind = UnitMessage::Kind;

/// Wait, while an epoch closes, for MFPs that were requested and have not arrived.
constexpr Time kPatience = base::seconds(1);

std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }

class DaqpipeEpoch final : public RequestedEpoch {
  public:
    DaqpipeEpoch(const EpochParts& parts, Members members)
        : RequestedEpoch(parts, std::move(members)) {}

    base::expected<void> make_units();

    void begin() override {}
    bool step(Time now) override;
    [[nodiscard]] Time next_timer() const override;
    void on_lease(std::uint64_t mep_end) override;
    void on_close(std::span<const UnitIndex> lost) override;
    [[nodiscard]] bool is_drained() const override;
    void end() override;
    [[nodiscard]] std::uint64_t next_mep() const override;

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;

  private:
    struct ManagerOut;
    struct BuilderOut;
    struct ReadoutOut;

    void count();
    base::expected<void> make_manager();
    base::expected<void> make_readout();
    base::expected<void> make_builder();

    bool feed();
    bool keep_slots(Time now);
    bool give_up_waiting(Time now);
    bool on_request(BuilderIndex builder, const UnitMessage& message);
    void serve(std::uint64_t mfp, const RequestBook::Request& request);
    void deliver(EventId event);

    [[nodiscard]] Counter* cause_of_waiting() const override;
    [[nodiscard]] bool waits_for_its_own() const override;
    [[nodiscard]] bool is_timed() const { return config().slot > Time::zero(); }

    std::optional<EventManager> manager_;
    std::optional<DaqpipeReadout> readout_;
    std::optional<RequestBook> book_;
    bool has_given_up_ = false;  ///< on what the source has not delivered
    Time give_up_at_ = Time::never();

    std::optional<DaqpipeBuilder> builder_;

    std::optional<SlotClock> clock_;
    std::uint64_t next_slot_ = 0;
};

struct DaqpipeEpoch::ManagerOut {
    DaqpipeEpoch& epoch;

    void assign(EventId event, BuilderIndex builder) {
        epoch.counters_.answered_to(epoch.in_run(number(event)) + 1);
        epoch.send(epoch.members_.builders[builder], {Kind::assign, 0, number(event), {}});
    }
    void last_assignment(BuilderIndex builder, std::uint64_t events) {
        epoch.send(epoch.members_.builders[builder], {Kind::last_assignment, 0, events, {}});
    }
};

/// See DaqpipeBuilderOut.
struct DaqpipeEpoch::BuilderOut {
    DaqpipeEpoch& epoch;

    void request(EventId event, ReadoutIndex readout, Bytes place) {
        const std::uint32_t slot = epoch.memory_.slot_of_place(place);
        epoch.collect(event, slot);
        const Bytes offset = epoch.clear_place(slot, readout);
        send(readout, {Kind::request, 0, number(event), {&offset, 1}});
    }
    void built(EventId event) { epoch.deliver(event); }
    void incomplete(EventId event) { epoch.deliver(event); }
    void done(EventId event) {
        epoch.send(epoch.members_.readouts.front(), {Kind::done, 0, number(event), {}});
    }
    void last_request(ReadoutIndex readout, std::uint64_t requests) {
        send(readout, {Kind::last_answer, 0, requests, {}});
    }

    void send(ReadoutIndex readout, const UnitMessage& message) {
        epoch.send(epoch.members_.readouts[readout], message);
    }
};

/// See DaqpipeReadoutOut.
struct DaqpipeEpoch::ReadoutOut {
    DaqpipeEpoch& epoch;

    void write(const DaqpipeWrite& write) {
        epoch.write_mfp(number(write.event), write.builder, write.place);
    }
};

// ---- making -------------------------------------------------------------------------------------

base::expected<void> DaqpipeEpoch::make_units() {
    if (auto made = make_memory(); !made) {
        return made;
    }
    if (is_timed()) {
        clock_ = SlotClock::of_this_machine(config().slot);
    }
    if (self_readout() == ReadoutIndex()) {
        if (auto made = make_manager(); !made) {
            return made;
        }
    }
    if (self_readout() != ReadoutIndex::none()) {
        if (auto made = make_readout(); !made) {
            return made;
        }
    }
    return self_builder() == BuilderIndex::none() ? base::expected<void>{} : make_builder();
}

base::expected<void> DaqpipeEpoch::make_manager() {
    auto made = EventManager::make({.builders = builders(), .concurrent_events = config().credits},
                                   base::RandomStream(config().seed, "assignment"));
    if (!made) {
        return tl::unexpected(made.error());
    }
    manager_.emplace(std::move(*made));
    return {};
}

base::expected<void> DaqpipeEpoch::make_readout() {
    const std::uint64_t together = std::uint64_t{config().credits} * config().parallel_sends;
    const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(together, ~0U));
    auto made = DaqpipeReadout::make({.self = self_readout(),
                                      .builders = builders(),
                                      .credits = config().credits,
                                      .parallel_sends = config().is_push ? limit : 0,
                                      .is_timed = is_timed() && config().is_push});
    if (!made) {
        return tl::unexpected(made.error());
    }
    readout_.emplace(std::move(*made));
    // Events collected at a time, of which the oldest may complete last, and as many again for
    // the next ones.
    const std::uint32_t collected = builders() * config().credits;
    make_stream(2 * collected);
    book_.emplace(collected);
    book_->reserve(2 * collected);
    return {};
}

base::expected<void> DaqpipeEpoch::make_builder() {
    auto made = DaqpipeBuilder::make(
        {.self = self_builder(),
         .readouts = readouts(),
         .credits = config().credits,
         .parallel_sends = config().is_push ? 0 : config().parallel_sends,
         .largest_fragment = memory_.place,
         .is_timed = is_timed() && !config().is_push,
         .when_incomplete = config().delivers_incomplete ? protocol::WhenIncomplete::deliver
                                                         : protocol::WhenIncomplete::drop});
    if (!made) {
        return tl::unexpected(made.error());
    }
    builder_.emplace(std::move(*made));
    make_places();
    return {};
}

// ---- work ---------------------------------------------------------------------------------------

bool DaqpipeEpoch::step(Time now) {
    bool did = post_.retry();
    if (clock_) {
        did |= keep_slots(now);
    }
    if (readout_) {
        did |= give_up_waiting(now);
        did |= feed();
    }
    if (builder_) {
        BuilderOut out{*this};
        did |= take_back([&](std::uint64_t event) { builder_->on_processed(EventId{event}, out); });
    }
    count();
    return did;
}

void DaqpipeEpoch::count() {
    std::uint64_t messages = manager_ ? manager_->counters().unexpected : 0;
    std::uint64_t writes = 0;
    if (readout_) {
        messages += readout_->counters().unexpected_requests;
    }
    if (builder_) {
        const auto& builder = builder_->counters();
        messages += builder.unexpected_assignments;
        writes += builder.unexpected_fragments + builder.from_lost;
    }
    count_refused(messages, writes);
}

Time DaqpipeEpoch::next_timer() const {
    return std::min(give_up_at_, clock_ ? clock_->begin_of(next_slot_) : Time::never());
}

/// If late by whole slots, it continues with the current one.
bool DaqpipeEpoch::keep_slots(Time now) {
    const std::uint64_t slot = clock_->slot_at(now);
    if (slot < next_slot_) {
        return false;
    }
    next_slot_ = slot + 1;
    if (config().is_push && readout_) {
        ReadoutOut out{*this};
        readout_->on_slot(slot, out);
    } else if (!config().is_push && builder_) {
        BuilderOut out{*this};
        builder_->on_slot(slot, out);
    }
    return true;
}

bool DaqpipeEpoch::feed() {
    bool did = false;
    for (; !has_given_up_ && stream_->has_next(); did = true) {
        const std::uint64_t mfp = book_->taken();
        take();
        if (const auto request = book_->on_taken()) {
            serve(mfp, *request);
        }
        if (manager_) {
            ManagerOut out{*this};
            manager_->on_event(EventId{mfp}, out);
        }
    }
    return did;
}

/// MFPs that the source has not delivered by now count as absent.
bool DaqpipeEpoch::give_up_waiting(Time now) {
    if (now < give_up_at_) {
        return false;
    }
    give_up_at_ = Time::never();
    has_given_up_ = true;
    book_->each_waiting([&](std::uint64_t mfp, const RequestBook::Request& request) {
        counters_.mfps_absent.add(1);
        serve(mfp, request);
    });
    return true;
}

void DaqpipeEpoch::serve(std::uint64_t number, const RequestBook::Request& request) {
    ReadoutOut out{*this};
    readout_->on_request(EventId{number}, request.builder, request.offset,
                         static_cast<Bytes>(mfp(number).size()), out);
}

Counter* DaqpipeEpoch::cause_of_waiting() const {
    if (!readout_) {
        return nullptr;
    }
    if (readout_->in_flight() > 0 || !post_.is_empty()) {
        return &counters_.waiting_for_network;
    }
    return book_->waiting() > 0 || (manager_ && manager_->backlog() == 0)
               ? &counters_.waiting_for_source
               : &counters_.waiting_for_builder;
}

bool DaqpipeEpoch::waits_for_its_own() const {
    const bool waits_for_consumer =
        builder_ && builder_->counters().built == builder_->counters().done + config().credits;
    return cause_of_waiting() == &counters_.waiting_for_source || waits_for_consumer;
}

// ---- messages -----------------------------------------------------------------------------------

void DaqpipeEpoch::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    const auto message = message_of(from, bytes);
    if (!message) {
        return;
    }
    const BuilderIndex builder = members_.builder_of[from];
    if (message->kind == Kind::assign && builder_ && is_manager(from)) {
        BuilderOut out{*this};
        builder_->on_assigned(EventId{message->number}, out);
    } else if (message->kind == Kind::last_assignment && builder_ && is_manager(from)) {
        BuilderOut out{*this};
        builder_->on_last_assignment(message->number, out);
    } else if (message->kind == Kind::done && manager_ && builder != BuilderIndex::none()) {
        ManagerOut out{*this};
        manager_->on_builder_done(builder, out);
    } else if (message->kind == Kind::last_answer && readout_ && builder != BuilderIndex::none()) {
        readout_->on_last_request(builder, message->number);
    } else if (message->kind != Kind::request || !readout_ || builder == BuilderIndex::none() ||
               !on_request(builder, *message)) {
        refuse_message();
    }
}

/// False: it was refused.
bool DaqpipeEpoch::on_request(BuilderIndex builder, const UnitMessage& message) {
    if (message.values.size() != 1) {
        return false;
    }
    const RequestBook::Request request{.builder = builder, .offset = message.values[0]};
    const RequestBook::Answer answer = book_->ask(message.number, request);
    if (answer == RequestBook::Answer::now) {
        serve(message.number, request);
    } else if (answer == RequestBook::Answer::later && has_given_up_) {
        counters_.mfps_absent.add(1);
        serve(message.number, request);
    }
    return answer != RequestBook::Answer::refused;
}

void DaqpipeEpoch::on_written(UnitIndex from, std::uint32_t bits) {
    if (const auto here = arrived(from, bits)) {
        BuilderOut out{*this};
        builder_->on_fragment(here->event, here->readout, here->bytes, out);
    }
}

void DaqpipeEpoch::on_write_done(std::uint64_t context) {
    count_written(context);
    ReadoutOut out{*this};
    const BuilderIndex builder = book_->request_of(context).builder;
    for (std::uint32_t left = book_->on_written(context); left > 0; --left) {
        stream_->give_back();
    }
    readout_->on_write_done(builder, out);
}

// ---- MEPs ---------------------------------------------------------------------------------------

void DaqpipeEpoch::deliver(EventId event) {
    const std::uint32_t slot = memory_.slot_of_place(builder_->place_of(event, ReadoutIndex()));
    RequestedEpoch::deliver(
        event, slot, [&](ReadoutIndex readout) { return builder_->is_here(event, readout); });
}

void DaqpipeEpoch::on_lease(std::uint64_t mep_end) {
    if (manager_) {
        ManagerOut out{*this};
        manager_->on_lease(in_epoch(mep_end), out);
    }
}

// ---- the end ------------------------------------------------------------------------------------

void DaqpipeEpoch::on_close(std::span<const UnitIndex> lost) {
    const Lost gone = lose(lost);
    if (manager_) {
        ManagerOut out{*this};
        manager_->on_close(out);
    }
    if (readout_) {
        ReadoutOut out{*this};
        readout_->on_close(gone.builders, out);
        give_up_at_ = has_given_up_ ? Time::never() : now() + kPatience;
    }
    if (builder_) {
        BuilderOut out{*this};
        builder_->on_close(gone.readouts, out);
        if (std::ranges::any_of(lost, [this](UnitIndex unit) { return is_manager(unit); })) {
            builder_->on_event_manager_lost(out);
        }
    }
}

bool DaqpipeEpoch::is_drained() const {
    return (!readout_ || readout_->is_drained()) && (!builder_ || builder_->is_drained()) &&
           post_.is_empty();
}

void DaqpipeEpoch::end() {
    if (builder_) {
        BuilderOut out{*this};
        builder_->on_end(out);
        counters_.meps_dropped.add(builder_->counters().dropped);
    }
}

std::uint64_t DaqpipeEpoch::next_mep() const {
    return parts_.first_mep +
           std::max(readout_ ? readout_->next_event() : 0, builder_ ? builder_->next_event() : 0);
}

}  // namespace

base::expected<std::unique_ptr<Epoch>> make_daqpipe_epoch(const EpochParts& parts,
                                                          Members members) {
    auto epoch = std::make_unique<DaqpipeEpoch>(parts, std::move(members));
    if (auto made = epoch->make_units(); !made) {
        return tl::unexpected(made.error());
    }
    return epoch;
}

}  // namespace daqloom::live
