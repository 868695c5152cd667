// Accounts for the fate of every MEP number of a run, epoch by epoch.
//
// An epoch has the MEP numbers from its first MEP to the first MEP of the next epoch, so a run
// assigns each number once. Builder units take the numbers in turn, each an equal share; or an
// event manager assigns them (DAQPIPE), and only all units together have a share. The counters of
// an epoch are compared with the share: MEPs finished, MEPs granted by units that were then lost,
// and MEPs never begun. A sum above the share means that MEPs were answered twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/named_counters.hpp"

namespace daqloom::protocol {

/// MEPs of a unit, granted and finished.
struct MepCounts {
    std::int64_t finished = 0;
    std::int64_t begun = 0;  ///< granted and not finished

    /// From a unit's counters of the whole run; 0 for a unit that builds nothing.
    static MepCounts of(const NamedCounters& totals);
    /// The difference to an earlier count.
    [[nodiscard]] MepCounts since(const MepCounts& before) const;

    MepCounts& operator+=(const MepCounts& other);
};

/// Fates of a run's MEPs that no counter shows.
struct Balance {
    DAQLOOM_FIELDS(Balance,
                   (std::int64_t, unfinished, "MEPs granted by builder units that were then lost."),
                   (std::int64_t, skipped, "MEPs that no builder unit is known to have granted."),
                   (std::int64_t, twice,
                    "MEPs finished beyond their number: 0, unless MEPs were built twice."))

    Balance& operator+=(const Balance& other);
    friend bool operator==(const Balance&, const Balance&) = default;
};

/// Accounts of one epoch.
struct LedgerEpoch {
    using ByUnit = std::map<UnitIndex, MepCounts>;

    DAQLOOM_FIELDS(LedgerEpoch, (std::uint64_t, first, "First MEP."),
                   (bool, takes_turns, "Whether builder units take the MEPs in turn.", true),
                   (std::vector<UnitIndex>, builders, "Builder units in the order of their turns."),
                   (ByUnit, before, "Counts of the builder units before the epoch."),
                   (std::optional<std::uint64_t>, end, "First MEP of the next epoch, if any."),
                   (ByUnit, counted, "Counts of units that report no more in this epoch."))

    [[nodiscard]] bool is_closed() const { return counted.size() == before.size(); }
};

/// Keeps the accounts of a run.
class Ledger {
  public:
    /// Counts of a unit since the run began.
    using Totals = std::function<MepCounts(UnitIndex)>;

    /// takes_turns: see RunPlan.
    explicit Ledger(bool takes_turns) : takes_turns_(takes_turns) {}

    /// Ends the last epoch before `end`: the next one need not begin there. `takes_turns`: see
    /// RunPlan; for epochs from now on.
    void end(std::uint64_t end, bool takes_turns);

    /// Begins an epoch at `first_mep`. `builders`: its builder units in the order of their turns;
    /// their counts until now belong to earlier epochs.
    void begin(std::uint64_t first_mep, const std::vector<UnitIndex>& builders,
               const Totals& totals);

    /// The balance up to `next_mep`, the first MEP that no unit is known to have answered.
    [[nodiscard]] Balance balance(std::uint64_t next_mep, const Totals& totals) const;
    /// The balance of all epochs except the current one.
    [[nodiscard]] Balance ended(const Totals& totals) const;

    // ---- state, for a snapshot of the run
    [[nodiscard]] const std::vector<LedgerEpoch>& epochs() const { return epochs_; }
    [[nodiscard]] const Balance& closed() const { return closed_; }
    void resume(std::vector<LedgerEpoch> epochs, const Balance& closed) {
        epochs_ = std::move(epochs);
        closed_ = closed;
    }

  private:
    using Epoch = LedgerEpoch;
    using ByUnit = LedgerEpoch::ByUnit;

    [[nodiscard]] static Balance balance_until_now(const Epoch& epoch, std::uint64_t next_mep,
                                                   const Totals& totals);
    [[nodiscard]] static Balance balance_of(const Epoch& epoch, std::uint64_t next_mep,
                                            const ByUnit& counted);

    bool takes_turns_;
    /// Epochs about which a unit may still report. The last of them has no end yet.
    std::vector<Epoch> epochs_;
    Balance closed_;
};

}  // namespace daqloom::protocol
