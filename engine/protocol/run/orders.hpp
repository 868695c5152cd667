// The outputs of the run control: orders to units, and actions on their processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/roles.hpp"

namespace daqloom::protocol {

namespace orders {

/// Order to configure the unit. The configuration of the system does not pass through the run
/// control.
struct Configure {
    DAQLOOM_FIELDS(Configure, (UnitIndex, unit, "Number of the unit."),
                   (std::uint32_t, units, "Number of units of the run."),
                   (base::Time, heartbeat, "Time from report to report."),
                   (base::Time, lease,
                    "Time after a received report during which the unit may begin MEPs."),
                   (base::Time, grace,
                    "Time after the lease for which the unit goes on if no unit reaches the run "
                    "control."))
};

/// Order to make a new transport for a new epoch.
struct Prepare {
    DAQLOOM_FIELDS(Prepare, (std::uint32_t, epoch, "Number of the new epoch."),
                   (std::vector<UnitIndex>, members, "Members in ascending order."),
                   (std::vector<RoleHolders>, moved,
                    "Units whose readout unit or builder unit another unit holds."),
                   (std::vector<UnitIndex>, readouts,
                    "Unit whose readout unit is in each slot of another schedule than the "
                    "configured one, or none; empty: the configured schedule."),
                   (std::vector<UnitIndex>, builders,
                    "Unit whose builder unit is in each slot of another schedule, or none."))
    RunSlots slots = {};  ///< slots of the schedule, for units without a configuration of their own
};

/// A unit and the address that it has reported.
struct Member {
    UnitIndex unit{};
    std::vector<std::byte> address;  ///< only units interpret it
};

/// Order to connect to all members.
struct Connect {
    DAQLOOM_FIELDS(Connect, (std::vector<Member>, addresses, "Address of each member."),
                   (base::Time, timeout, "Time limit of the whole order."))
};

/// Order to start event building.
struct Start {
    DAQLOOM_FIELDS(Start, (std::uint64_t, first_mep, "The MEP to begin with."),
                   (std::uint64_t, mep_end, "MEPs before this number may be answered."),
                   (std::uint64_t, last_report, "Number of the unit's last report."))
};

/// Order to finish all work that needs no lost unit, and to close the connections.
struct Halt {
    DAQLOOM_FIELDS(Halt, (std::vector<UnitIndex>, lost, "All units that are no members."),
                   (base::Time, timeout, "Time limit for the drain."))
};

/// Order to return to the state after configuring.
struct Reset {};

/// Order to exit: the run is over.
struct Exit {};

/// Renews a unit's lease after a report; it has no answer.
struct Renew {
    DAQLOOM_FIELDS(Renew, (std::uint32_t, epoch, "Epoch of the unit."),
                   (std::uint64_t, mep_end, "MEPs before this number may be answered."),
                   (std::uint64_t, last_report,
                    "Number of the unit's last report, from which the lease counts."),
                   (std::uint64_t, beat, "Beats of the run control, which it counts up."))
};

}  // namespace orders

using Order = std::variant<orders::Configure, orders::Prepare, orders::Connect, orders::Start,
                           orders::Halt, orders::Reset, orders::Exit, orders::Renew>;

[[nodiscard]] constexpr std::string_view name_of(const Order& order) {
    constexpr std::string_view names[] = {"configure", "prepare", "connect", "start",
                                          "halt",      "reset",   "exit",    "renew"};
    static_assert(std::size(names) == std::variant_size_v<Order>);
    return names[order.index()];
}

/// An order to a unit's process.
struct SendOrder {
    DAQLOOM_FIELDS(SendOrder, (UnitIndex, unit, "Unit of the process."),
                   (std::uint64_t, session, "Number of the connection to the process."),
                   (std::uint64_t, number,
                    "Number that the answer repeats; 0: no answer expected."),
                   (Order, order, "Order to the process."))
};

/// A process has to be started for a unit.
struct LaunchProcess {
    DAQLOOM_FIELDS(LaunchProcess, (UnitIndex, unit, "Unit whose process is started."))
};

/// A unit's process has to end, whatever it does.
struct KillProcess {
    DAQLOOM_FIELDS(KillProcess, (UnitIndex, unit, "Unit whose process is ended."))
};

/// The connection to a unit's process has to be closed.
struct DropConnection {
    DAQLOOM_FIELDS(DropConnection, (UnitIndex, unit, "Unit whose process is disconnected."),
                   (std::uint64_t, session, "Number of the connection."))
};

using RunOutput = std::variant<SendOrder, LaunchProcess, KillProcess, DropConnection>;

}  // namespace daqloom::protocol
