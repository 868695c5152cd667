#include "protocol/run/unit_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace daqloom::protocol {

namespace {

std::optional<std::uint64_t> counted(const NamedCounters& counters, std::string_view name) {
    return counters.by_name.contains(name)
               ? std::optional(static_cast<std::uint64_t>(counters.count(name)))
               : std::nullopt;
}

}  // namespace

UnitProcess::Answer UnitProcess::on_order(base::Time now, std::uint64_t number, const Order& order,
                                          UnitNodes* nodes) {
    reports::Answer answer{.order = number};
    const Call call{now, nodes, answer};
    const Done done = std::visit([&](const auto& kind) { return carry_out(kind, call); }, order);
    if (!done) {
        return on_failure(number, done.error().message);
    }
    answer.state = state_;
    const bool is_answered = !is_halting() && !std::holds_alternative<orders::Renew>(order);
    return is_answered ? Answer(std::move(answer)) : std::nullopt;
}

UnitProcess::Answer UnitProcess::on_drain(base::Time now, std::optional<std::uint64_t> next_mep,
                                          UnitNodes& nodes) {
    if (!is_halting()) {
        return {};
    }
    if (!next_mep && now < gives_up_at()) {
        if (now >= hurries_at() && !std::exchange(halting_->hurries, true)) {
            nodes.close(unit_, {}, now);
        }
        return {};
    }
    state_ = *after(state_, UnitStep::halted);
    next_mep_ = std::max(next_mep_, next_mep.value_or(0));
    return reports::Answer{.order = std::exchange(halting_, {})->order,
                           .state = state_,
                           .missing = nodes.suspects(unit_),
                           .next_mep = next_mep_};
}

reports::Answer UnitProcess::on_failure(std::uint64_t order, std::string why) {
    halting_.reset();
    state_ = *after(state_, UnitStep::failed);
    return {.order = order, .state = state_, .failure = std::move(why)};
}

void UnitProcess::shut(base::Time now, UnitNodes* nodes) {
    halting_.reset();
    state_ = *after(state_, UnitStep::reset);
    epoch_ = 0;
    if (auto counters = nodes != nullptr ? nodes->shut(unit_, now) : std::nullopt) {
        final_counters_.push_back(std::move(*counters));
    }
}

// ---- orders

UnitProcess::Done UnitProcess::carry_out(const orders::Configure& order, const Call& /*call*/) {
    lease_.set_length(order.lease);
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Prepare& order, const Call& call) {
    DAQLOOM_TRY(next, after_step(UnitStep::halted, call));  // also before a start
    halting_.reset();
    state_ = next;
    call.answer.address = call.nodes->prepare(unit_, order, call.now);
    lease_.begin(order.epoch);
    epoch_ = order.epoch;
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Connect& order, const Call& call) {
    DAQLOOM_TRY(next, after_step(UnitStep::connected, call));
    call.answer.missing = call.nodes->connect(unit_, order);
    state_ = next;
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Start& order, const Call& call) {
    DAQLOOM_TRY(next, after_step(UnitStep::started, call));
    const auto leased = lease_.renew(epoch_, order.last_report, order.mep_end);
    call.nodes->start(unit_, order.first_mep, leased, call.now);
    state_ = next;
    next_mep_ = order.first_mep;
    started_ = epoch_;
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Halt& order, const Call& call) {
    DAQLOOM_TRY(next, after_step(UnitStep::halted, call));
    if (state_ == UnitState::running) {
        halting_ = {.order = call.answer.order,
                    .hurries_at = call.now + order.timeout / 2,
                    .gives_up_at = call.now + order.timeout};
        call.nodes->close(unit_, order.lost, call.now);
    } else {
        state_ = next;
        call.answer.next_mep = next_mep_;
    }
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Reset& /*order*/, const Call& call) {
    shut(call.now, call.nodes);
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Exit& /*order*/, const Call& call) {
    shut(call.now, call.nodes);
    return {};
}

UnitProcess::Done UnitProcess::carry_out(const orders::Renew& order, const Call& call) {
    const auto leased = lease_.renew(order.epoch, order.last_report, order.mep_end);
    if (call.nodes != nullptr) {
        call.nodes->lease(unit_, leased, call.now);
    }
    return {};
}

base::expected<UnitState> UnitProcess::after_step(UnitStep step, const Call& call) const {
    return call.nodes != nullptr ? after(state_, step)
                                 : base::failure(std::string("it has not been configured"));
}

// ---- reports

reports::Heartbeat UnitProcess::heartbeat(NamedCounters counters, const UnitNodes* nodes) const {
    namespace names = counter_names;
    reports::Heartbeat report{
        .pulse = {.epoch = epoch_,
                  .state = state_,
                  .next_mep = static_cast<std::uint64_t>(counters.count(names::next_mep))}};
    if (reports::Pulse& pulse = report.pulse; state_ == UnitState::running && nodes != nullptr) {
        pulse.beats = counted(counters, names::beats);
        pulse.steps = counted(counters, names::steps);
        pulse.waits = counters.count(names::waits) != 0;
        pulse.suspects = nodes->suspects(unit_);
        std::ranges::sort(pulse.suspects);
        if (const auto broken = counters.count(names::streams_broken); broken != 0) {
            pulse.state = UnitState::error;
            pulse.failure =
                fmt::format("{} invalid descriptors; correct the program that writes to the buffer",
                            broken == 1 ? "1 stream has" : fmt::format("{} streams have", broken));
        }
    }
    report.counters = std::move(counters);
    return report;
}

std::vector<reports::Report> UnitProcess::reports(base::Time now, Answer answer,
                                                  const UnitNodes* nodes) {
    std::vector<reports::Report> all;
    for (NamedCounters& counters : std::exchange(final_counters_, {})) {
        all.emplace_back(reports::Heartbeat{.ended = started_, .counters = std::move(counters)});
    }
    NamedCounters counters = nodes != nullptr ? nodes->counters(unit_, now) : NamedCounters();
    if (answer) {
        answer->counters = std::move(counters);
        all.emplace_back(std::move(*answer));
    } else {
        all.emplace_back(heartbeat(std::move(counters), nodes));
    }
    for (reports::Report& report : all) {
        std::visit([&](auto& kind) { kind.number = lease_.sending(now); }, report);
    }
    return all;
}

}  // namespace daqloom::protocol
