// The run control, for Python, which connects it to processes, connections and the clock.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/counters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
#include "bindings/subjects.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/run_control.hpp"
#include "protocol/run/unit_lease.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;

namespace {

nb::bytes as_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

void bind_states(nb::module_& module) {
    module.def(
        "next_state", [](UnitState state, UnitStep step) { return value_of(after(state, step)); },
        nb::arg("state"), nb::arg("step"),
        "The next state of a unit. Raises ValueError, with one sentence, where that is not "
        "allowed.");
    module.def(
        "transitions",
        [] {
            std::vector<std::tuple<UnitState, UnitStep, UnitState>> all;
            for (const Transition& each : transitions()) {
                all.emplace_back(each.from, each.step, each.to);
            }
            return all;
        },
        "The allowed transitions of a unit: state, step, next state.");
}

void bind_plan(nb::module_& module) {
    bind_record<RunSlots>(
        module, "RunSlots",
        "The slots of the schedule of a run and the units in them; -1: empty. The "
        "lists may differ in length.");
    bind_record<Moved>(module, "Moved", "A unit whose readout unit or builder unit has moved.");
    bind_record<RunPlan>(module, "RunPlan", "Plan of a run control: its parameters at the start.")
        .def(
            "is_viable",
            [](const RunPlan& self, const Members& available) {
                return Roles(self).among(available).is_viable();
            },
            nb::arg("available"), "Whether these units can build events.");
}

void bind_reports(nb::module_& module) {
    using namespace reports;
    nb::class_<Pulse>(module, "UnitPulse", "Activity of a unit.")
        .def(
            "__init__",
            [](Pulse* self, std::uint32_t epoch, UnitState state,
               std::optional<std::uint64_t> beats, std::optional<std::uint64_t> steps, bool waits,
               std::uint64_t next_mep, std::vector<UnitIndex> suspects, std::string failure) {
                new (self) Pulse{epoch,
                                 state,
                                 beats,
                                 steps,
                                 waits,
                                 next_mep,
                                 std::move(suspects),
                                 std::move(failure)};
            },
            nb::kw_only(), nb::arg("epoch"), nb::arg("state"), nb::arg("beats"), nb::arg("steps"),
            nb::arg("waits"), nb::arg("next_mep"), nb::arg("suspects"), nb::arg("failure"));
    nb::class_<Heartbeat>(module, "UnitHeartbeat", "The periodic report of a unit.")
        .def(
            "__init__",
            [](Heartbeat* self, std::uint64_t number, const Pulse& pulse,
               std::optional<std::uint32_t> ended, const Counters& counted) {
                new (self) Heartbeat{number, pulse, ended, counted};
            },
            nb::kw_only(), nb::arg("number"), nb::arg("pulse"), nb::arg("ended").none(),
            nb::arg("counted"));
    nb::class_<Answer>(module, "UnitAnswer", "The answer of a unit to an order.")
        .def(
            "__init__",
            [](Answer* self, std::uint64_t number, std::uint64_t order, UnitState state,
               std::string failure, const nb::bytes& address, std::vector<UnitIndex> missing,
               std::uint64_t next_mep, const Counters& counted) {
                new (self) Answer{number,
                                  order,
                                  state,
                                  std::move(failure),
                                  std::string(address.c_str(), address.size()),
                                  std::move(missing),
                                  next_mep,
                                  counted};
            },
            nb::kw_only(), nb::arg("number"), nb::arg("order"), nb::arg("state"),
            nb::arg("failure"), nb::arg("address"), nb::arg("missing"), nb::arg("next_mep"),
            nb::arg("counted"));
}

void bind_orders(nb::module_& module) {
    using namespace orders;
    bind_report<Configure>(module, "ConfigureOrder", "Order to configure the unit.");
    bind_report<Prepare>(module, "PrepareOrder", "Order to make a new transport for a new epoch.");
    nb::class_<Connect>(module, "ConnectOrder", "Order to connect to all members.")
        .def_prop_ro(
            "addresses",
            [](const Connect& self) {
                std::vector<std::pair<UnitIndex, nb::bytes>> all;
                for (const Member& member : self.members) {
                    all.emplace_back(member.unit, as_bytes(member.address));
                }
                return all;
            },
            "Address of each member.")
        .def_ro("timeout_s", &Connect::timeout, "Timeout of the whole order.");
    bind_report<Start>(module, "StartOrder", "Order to start event building.");
    bind_report<Halt>(module, "HaltOrder",
                      "Order to finish all MEPs that need no lost unit, and to close connections.");
    nb::class_<Reset>(module, "ResetOrder", "Order to return to the state after configuring.");
    nb::class_<Exit>(module, "ExitOrder", "Order to exit: the run is over.");
    bind_report<Renew>(module, "RenewOrder", "Renews a unit's lease; it has no answer.");
    nb::class_<SendOrder>(module, "SendOrder", "Output: send an order to a unit's process.")
        .def_ro("unit", &SendOrder::unit, "Unit of the process.")
        .def_ro("session", &SendOrder::session, "Number of its connection.")
        .def_ro("number", &SendOrder::number,
                "Number that the answer repeats; 0: no answer expected.")
        .def_prop_ro(
            "order", [](const SendOrder& self) { return self.order; }, "The order.");
    bind_report<LaunchProcess>(module, "LaunchProcess", "Output: start a process for a unit.");
    bind_report<KillProcess>(module, "KillProcess",
                             "Output: end a unit's process, whatever its state.");
    bind_report<DropConnection>(module, "DropConnection",
                                "Output: close the connection to a unit's process.");
}

void bind_views(nb::module_& module) {
    nb::class_<Tally>(module, "Tally",
                      "Sums a unit's counters over all processes that the unit has had.")
        .def("__init__", [](Tally* self) { new (self) Tally(gauges()); })
        .def_prop_ro(
            "totals", [](const Tally& self) { return self.totals(); }, "The sums until now.")
        .def("begins_anew", &Tally::begins_anew, nb::arg("counters"),
             "Whether a reading is from another process, or from the same after a reset.")
        .def("read", &Tally::read, nb::arg("counters"),
             "Adds a new reading; a counter that has decreased was restarted at 0.");
    bind_report<UnitView>(module, "UnitView", "State of a unit in the run control.");
    bind_report<RunEvent>(module, "RunEvent", "An entry of a run's log.")
        .def_prop_ro("is_trouble", &RunEvent::is_trouble,
                     "Whether the entry reports trouble with a unit or with the run.");
    bind_record<Balance>(module, "Balance", "Fates of a run's MEPs that are in no counter.");
}

/// Checks that the run has a unit. Raises IndexError.
UnitIndex known(const RunControl& run, UnitIndex unit) {
    if (unit.value() >= run.units().size()) {
        throw nb::index_error("the run has no such unit");
    }
    return unit;
}

/// An input about a unit of the run.
template <class Result, class... More>
auto of_unit(Result (RunControl::*input)(base::Time, UnitIndex, More...)) {
    return [input](RunControl& run, base::Time now, UnitIndex unit, More... more) {
        return (run.*input)(now, known(run, unit), more...);
    };
}

std::vector<RunEvent> events_from(const RunControl& run, std::size_t first) {
    const std::vector<RunEvent>& all = run.events();
    return {all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())), all.end()};
}

