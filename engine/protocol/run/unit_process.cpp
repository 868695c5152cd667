#include "protocol/run/unit_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
    const auto next = state_after(order, nodes != nullptr);
    if (!next) {
        return on_failure(number, next.error().message);
    }
    if (const auto* const configure = std::get_if<orders::Configure>(&order)) {
        lease_.set_length(configure->lease);
    } else if (const auto* const prepare = std::get_if<orders::Prepare>(&order)) {
        halting_.reset();
        state_ = *next;
        answer.address = nodes->prepare(unit_, *prepare);
        lease_.begin(prepare->epoch);
        epoch_ = prepare->epoch;
    } else if (const auto* const connect = std::get_if<orders::Connect>(&order)) {
        answer.missing = nodes->connect(unit_, *connect);
    } else if (const auto* const start = std::get_if<orders::Start>(&order)) {
        confirmed(start->last_report);
        const auto leased = lease_.renew(epoch_, start->last_report, start->mep_end);
        nodes->start(unit_, start->first_mep, leased);
        next_mep_ = start->first_mep;
        started_ = epoch_;
    } else if (const auto* const halt = std::get_if<orders::Halt>(&order)) {
        if (state_ == UnitState::running) {
            halting_ = {number, now + halt->timeout / 2, now + halt->timeout};
            nodes->close(unit_, halt->lost);
            return {};
        }
        answer.next_mep = next_mep_;
    } else if (const auto* const renew = std::get_if<orders::Renew>(&order)) {
        confirmed(renew->last_report);
        const auto leased =
            lease_.renew(renew->epoch, renew->last_report, renew->mep_end, renew->beat);
        if (nodes != nullptr) {
            nodes->lease(unit_, leased);
        }
        return {};
    } else {  // to reset or to exit
        shut(nodes);
    }
    answer.state = state_ = *next;
    return answer;
}

base::expected<UnitState> UnitProcess::state_after(const Order& order, bool has_node) const {
    using enum UnitStep;
    constexpr std::optional<UnitStep> steps[] = {{},     halted, connected, started,
                                                 halted, reset,  reset,     {}};
    static_assert(std::size(steps) == std::variant_size_v<Order>);
    const std::optional<UnitStep> step = steps[order.index()];
    if (step && *step != reset && !has_node) {
        return base::failure(std::string("it has not been configured"));
    }
    return step ? after(state_, *step) : state_;
}

UnitProcess::Answer UnitProcess::on_drain(base::Time now, UnitNodes* nodes) {
    if (!is_halting()) {
        return {};
    }
    const auto next_mep =
        nodes->drain(unit_, halting_->hurries ? gives_up_at() : hurries_at(), gives_up_at());
    if (!next_mep && now < gives_up_at()) {
        if (now >= hurries_at() && !std::exchange(halting_->hurries, true)) {
            nodes->close(unit_, {});
        }
        return {};
    }
    state_ = *after(state_, UnitStep::halted);
    next_mep_ = std::max(next_mep_, next_mep.value_or(0));
    return reports::Answer{.order = std::exchange(halting_, {})->order,
                           .state = state_,
                           .missing = nodes->suspects(unit_),
                           .next_mep = next_mep_};
}

reports::Answer UnitProcess::on_failure(std::uint64_t order, std::string why) {
    halting_.reset();
    state_ = *after(state_, UnitStep::failed);
    return {.order = order, .state = state_, .failure = std::move(why)};
}

void UnitProcess::shut(UnitNodes* nodes) {
    halting_.reset();
    state_ = *after(state_, UnitStep::reset);
    epoch_ = 0;
    if (auto counters = nodes != nullptr ? nodes->shut(unit_) : std::nullopt) {
        if (final_counters_.size() == most_unconfirmed) {
            final_counters_.pop_front();
        }
        final_counters_.push_back({.ended = started_, .counters = std::move(*counters)});
    }
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
    for (reports::Heartbeat& last : final_counters_) {
        if (last.number == 0) {
            last.number = lease_.sending(now);
            all.emplace_back(last);
        }
    }
    NamedCounters counters = nodes != nullptr ? nodes->counters(unit_) : NamedCounters();
    if (answer) {
        answer->number = lease_.sending(now);
        answer->counters = std::move(counters);
        all.emplace_back(std::move(*answer));
    } else {
        all.emplace_back(heartbeat(std::move(counters), nodes));
        std::get<reports::Heartbeat>(all.back()).number = lease_.sending(now);
    }
    return all;
}

std::vector<reports::Report> UnitProcess::unconfirmed() const {
    std::vector<reports::Report> all;
    std::ranges::copy_if(final_counters_, std::back_inserter(all),
                         [](const reports::Heartbeat& last) { return last.number != 0; });
    return all;
}

/// The run control has stored the reports up to this one.
void UnitProcess::confirmed(std::uint64_t last_report) {
    std::erase_if(final_counters_, [&](const reports::Heartbeat& last) {
        return last.number != 0 && last.number <= last_report;
    });
}

}  // namespace daqloom::protocol
