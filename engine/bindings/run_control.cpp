// The run control, for Python code that connects it to processes, connections and the clock.
#include "protocol/run/run_control.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/counters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
#include "bindings/subjects.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/reports.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;

namespace {

void bind_states(nb::module_& module) {
    bind_report<Transition>(module, "Transition", "An allowed transition of a unit.");
    module.def(
        "transitions", [] { return std::vector(transitions().begin(), transitions().end()); },
        "The allowed transitions of a unit.");
}

void bind_plan(nb::module_& module) {
    bind_record<RunSlots>(
        module, "RunSlots",
        "The slots of the schedule of a run and the units in them; -1: empty. The "
        "lists may differ in length.");
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
    bind_record<Pulse>(module, "UnitPulse", "Activity of a unit.");
    bind_record<Heartbeat>(module, "UnitHeartbeat", "The periodic report of a unit.");
    bind_record<Answer>(module, "UnitAnswer", "The answer of a unit to an order.");
    bind_record<Rejoin>(module, "UnitRejoin",
                        "State of a process that joins again and has kept its node.");
}

void bind_orders(nb::module_& module) {
    using namespace orders;
    bind_record<Configure>(module, "ConfigureOrder", "Order to configure the unit.");
    bind_record<Prepare>(module, "PrepareOrder", "Order to make a new transport for a new epoch.");
    bind_record<Connect>(module, "ConnectOrder", "Order to connect to all members.");
    bind_record<Start>(module, "StartOrder", "Order to start event building.");
    bind_record<Halt>(module, "HaltOrder",
                      "Order to finish all MEPs that need no lost unit, and to close connections.");
    nb::class_<Reset>(module, "ResetOrder", "Order to return to the state after configuring.")
        .def(nb::init<>());
    nb::class_<Exit>(module, "ExitOrder", "Order to exit: the run is over.").def(nb::init<>());
    bind_record<Renew>(module, "RenewOrder", "Renews a unit's lease; it has no answer.");
    bind_report<SendOrder>(module, "SendOrder", "Output: send an order to a unit's process.");
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
    bind_record<TallySnapshot>(module, "TallySnapshot", "State of the sums of a unit's counters.");
    bind_record<LedgerEpoch>(module, "LedgerEpoch", "Accounts of one epoch.");
    bind_record<UnitSnapshot>(module, "UnitSnapshot", "State of a unit in a snapshot of the run.");
    bind_record<RunSnapshot>(module, "RunSnapshot",
                             "State of a run, from which another run control continues it.");
}

/// Checks that the run has a unit. Raises IndexError.
UnitIndex known(const RunControl& run, UnitIndex unit) {
    if (unit.value() >= run.units().size()) {
        throw nb::index_error("the run has no such unit");
    }
    return unit;
}

const Members& known(const RunControl& run, const Members& units) {
    for (const UnitIndex unit : units) {
        known(run, unit);
    }
    return units;
}

/// Wraps an input about one unit, so that an unknown unit raises IndexError.
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
            "resume",
            [](Run& run, base::Time now, const RunSnapshot& snapshot) {
                value_of(run.check(snapshot));
                run.resume(now, snapshot);
            },
            nb::arg("now_s"), nb::arg("snapshot"),
            "Continue the run of another run control from its last snapshot, in place of `launch`. "
            "Raises ValueError for the snapshot of another run.")
        .def("rejoined", of_unit(&Run::rejoined), nb::arg("now_s"), nb::arg("unit"),
             nb::arg("session"), nb::arg("rejoin"),
             "Input: a process that has kept its node joins again. Returns whether it may.")
        .def("snapshot", &Run::snapshot,
             "The state for another run control, to be stored before outputs are carried out.")
        .def_prop_ro("changes", &Run::changes,
                     "Number that grows with each change after which a snapshot has to be stored.")
        .def_prop_ro("reserved_end", &Run::reserved_end,
                     "MEPs before this number may be leased; grows between snapshots.")
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
        .def(
            "reconfigure",
            [](Run& run, base::Time now, const RunPlan& plan, std::uint64_t first_mep) {
                value_of(run.reconfigure(now, plan, first_mep));
            },
            nb::arg("now_s"), nb::arg("plan"), nb::arg("first_mep"),
            "Replace the plan and configure all units anew; the next epoch begins at `first_mep` "
            "or later. Raises ValueError while data may be in flight, or for another number of "
            "units.")
        .def(
            "reschedule",
            [](Run& run, base::Time now, const std::vector<UnitIndex>& readouts,
               const std::vector<UnitIndex>& builders) {
                run.reschedule(now, value_of(run.roles().slots().rearranged(readouts, builders)),
                               "the operator gives another schedule");
            },
            nb::arg("now_s"), nb::arg("readouts"), nb::arg("builders"),
            "Begin the next epoch with the units in these slots. Raises ValueError for other units "
            "than those of the run.")
        .def(
            "exclude",
            [](Run& run, base::Time now, const Members& units, bool sources) {
                value_of(run.exclude(now, known(run, units), sources));
            },
            nb::arg("now_s"), nb::arg("units"), nb::arg("sources"),
            "Leave units out, or only their readout units, until they are included. Raises "
            "ValueError if the others could build nothing.")
        .def(
            "include",
            [](Run& run, base::Time now, const Members& units, bool sources) {
                run.include(now, known(run, units), sources);
            },
            nb::arg("now_s"), nb::arg("units"), nb::arg("sources"),
            "Let excluded units take part again.")
        .def("remark", &Run::remark, nb::arg("now_s"), nb::arg("text"),
             "Logs a step of the operator's control.")
        .def("reset", of_unit(&Run::reset), nb::arg("now_s"), nb::arg("unit"),
             "Bring a unit back for the operator, whatever its state.")
        .def(
            "set_host_down",
            [](Run& run, UnitIndex unit, bool is_down) {
                run.set_host_down(known(run, unit), is_down);
            },
            nb::arg("unit"), nb::arg("is_down"),
            "Input: the host of a unit is down on purpose, or no longer.")
        .def("injected", &Run::injected, nb::arg("now_s"), nb::arg("text"),
             "Logs a fault injected or repaired.")
        .def("warned", &Run::warned, nb::arg("now_s"), nb::arg("text"),
             "Logs a warning about a unit that goes on.")
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
        .def_prop_ro("first_free", &Run::first_free,
                     "The first MEP that no unit has answered or can still answer.")
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

void bind_run(nb::module_& module) {
    bind_states(module);
    bind_plan(module);
    bind_reports(module);
    bind_orders(module);
    bind_views(module);
    bind_control(module);
}

const Subject run_control(bind_run);

}  // namespace

}  // namespace daqloom::bindings
