#include "protocol/run/accounts/tally.hpp"

#include <cstdint>
#include <variant>

#include "protocol/run/accounts/saturating_sum.hpp"

namespace daqloom::protocol {

namespace {

using Value = NamedCounters::Value;

double number(const Value& value) {
    return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

/// The increase since the last reading; the whole value if the counter has restarted.
Value since(const Value& value, const Value& last) {
    const auto* const now = std::get_if<std::int64_t>(&value);
    const auto* const before = std::get_if<std::int64_t>(&last);
    if (now != nullptr && before != nullptr) {
        return *now < *before ? *now : *now - *before;
    }
    return number(value) < number(last) ? value : number(value) - number(last);
}

void add(Value& sum, const Value& more) {
    auto* const whole = std::get_if<std::int64_t>(&sum);
    const auto* const more_whole = std::get_if<std::int64_t>(&more);
    if (whole != nullptr && more_whole != nullptr) {
        *whole = saturating_sum(*whole, *more_whole);
    } else {
        sum = number(sum) + number(more);
    }
}

}  // namespace

void Tally::read(const NamedCounters& counters) {
    const bool has_age = counters.by_name.contains(counter_names::elapsed_s);
    const double made_s = counters.number(counter_names::made_s);
    if ((has_age || made_s != 0) && begins_anew(counters)) {
        state_.last.by_name.clear();
        state_.read_s = 0;
    }
    state_.read_s = has_age ? counters.number(counter_names::elapsed_s) : state_.read_s;
    state_.made_s = made_s != 0 ? made_s : state_.made_s;
    for (const auto& [name, value] : counters.by_name) {
        if (gauges_.contains(name)) {
            state_.totals.by_name[name] = value;
            continue;
        }
        Value& last = state_.last.by_name[name];  // at first 0
        add(state_.totals.by_name[name], since(value, last));
        last = value;
    }
}

}  // namespace daqloom::protocol
