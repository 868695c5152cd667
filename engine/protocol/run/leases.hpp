// Leases of MEPs, as the run control counts them: they determine where the next epoch begins.
//
// A unit may begin MEPs for the length of its lease without contact to the run control. It counts
// from the time at which it sent the last report that was received (unit_lease.hpp). The run
// control receives that report later, so it declares the unit lost later than the unit stops
// beginning MEPs: no clocks are compared, and message delays cannot reverse the order.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/run_plan.hpp"

namespace daqloom::protocol {

/// The leases of a run.
class Leases {
  public:
    /// Length of a lease in fault timeouts, converted to MEPs at the pace of the run: enough not to
    /// limit a run that becomes faster, and few enough to skip where that is necessary.
    static constexpr std::int64_t leased_timeouts = 4;
    /// The largest number of a MEP: what messages can carry.
    static constexpr std::uint64_t last_mep = (std::uint64_t{1} << 63) - 1;

    explicit Leases(const RunPlan& plan);

    /// The first MEP that no unit is known to have answered.
    [[nodiscard]] std::uint64_t next_mep() const { return next_mep_; }

    /// A member of an epoch that begins.
    struct Member {
        std::uint64_t session = 0;  ///< the number of its connection
        bool reads = true;          ///< it has a readout unit
    };
    void begin(base::Time now, std::uint32_t epoch, std::uint64_t first_mep,
               const std::map<UnitIndex, Member>& members);
    /// MEPs before this one have been answered: no later epoch has them again.
    void answered(std::uint64_t mep_end);
    /// The first MEP that a member of the epoch may not answer.
    [[nodiscard]] std::uint64_t mep_end(UnitIndex unit) const { return units_.at(unit).mep_end; }
    /// Renews the lease of a member that has reported; returns its new `mep_end`.
    std::uint64_t renew(base::Time now, UnitIndex unit);

    // ---- processes that will answer no more
    /// A process has prepared a new epoch: it has reported on the previous one.
    void prepared(UnitIndex unit, std::uint64_t session);
    /// A process last started in the epoch `ended` has sent its final report.
    void last_words(UnitIndex unit, std::uint32_t ended);
    /// The final counters of a process have been read from its memory.
    void read(UnitIndex unit);
    /// These members finish the epoch without the others.
    void left_out(const std::set<UnitIndex>& members);
    /// The first MEP that no unit has answered or can still answer.
    ///
    /// A readout unit that has reported how far it wrote in the previous epoch settles this for all
    /// others too, unless these went on without it: a MEP is built only when all have written it.
    /// Without such a unit, units of unknown progress, which may still run, keep the MEPs that were
    /// leased to them.
    [[nodiscard]] std::uint64_t first_free() const;

  private:
    /// The lease of a member of the last epoch that was started.
    struct Leased {
        Member member;
        std::uint64_t mep_end = 0;  ///< it may have answered MEPs before this one
        bool is_settled = false;    ///< all MEPs that it answered are known
        /// The unit itself has reported them, with the MEPs that it wrote, after its epoch.
        bool has_reported = false;
        /// Other units went on with MEPs of that epoch without it.
        bool was_left_out = false;
    };

    /// The end of a lease that begins at a MEP.
    [[nodiscard]] std::uint64_t end_from(std::uint64_t mep) const;

    RunPlan plan_;
    std::uint64_t next_mep_ = 0;
    std::uint32_t epoch_ = 0;
    std::map<UnitIndex, Leased> units_;
    double pace_hz_ = 0;  ///< recent limit of MEPs per second
    base::Time paced_at_ = base::Time::zero();
    std::uint64_t paced_mep_ = 0;  ///< the next MEP at that time
};

}  // namespace daqloom::protocol
