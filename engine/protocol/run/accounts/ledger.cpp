#include "protocol/run/accounts/ledger.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "protocol/run/accounts/saturating_sum.hpp"

namespace daqloom::protocol {

namespace {

Balance held_against(std::int64_t share, const MepCounts& counted) {
    const std::int64_t rest = share - counted.finished;
    const std::int64_t missing = std::max<std::int64_t>(rest, 0);
    const std::int64_t unfinished = std::min(missing, counted.begun);
    return {unfinished, missing - unfinished, std::max<std::int64_t>(-rest, 0)};
}

}  // namespace

MepCounts MepCounts::of(const NamedCounters& totals) {
    // Saturating sums: a unit may report impossible counts.
    const auto count = [&](const char* name) {
        return std::max<std::int64_t>(totals.count(name), 0);
    };
    std::int64_t ended =
        saturating_sum(count(counter_names::meps_built), count(counter_names::meps_incomplete));
    ended = saturating_sum(ended, count(counter_names::meps_dropped));
    return {saturating_sum(ended, count(counter_names::meps_discarded)),
            std::max<std::int64_t>(0, count(counter_names::meps_granted) - ended)};
}

MepCounts MepCounts::since(const MepCounts& before) const {
    return {finished - before.finished, std::max<std::int64_t>(0, begun - before.begun)};
}

MepCounts& MepCounts::operator+=(const MepCounts& other) {
    finished = saturating_sum(finished, other.finished);
    begun = saturating_sum(begun, other.begun);
    return *this;
}

Balance& Balance::operator+=(const Balance& other) {
    unfinished = saturating_sum(unfinished, other.unfinished);
    skipped = saturating_sum(skipped, other.skipped);
    twice = saturating_sum(twice, other.twice);
    return *this;
}

void Ledger::end(std::uint64_t end, bool takes_turns) {
    takes_turns_ = takes_turns;
    if (!epochs_.empty()) {
        epochs_.back().end = epochs_.back().end.value_or(end);
    }
}

void Ledger::begin(std::uint64_t first_mep, const std::vector<UnitIndex>& builders,
                   const Totals& totals) {
    if (!epochs_.empty()) {
        epochs_.back().end = epochs_.back().end.value_or(first_mep);
    }
    ByUnit before;
    for (const UnitIndex unit : builders) {
        before.emplace(unit, totals(unit));
    }
    for (Epoch& epoch : epochs_) {
        for (const auto& [unit, count] : epoch.before) {
            if (const auto now = before.find(unit); now != before.end()) {
                epoch.counted.try_emplace(unit, now->second.since(count));
            }
        }
        if (epoch.is_closed()) {
            closed_ += balance_of(epoch, first_mep, epoch.counted);
        }
    }
    std::erase_if(epochs_, [](const Epoch& epoch) { return epoch.is_closed(); });
    epochs_.push_back({.first = first_mep,
                       .takes_turns = takes_turns_,
                       .builders = builders,
                       .before = std::move(before)});
}

Balance Ledger::balance(std::uint64_t next_mep, const Totals& totals) const {
    Balance found = closed_;
    for (const Epoch& epoch : epochs_) {
        found += balance_until_now(epoch, next_mep, totals);
    }
    return found;
}

Balance Ledger::ended(const Totals& totals) const {
    Balance found = closed_;
    for (const Epoch& epoch : epochs_) {
        found += epoch.end ? balance_until_now(epoch, 0, totals) : Balance{};
    }
    return found;
}

Balance Ledger::balance_until_now(const Epoch& epoch, std::uint64_t next_mep,
                                  const Totals& totals) {
    ByUnit counted = epoch.counted;
    for (const auto& [unit, before] : epoch.before) {
        if (!counted.contains(unit)) {
            counted.emplace(unit, totals(unit).since(before));
        }
    }
    return balance_of(epoch, next_mep, counted);
}

Balance Ledger::balance_of(const Epoch& epoch, std::uint64_t next_mep, const ByUnit& counted) {
    const auto meps = static_cast<std::int64_t>(epoch.end.value_or(next_mep) - epoch.first);
    Balance found;
    if (!epoch.takes_turns) {
        MepCounts all;
        for (const auto& [unit, count] : counted) {
            all += count;
        }
        return held_against(meps, all);
    }
    const auto builders = static_cast<std::int64_t>(epoch.builders.size());
    for (std::size_t turn = 0; turn < epoch.builders.size(); ++turn) {
        // Equal shares; if `meps` is no multiple, the first builder units take one more.
        const std::int64_t rest = builders - 1 - static_cast<std::int64_t>(turn);
        found +=
            held_against(saturating_sum(meps, rest) / builders, counted.at(epoch.builders[turn]));
    }
    return found;
}

}  // namespace daqloom::protocol
