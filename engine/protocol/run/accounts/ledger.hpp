// Accounts for the fate of every MEP number of a run, epoch by epoch.
//
// A run assigns each number once: an epoch has those from its first MEP to that of the next epoch.
// Builder units share them in turn; in DAQPIPE the event manager assigns them, and only all units
// together have a share. The counters of an epoch are compared with that share: MEPs finished, MEPs
// granted to units that were lost, and MEPs never begun. A sum above the share means that MEPs were
// answered twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/named_counters.hpp"

namespace daqloom::protocol {

/// MEPs of a unit, granted and finished.
struct MepsCounted {
    std::int64_t finished = 0;
    std::int64_t begun = 0;  ///< granted and not finished

    /// From the counters of the whole run; a unit that builds nothing has none.
    static MepsCounted of(const NamedCounters& totals);
    /// The difference to an earlier count.
    [[nodiscard]] MepsCounted since(const MepsCounted& before) const;

    MepsCounted& operator+=(const MepsCounted& other);
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

/// Keeps the accounts of a run.
class Ledger {
  public:
    /// Counts of a unit since the run began.
    using Totals = std::function<MepsCounted(UnitIndex)>;

    /// takes_turns: see RunPlan.
    explicit Ledger(bool takes_turns) : takes_turns_(takes_turns) {}

    /// Begins an epoch with this MEP. Counts until now of its builder units, which are listed in
    /// the order of their turns, belong to earlier epochs.
    void begin(std::uint64_t first_mep, const std::vector<UnitIndex>& builders,
               const Totals& totals);

    /// The balance up to a MEP, the first that no unit is known to have answered.
    [[nodiscard]] Balance balance(std::uint64_t next_mep, const Totals& totals) const;
    /// The balance of the epochs that another has followed.
    [[nodiscard]] Balance ended(const Totals& totals) const;

  private:
    using ByUnit = std::map<UnitIndex, MepsCounted>;

    struct Epoch {
        std::uint64_t first = 0;
        std::vector<UnitIndex> builders;
        ByUnit before;
        std::optional<std::uint64_t> end = std::nullopt;
        ByUnit counted = {};  ///< counts of units that report no more in this epoch

        [[nodiscard]] bool is_closed() const { return counted.size() == before.size(); }
    };

    [[nodiscard]] Balance balance_until_now(const Epoch& epoch, std::uint64_t next_mep,
                                            const Totals& totals) const;
    [[nodiscard]] Balance balance_of(const Epoch& epoch, std::uint64_t next_mep,
                                     const ByUnit& counted) const;

    bool takes_turns_;
    /// Epochs of which a unit may still report more; the last one has no end yet.
    std::vector<Epoch> epochs_;
    Balance closed_;
};

}  // namespace daqloom::protocol