nb::typed<nb::dict, std::string, std::uint64_t> counts(const RunControl& run) {
    nb::typed<nb::dict, std::string, std::uint64_t> all;
    RunCounts::each(
        [&](const char* name, auto member, const char*) { all[name] = run.counts().*member; });
    return all;
}

void bind_control(nb::module_& module) {
    using Run = RunControl;
    nb::class_<Run>(module, "RunControl",
                    "Run control: the members of a run and their next orders. Each input has the "
                    "time `now_s`, which begins at 0 with the run control.")
        .def(
            "__init__", [](Run* self, const RunPlan& plan) { new (self) Run(plan, gauges()); },
            nb::arg("plan"))
        .def("launch", &Run::launch, nb::arg("now_s"),
             "Start all processes, or await those of a run whose units are started by hand.")
        .def(
            "is_free", [](const Run& run, UnitIndex unit) { return run.is_free(known(run, unit)); },
            nb::arg("unit"),
            "Whether a process may join as this unit, which no other process in use has.")
        .def("joined", of_unit(&Run::joined), nb::arg("now_s"), nb::arg("unit"), nb::arg("session"),
             "Input: a process has joined as a unit that `is_free`.")
        .def("reported", of_unit(&Run::reported), nb::arg("now_s"), nb::arg("unit"),
             nb::arg("session"), nb::arg("report"),
             "Input: a report of a unit. Returns the reason of a refusal, or None.")
        .def(
            "counted",
            [](Run& run, UnitIndex unit, const Counters& counters) {
                run.counted(known(run, unit), counters);
            },
            nb::arg("unit"), nb::arg("counters"),
            "Input: the last counters of a process, read outside of its reports.")
        .def("left", of_unit(&Run::left), nb::arg("now_s"), nb::arg("unit"), nb::arg("session"),
             "Input: the connection of a unit has ended.")
        .def("exited", of_unit(&Run::exited), nb::arg("now_s"), nb::arg("unit"), nb::arg("how"),
             "Input: a unit's process started by the run control has ended: `how`, such as \"exit "
             "code 1\".")
        .def("want", &Run::want, nb::arg("now_s"), nb::arg("goal"),
             "Input: the goal set by the operator.")
        .def("reset", of_unit(&Run::reset), nb::arg("now_s"), nb::arg("unit"),
             "Bring a unit back for the operator, whatever its state.")
        .def(
            "hold", [](Run& run, UnitIndex unit, bool held) { run.hold(known(run, unit), held); },
            nb::arg("unit"), nb::arg("held"),
            "Input: the host of a unit is down on purpose, or no longer.")
        .def("injected", &Run::injected, nb::arg("now_s"), nb::arg("text"),
             "Logs a fault injected or repaired.")
        .def("tick", &Run::tick, nb::arg("now_s"),
             "Input: time has passed; to be called a few times per heartbeat.")
        .def("take", &Run::take, "The outputs since the last call, in order.")
        .def_prop_ro("plan", &Run::plan, "Plan of the run.")
        .def_prop_ro("units", &Run::units, "All units, by number.")
        .def(
            "unit",
            [](const Run& run, UnitIndex unit) -> const UnitView& {
                return run.unit(known(run, unit));
            },
            nb::arg("number"), nb::rv_policy::reference_internal, "State of one unit.")
        .def_prop_ro("phase", &Run::phase, "Phase of the run.")
        .def_prop_ro("goal", &Run::goal, "Goal set by the operator.")
        .def_prop_ro("epoch", &Run::epoch, "Number of the last epoch.")
        .def_prop_ro("first_mep", &Run::first_mep,
                     "The first MEP of the last epoch that was started or, once that has halted, "
                     "of the next one.")
        .def_prop_ro("next_mep", &Run::next_mep,
                     "The first MEP not answered by a builder unit, as far as they have "
                     "reported.")
        .def_prop_ro("members", &Run::members, "Units of the epoch.")
        .def_prop_ro("failure", &Run::failure, "Cause of the error of the run, in one sentence.")
        .def_prop_ro("counts", &counts, "Counts over the whole run.")
        .def_prop_ro(
            "events", [](const Run& run) { return events_from(run, 0); }, "The log.")
        .def("events_from", &events_from, nb::arg("first"), "The log from an entry on.")
        .def("balance", &Run::balance, "Fates of the run's MEPs that are in no counter.")
        .def("balance_of_ended", &Run::balance_of_ended,
             "Balance of the MEPs of ended epochs, those that another has followed.");
}

