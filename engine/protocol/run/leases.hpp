// Leases of MEPs in the run control, which determine the first MEP of the next epoch.
//
// A unit may begin MEPs for the length of its lease without contact to the run control. The lease
// counts from the time at which the unit sent its last report that was received (unit_lease.hpp).
// The run control receives this report later, so it declares the unit lost after the unit has
// stopped beginning MEPs. This order needs no comparison of clocks and holds for any message delay.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/run_snapshot.hpp"
#include "protocol/run/run_plan.hpp"

namespace daqloom::protocol {

/// The leases of a run.
class Leases {
  public:
    /// Length of a lease in fault timeouts, converted to MEPs at the pace of the run: long enough
    /// not to limit a run that becomes faster, short enough that few MEPs are skipped after a loss.
    static constexpr std::int64_t leased_timeouts = 4;
    /// The largest number of a MEP: what messages can carry.
    static constexpr std::uint64_t last_mep = (std::uint64_t{1} << 63) - 1;

    explicit Leases(const RunPlan& plan);
    /// Replaces the plan, for leases from now on.
    void follow(const RunPlan& plan) { plan_ = plan; }

    /// The first MEP that no unit is known to have answered.
    [[nodiscard]] std::uint64_t next_mep() const { return next_mep_; }

    /// MEPs before this number may be leased. It grows in steps of a lease, so that a snapshot of
    /// the run holds for many renewals.
    [[nodiscard]] std::uint64_t reserved_end() const { return reserved_end_; }

    /// A member of an epoch that begins.
    struct Member {
        std::uint64_t session = 0;  ///< the number of its connection
        bool reads = true;          ///< it has a readout unit
    };
    void begin(base::Time now, std::uint32_t epoch, std::uint64_t first_mep,
               const std::map<UnitIndex, Member>& members);
    /// Records that MEPs before `mep_end` have been answered, so that no later epoch repeats them.
    void answered(std::uint64_t mep_end);
    /// The first MEP that a member of the epoch may not answer.
    [[nodiscard]] std::uint64_t mep_end(UnitIndex unit) const { return units_.at(unit).mep_end; }
    [[nodiscard]] bool is_leased(UnitIndex unit, std::uint32_t epoch) const {
        return epoch == epoch_ && units_.contains(unit);
    }
    /// Renews the lease of a member that has reported; returns its new `mep_end`.
    std::uint64_t renew(base::Time now, UnitIndex unit);

    // ---- processes that will answer no more
    /// A process has prepared a new epoch, and has thus reported its MEPs of the previous one.
    void prepared(UnitIndex unit, std::uint64_t session);
    /// A process last started in the epoch `ended` has sent its final report.
    void last_words(UnitIndex unit, std::uint32_t ended);
    /// The final counters of a process have been read from its memory.
    void read(UnitIndex unit);
    /// These members finish the epoch; all other units are left out.
    void left_out(const std::set<UnitIndex>& members);
    /// The first MEP that no unit has answered or can still answer.
    ///
    /// A MEP is built only when all readout units have written it. So if one readout unit has
    /// reported how far it wrote in the previous epoch, this settles it for all units, unless other
    /// units went on without this one. Otherwise the MEPs that are leased to units of unknown
    /// progress are not free, because these units may still run.
    [[nodiscard]] std::uint64_t first_free() const;

    // ---- a run control that replaces another one
    void write(RunSnapshot& snapshot) const;
    /// Continues from a snapshot: each member may have answered all reserved MEPs.
    void resume(const RunSnapshot& snapshot);
    /// A unit's process has another connection. It was in the epoch of the leases if that is its
    /// `epoch` or the last one that it `started`: the order to start may have been lost.
    void rejoined(UnitIndex unit, std::uint32_t epoch, std::uint32_t started,
                  std::uint64_t session);

  private:
    /// The lease of a member of the last epoch that was started.
    struct Lease {
        Member member;
        std::uint64_t mep_end = 0;  ///< it may have answered MEPs before this one
        bool is_settled = false;    ///< all MEPs that it answered are known
        /// The unit has reported, after its epoch, the MEPs that it answered and wrote.
        bool has_reported = false;
        /// Other units went on with MEPs of this epoch without this unit.
        bool was_left_out = false;
    };

    /// Measures the pace once a heartbeat.
    void measure_pace(base::Time now);
    /// The end of a lease that begins at a MEP.
    [[nodiscard]] std::uint64_t end_from(std::uint64_t mep) const;
    /// Reserves the MEPs of such a lease and, if other run controls may follow, of the next one.
    std::uint64_t reserved_from(std::uint64_t mep);

    RunPlan plan_;
    std::uint64_t next_mep_ = 0;
    std::uint64_t reserved_end_ = 0;
    std::uint32_t epoch_ = 0;
    std::map<UnitIndex, Lease> units_;
    double pace_hz_ = 0;  ///< recent limit of MEPs per second
    std::optional<base::Time> paced_at_;
    std::uint64_t paced_mep_ = 0;  ///< the next MEP at that time
};

}  // namespace daqloom::protocol
