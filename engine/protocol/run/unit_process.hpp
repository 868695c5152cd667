// The process of a unit, without I/O: inputs are orders of the run control; outputs are calls of
// the unit's node, and reports.
//
// A halt takes time, because the node closes its epoch: the driver calls `on_drain` when the epoch
// may have drained, and at `hurries_at` and `gives_up_at`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/states.hpp"
#include "protocol/run/unit_lease.hpp"

namespace daqloom::protocol {

/// Nodes of units, as UnitProcess calls them. After a call that throws, the driver calls
/// `on_failure`.
class UnitNodes {
  public:
    virtual ~UnitNodes() = default;
    /// Makes new connections for a new epoch; returns the address for the other units.
    virtual std::vector<std::byte> prepare(UnitIndex unit, const orders::Prepare& order) = 0;
    /// Connects to all members; returns those that did not answer.
    virtual std::vector<UnitIndex> connect(UnitIndex /*unit*/, const orders::Connect& /*order*/) {
        return {};
    }
    /// Starts building from this MEP of the run on, within the lease.
    virtual void start(UnitIndex unit, std::uint64_t first_mep, UnitLease::Lease leased) = 0;
    virtual void lease(UnitIndex unit, UnitLease::Lease leased) = 0;
    /// Begins the end of the epoch without the lost units. A second call lists no units: from then
    /// on, the node does not wait for consumers.
    virtual void close(UnitIndex unit, std::span<const UnitIndex> lost) = 0;
    /// The first MEP that the next epoch may take; none: this epoch has not drained. A node with
    /// threads of its own waits for the drain until `wait_until`; at `until` the process gives up.
    virtual std::optional<std::uint64_t> drain(UnitIndex unit, base::Time wait_until,
                                               base::Time until) = 0;
    /// Ends the node. Returns its final counters, unless the run control reads them itself.
    virtual std::optional<NamedCounters> shut(UnitIndex unit) = 0;
    /// Units that the node could not reach in this epoch.
    [[nodiscard]] virtual std::vector<UnitIndex> suspects(UnitIndex unit) const = 0;
    [[nodiscard]] virtual NamedCounters counters(UnitIndex unit) const = 0;
};

/// The state machine of a unit's process. Times are of the unit's own clock; `nodes` is null while
/// the unit has no node. Threads may share it under one lock, which nodes may release in a call.
class UnitProcess {
  public:
    /// Limit on final counters that are kept.
    static constexpr std::size_t most_unconfirmed = 64;

    using Answer = std::optional<reports::Answer>;

    explicit UnitProcess(UnitIndex unit = UnitIndex::none()) : unit_(unit) {}

    /// Carries out an order. After `Configure` and `Reset` the driver makes a new node. Returns no
    /// answer for `Renew`, and for `Halt`, whose answer `on_drain` returns.
    Answer on_order(base::Time now, std::uint64_t number, const Order& order, UnitNodes* nodes);
    /// The answer to `Halt`, once the node has drained or its time limit has passed; none before.
    Answer on_drain(base::Time now, UnitNodes* nodes);
    /// The unit cannot carry out an order: it is in error until a reset.
    reports::Answer on_failure(std::uint64_t order, std::string why);
    /// Reports to send now: the final counters of each node that was shut (once), then `answer` or,
    /// without an answer, a heartbeat with the current counters.
    std::vector<reports::Report> reports(base::Time now, Answer answer, const UnitNodes* nodes);
    /// Final counters that the run control is not known to have received, to send again first over
    /// a new connection.
    [[nodiscard]] std::vector<reports::Report> unconfirmed() const;
    void shut(UnitNodes* nodes);
    /// State for the run control, if the process joins again with its node.
    [[nodiscard]] reports::Rejoin rejoin() const { return {epoch_, started_, state_}; }

    // ---- observers
    [[nodiscard]] UnitState state() const { return state_; }
    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    [[nodiscard]] UnitLease::Lease leased() const { return lease_.leased(); }
    [[nodiscard]] bool is_halting() const { return halting_.has_value(); }
    /// Time from which a halting unit no longer waits for consumers, and time at which it gives up.
    [[nodiscard]] base::Time hurries_at() const { return halting_->hurries_at; }
    [[nodiscard]] base::Time gives_up_at() const { return halting_->gives_up_at; }

  private:
    struct HaltProgress {
        std::uint64_t order = 0;
        base::Time hurries_at;
        base::Time gives_up_at;
        bool hurries = false;
    };
    /// The next state, if the unit may carry out the order.
    [[nodiscard]] base::expected<UnitState> state_after(const Order& order, bool has_node) const;
    void confirmed(std::uint64_t last_report);
    [[nodiscard]] reports::Heartbeat heartbeat(NamedCounters counters,
                                               const UnitNodes* nodes) const;

    UnitIndex unit_;
    UnitState state_ = UnitState::not_ready;
    std::uint32_t epoch_ = 0;
    std::uint32_t started_ = 0;   ///< last epoch that was started
    std::uint64_t next_mep_ = 0;  ///< first MEP not answered when the unit last halted
    std::optional<HaltProgress> halting_;
    UnitLease lease_;
    /// Final counters of nodes that were shut, until the run control confirms that it has stored
    /// them; number 0: not sent yet.
    std::deque<reports::Heartbeat> final_counters_;
};

}  // namespace daqloom::protocol