void bind_lease(nb::module_& module) {
    nb::class_<UnitLease>(module, "UnitLease",
                          "The lease of one unit, whose threads call it under Python's lock. Times "
                          "are those of the unit's own clock.")
        .def(nb::init<>())
        .def("set_length", &UnitLease::set_length, nb::arg("length_s"),
             "Time for which the unit may begin MEPs after a report that was received.")
        .def("sending", &UnitLease::sending, nb::arg("now_s"),
             "Notes that a report is about to be sent; returns its number.")
        .def("begin", &UnitLease::begin, nb::arg("epoch"), "Begins a new epoch without a lease.")
        .def(
            "renew",
            [](UnitLease& self, std::uint32_t epoch, std::uint64_t report, std::uint64_t mep_end) {
                const UnitLease::Leased leased = self.renew(epoch, report, mep_end);
                return std::pair(leased.mep_end, leased.until);
            },
            nb::arg("epoch"), nb::arg("report"), nb::arg("mep_end"),
            "The new lease once the run control has received a report: the first MEP that may not "
            "be answered, and until when it holds (s).");
}

void bind_run(nb::module_& module) {
    bind_states(module);
    bind_plan(module);
    bind_reports(module);
    bind_orders(module);
    bind_views(module);
    bind_control(module);
    bind_lease(module);
}

const Subject run_control(bind_run);

}  // namespace

}  // namespace daqloom::bindings
