#include "protocol/run/leases.hpp"

#include <algorithm>
#include <cmath>

#include "protocol/run/accounts/saturating_sum.hpp"

namespace daqloom::protocol {

Leases::Leases(const RunPlan& plan) : plan_(plan) {}

void Leases::begin(base::Time now, std::uint32_t epoch, std::uint64_t first_mep,
                   const std::map<UnitIndex, Member>& members) {
    epoch_ = epoch;
    paced_at_ = now;
    paced_mep_ = first_mep;
    answered(first_mep);
    units_.clear();
    for (const auto& [unit, member] : members) {
        units_[unit] = {.member = member, .mep_end = reserved_from(first_mep)};
    }
}

void Leases::answered(std::uint64_t mep_end) {
    next_mep_ = std::max(next_mep_, std::min(mep_end, last_mep));
}

std::uint64_t Leases::renew(base::Time now, UnitIndex unit) {
    measure_pace(now);
    Lease& leased = units_.at(unit);
    leased.mep_end = std::max(leased.mep_end, reserved_from(next_mep_));
    return leased.mep_end;
}

void Leases::measure_pace(base::Time now) {
    if (paced_at_ && now - *paced_at_ < plan_.heartbeat) {
        return;
    }
    if (paced_at_) {
        const double passed_s = (now - *paced_at_).seconds();
        const double now_hz = static_cast<double>(next_mep_ - paced_mep_) / passed_s;
        // After a stall, reports of the whole stall come at once: that is no pace.
        const double share =
            pace_hz_ > 0 ? std::min(1.0, passed_s / plan_.fault_timeout.seconds()) : 1.0;
        pace_hz_ = now_hz > pace_hz_ ? pace_hz_ + share * (now_hz - pace_hz_)
                                     : std::max(now_hz, pace_hz_ / 2);
    }
    paced_at_ = now;
    paced_mep_ = next_mep_;
}

void Leases::prepared(UnitIndex unit, std::uint64_t session) {
    const auto leased = units_.find(unit);
    if (leased != units_.end() &&
        leased->second.member.session == session) {  // otherwise another process was in that epoch
        leased->second.is_settled = leased->second.has_reported = true;
    }
}

void Leases::last_words(UnitIndex unit, std::uint32_t ended) {
    const auto leased = units_.find(unit);
    if (leased != units_.end() && ended == epoch_) {
        leased->second.is_settled = leased->second.has_reported = true;
    }
}

void Leases::read(UnitIndex unit) {
    if (const auto leased = units_.find(unit); leased != units_.end()) {
        leased->second.is_settled = true;
    }
}

void Leases::left_out(const std::set<UnitIndex>& members) {
    for (auto& [unit, leased] : units_) {
        leased.was_left_out |= !members.contains(unit);
    }
}

std::uint64_t Leases::first_free() const {
    std::uint64_t first = next_mep_;
    for (const auto& [unit, leased] : units_) {
        if (leased.has_reported && !leased.was_left_out && leased.member.reads) {
            return next_mep_;
        }
        if (!leased.is_settled) {
            first = std::max(first, leased.mep_end);
        }
    }
    return first;
}

std::uint64_t Leases::reserved_from(std::uint64_t mep) {
    const std::uint64_t end = end_from(mep);
    if (end > reserved_end_) {
        reserved_end_ = plan_.control_grace > base::Time::zero() ? end_from(end) : end;
    }
    return end;
}

void Leases::write(RunSnapshot& snapshot) const {
    snapshot.leased_epoch = epoch_;
    snapshot.next_mep = next_mep_;
    snapshot.reserved_end = reserved_end_;
    snapshot.pace_hz = pace_hz_;
    for (const auto& [unit, leased] : units_) {
        UnitSnapshot& its = snapshot.units[unit.value()];
        its.is_leased = true;
        its.lease_session = leased.member.session;
        its.reads = leased.member.reads;
        its.is_settled = leased.is_settled;
        its.has_reported = leased.has_reported;
        its.was_left_out = leased.was_left_out;
    }
}

void Leases::resume(const RunSnapshot& snapshot) {
    epoch_ = snapshot.leased_epoch;
    next_mep_ = snapshot.next_mep;
    reserved_end_ = snapshot.reserved_end;
    pace_hz_ = snapshot.pace_hz;
    paced_at_.reset();  // units have built since the snapshot
    for (std::uint32_t number = 0; number < snapshot.units.size(); ++number) {
        if (const UnitSnapshot& its = snapshot.units[number]; its.is_leased) {
            units_[UnitIndex(number)] = {.member = {its.lease_session, its.reads},
                                         .mep_end = reserved_end_,
                                         .is_settled = its.is_settled,
                                         .has_reported = its.has_reported,
                                         .was_left_out = its.was_left_out};
        }
    }
}

void Leases::rejoined(UnitIndex unit, std::uint32_t epoch, std::uint32_t started,
                      std::uint64_t session) {
    const auto leased = units_.find(unit);
    if (leased != units_.end() && (epoch == epoch_ || started == epoch_)) {
        leased->second.member.session = session;
    }
}

std::uint64_t Leases::end_from(std::uint64_t mep) const {
    const double seconds = static_cast<double>(leased_timeouts) * plan_.fault_timeout.seconds() +
                           plan_.control_grace.seconds();
    const double built = seconds * pace_hz_;
    const std::int64_t length = saturating_sum(static_cast<std::int64_t>(plan_.leased_meps),
                                               saturating_whole(std::nearbyint(built)));
    return static_cast<std::uint64_t>(saturating_sum(static_cast<std::int64_t>(mep), length));
}

}  // namespace daqloom::protocol
