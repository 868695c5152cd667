// The enumerations of the engine, for Python. If a scenario has a word for a value, this word is
// the value's name in Python, with `_` for `-`.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/distribution.hpp"
#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/link.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/switch_buffer.hpp"
#include "hosts/node_change.hpp"
#include "infiniband/fabric_config.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/run_log.hpp"
#include "protocol/run/states.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/shift_unit.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::bindings {

namespace {

/// The name of an enumerator, taken from the compiler's text; empty after the last enumerator.
template <auto value>
constexpr std::string_view enumerator() {
    std::string_view text = __PRETTY_FUNCTION__;  // "… value = daqloom::Kind::fixed; …]"
    text.remove_prefix(text.find("value = ") + 8);
    text = text.substr(0, text.find_first_of(";]"));
    return text.starts_with('(') ? "" : text.substr(text.rfind(':') + 1);
}

/// Limit on the values of an enumeration.
constexpr std::size_t kMostValues = 16;

struct Word {
    const char* word = nullptr;  ///< replaces the name in C++
    const char* meaning = nullptr;
};

/// Binds an enumeration. The values have their C++ names as words, unless `words` has another.
template <class Value>
void words(nanobind::module_& module, const char* name, const char* meaning,
           std::map<Value, Word> words = {}) {
    static_assert(enumerator<static_cast<Value>(kMostValues)>().empty());
    nanobind::enum_<Value> bound(module, name, meaning);
    const auto add = [&](Value value, std::string_view own) {
        if (!own.empty()) {
            const Word& its = words[value];
            bound.value(its.word ? its.word : std::string(own).c_str(), value, its.meaning);
        }
    };
    [&]<std::size_t... place>(std::index_sequence<place...>) {
        (add(static_cast<Value>(place), enumerator<static_cast<Value>(place)>()), ...);
    }(std::make_index_sequence<kMostValues>());
}

/// A value of an enumeration that users and messages refer to by name.
template <class Value>
struct Entry {
    Value value;
    const char* meaning = nullptr;
};

/// Binds an enumeration whose values are strings: their names.
template <class Value>
void names(nanobind::module_& module, const char* name, const char* meaning,
           std::initializer_list<Entry<Value>> values) {
    nanobind::enum_<Value> bound(module, name, meaning, nanobind::is_str());
    for (const Entry<Value>& each : values) {
        const std::string lower(name_of(each.value));
        std::string upper = lower;
        std::ranges::transform(lower, upper.begin(),
                               [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        bound.str_value(upper.c_str(), each.value, lower.c_str(), each.meaning);
    }
    nanobind::delattr(bound, "__str__");  // of nanobind: includes the name of the enumeration
}

void bind_run_states(nanobind::module_& module) {
    using namespace protocol;
    names<UnitState>(module, "UnitState", "State of a unit, as reported by the unit.",
                     {{UnitState::not_ready, "The unit has no connections to others."},
                      {UnitState::ready, "Connected to the other members of its epoch."},
                      {UnitState::running, "Reading out and building."},
                      {UnitState::error, "Failed, and waiting for a reset."}});
    names<UnitStep>(module, "UnitStep", "Transition of a unit.",
                    {{UnitStep::connected},
                     {UnitStep::started},
                     {UnitStep::halted},
                     {UnitStep::failed},
                     {UnitStep::reset}});
    names<Standing>(
        module, "Standing", "Standing of a unit with the run control.",
        {{Standing::absent, "The unit has no process."},
         {Standing::joining, "The process of the unit is being configured."},
         {Standing::available, "The unit is or can become a member of an epoch."},
         {Standing::lost, "The process has to be reset before the unit can be a member again."}});
    names<RunPhase>(module, "RunPhase", "Phase of a run.",
                    {{RunPhase::waiting, "Waiting for units to join."},
                     {RunPhase::attaching,
                      "The run control replaces another one and waits for units to join again."},
                     {RunPhase::preparing},
                     {RunPhase::connecting},
                     {RunPhase::ready},
                     {RunPhase::starting},
                     {RunPhase::running},
                     {RunPhase::halting},
                     {RunPhase::error,
                      "Too few units are left, or regrouping did not help: the operator has to "
                      "act."},
                     {RunPhase::ending},
                     {RunPhase::ended}});
    names<RunGoal>(module, "RunGoal", "Goal that the operator sets for a run.",
                   {{RunGoal::idle}, {RunGoal::ready}, {RunGoal::running}, {RunGoal::ended}});
    names<About>(module, "About", "Subject of an entry of a run's log.",
                 {{About::course, "Normal course of the run."},
                  {About::unit, "Trouble with a unit: it is lost, did not join or cannot write."},
                  {About::fault, "A fault injected or repaired."},
                  {About::failure, "The whole run fails."}});
    names<reports::Refusal>(
        module, "ReportRefusal", "Why a report of a unit is refused; the run goes on.",
        {{reports::Refusal::epoch, "A report of an epoch other than its unit's."},
         {reports::Refusal::unasked, "An answer to an order that was never given."},
         {reports::Refusal::session, "A report of a process that another has replaced."}});
}

void bind_enumerations(nanobind::module_& module) {
    bind_run_states(module);
    using namespace base;
    using namespace ethernet;
    using namespace infiniband;
    using namespace live;
    using namespace protocol;
    using namespace transport;
    words<DelayDistribution::Kind>(module, "DelayKind", "Distribution of a delay.");
    words<ArrivalsConfig::Kind>(module, "ArrivalKind", "Arrival process of events.");
    words<EventSizeConfig::Kind>(module, "SizeKind", "Distribution of the sizes of events.");
    words<Assignment>(module, "Assignment", "Assignment of events to builder units.");
    words<BufferModel>(module, "BufferModel", "Admission of frames to the buffer of a switch.");
    words<Scheduling>(module, "Scheduling", "Sharing of the wire of a port among classes.");
    words<hosts::NodeChange::What>(module, "NodeChangeKind",
                                   "Kind of change of a node during a run.");
    words<infiniband::LinkChange::What>(module, "InfinibandLinkChangeKind",
                                        "Kind of change of an InfiniBand link during a run.");
    words<ethernet::LinkChange::What>(module, "LinkChangeKind",
                                      "Kind of change of a link during a run.");
    words<CongestionControl>(module, "CongestionControl", "Congestion control of TCP.",
                             {{CongestionControl::static_window, {"static"}}});
    words<CreditRelease>(module, "CreditRelease", "Time at which a packet's buffer becomes free.");
    words<InputQueue>(module, "InputQueue", "Packets of an input that may cross the switch.");
    words<CrossbarArbiter>(module, "CrossbarArbiter",
                           "Matching of inputs and outputs of a switch.");
    words<PhaseChange>(module, "PhaseChange", "End condition of a phase of linear shifting.",
                       {{PhaseChange::by_count, {"count"}}, {PhaseChange::by_time, {"window"}}});
    words<ShiftBarrier>(module, "ShiftBarrier", "Synchronisation of readout units.",
                        {{ShiftBarrier::external, {"ideal"}}});
    words<Pace>(module, "Pace", "Controller of the writes of a readout unit.");
    words<WriteOrder>(module, "WriteOrder", "Order in which a builder unit lets units write.");
    words<ShiftStage>(
        module, "ShiftStage", "Activity of a readout unit in a phase.",
        {{ShiftStage::entering, {.meaning = "Held back before sending."}},
         {ShiftStage::asking, {.meaning = "Waiting until the builder unit lets it write."}},
         {ShiftStage::sending, {.meaning = "Sending to the builder unit whose turn it is."}},
         {ShiftStage::idle, {.meaning = "Without a partner: the turn of a dummy."}},
         {ShiftStage::in_barrier, {.meaning = "Waiting for the other units."}},
         {ShiftStage::finished, {.meaning = "Done."}}});
    words<Waiting>(module, "Waiting", "Behaviour of a data thread without work.");
    words<Protocol>(module, "Protocol", "Protocol of event building.");
    words<WhenFull>(module, "WhenFull", "Behaviour of a builder unit with a full output buffer.");
    words<FragmentSizes>(module, "FragmentSizes", "Distribution of the sizes of fragments.");
    words<SourceKind>(module, "SourceKind", "Where a readout unit's data comes from.");
    words<Content>(module, "Content", "Filling of fragments by a generator.");
    words<Consumers>(module, "Consumers", "Processes that may consume a unit's output.");
    words<SinkKind>(module, "SinkKind", "Destination of built events.");
}

const Subject enumerations(bind_enumerations);

}  // namespace

}  // namespace daqloom::bindings
