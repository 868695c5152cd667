// The enumerations of the engine, for Python. Where a scenario has a word for a value, the value
// has that word as its name, with `_` for `-`.
#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

#include "base/distribution.hpp"
#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/link.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/switch_buffer.hpp"
#include "infiniband/fabric_config.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/run_log.hpp"
#include "protocol/run/states.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/shift_unit.hpp"
#include "systems/node_change.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::bindings {

namespace {

/// A value, the word for it and, where that does not say it all, its meaning.
template <class Value>
struct Word {
    const char* word;
    Value value;
    const char* meaning = nullptr;
};

template <class Value>
void words(nanobind::module_& module, const char* name, const char* meaning,
           std::initializer_list<Word<Value>> words) {
    nanobind::enum_<Value> bound(module, name, meaning);
    for (const Word<Value>& each : words) {
        bound.value(each.word, each.value, each.meaning);
    }
}

/// A value of an enumeration that people and messages know by its name.
template <class Value>
struct Named {
    Value value;
    const char* meaning = nullptr;
};

/// As an enumeration of strings: a value is its name.
template <class Value>
void names(nanobind::module_& module, const char* name, const char* meaning,
           std::initializer_list<Named<Value>> values) {
    nanobind::enum_<Value> bound(module, name, meaning, nanobind::is_str());
    for (const Named<Value>& each : values) {
        const std::string lower(name_of(each.value));
        std::string upper = lower;
        std::ranges::transform(lower, upper.begin(),
                               [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        bound.str_value(upper.c_str(), each.value, lower.c_str(), each.meaning);
    }
    nanobind::delattr(bound, "__str__");  // nanobind's, which says the name of the enumeration too
}

void bind_run_states(nanobind::module_& module) {
    using namespace protocol;
    names<UnitState>(module, "UnitState", "State of a unit, as it reports it.",
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
        {{Standing::absent, "It has no process."},
         {Standing::joining, "Its process is being configured."},
         {Standing::available, "It is or can become a member of an epoch."},
         {Standing::lost, "Its process has to be reset before it can be a member again."}});
    names<RunPhase>(module, "RunPhase", "Phase of a run.",
                    {{RunPhase::waiting, "Waiting for units to join."},
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
    names<About>(module, "About", "What an entry of a run's log is about.",
                 {{About::course, "The run goes on as it was told to."},
                  {About::unit, "Trouble with a unit: it is lost, did not join or cannot write."},
                  {About::fault, "What is broken on purpose, or mended."},
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
    words<DelayDistribution::Kind>(module, "DelayKind", "Distribution of a delay.",
                                   {{"fixed", DelayDistribution::Kind::fixed},
                                    {"exponential", DelayDistribution::Kind::exponential},
                                    {"gaussian", DelayDistribution::Kind::gaussian},
                                    {"uniform", DelayDistribution::Kind::uniform},
                                    {"measured", DelayDistribution::Kind::measured}});
    words<ArrivalsConfig::Kind>(module, "ArrivalKind", "When events arrive.",
                                {{"poisson", ArrivalsConfig::Kind::poisson},
                                 {"deterministic", ArrivalsConfig::Kind::deterministic},
                                 {"lhc", ArrivalsConfig::Kind::lhc},
                                 {"trace", ArrivalsConfig::Kind::trace}});
    words<EventSizeConfig::Kind>(module, "SizeKind", "Distribution of the sizes of events.",
                                 {{"fixed", EventSizeConfig::Kind::fixed},
                                  {"gaussian", EventSizeConfig::Kind::gaussian},
                                  {"gamma", EventSizeConfig::Kind::gamma},
                                  {"poisson", EventSizeConfig::Kind::poisson},
                                  {"histogram", EventSizeConfig::Kind::histogram}});
    words<Assignment>(module, "Assignment", "Which builder unit an event is given to.",
                      {{"round_robin", Assignment::round_robin},
                       {"least_busy", Assignment::least_busy},
                       {"random", Assignment::random}});
    words<BufferModel>(module, "BufferModel", "Which frames the buffer of a switch accepts.",
                       {{"infinite", BufferModel::infinite},
                        {"drop_tail", BufferModel::drop_tail},
                        {"shared_memory", BufferModel::shared_memory},
                        {"voq", BufferModel::voq},
                        {"software", BufferModel::software}});
    words<Scheduling>(module, "Scheduling", "How a port shares its wire among classes.",
                      {{"fifo", Scheduling::fifo},
                       {"strict", Scheduling::strict},
                       {"weighted", Scheduling::weighted}});
    words<systems::NodeChange::What>(module, "NodeChange", "What happens to a node during a run.",
                                     {{"stop", systems::NodeChange::What::stop},
                                      {"kill", systems::NodeChange::What::kill},
                                      {"slow", systems::NodeChange::What::slow}});
    words<infiniband::LinkChange::What>(module, "InfinibandLinkChange",
                                        "What happens to a link of InfiniBand during a run.",
                                        {{"rate", infiniband::LinkChange::What::rate},
                                         {"errors", infiniband::LinkChange::What::errors},
                                         {"dark", infiniband::LinkChange::What::dark},
                                         {"down", infiniband::LinkChange::What::down},
                                         {"up", infiniband::LinkChange::What::up}});
    words<ethernet::LinkChange::What>(module, "LinkChange", "What happens to a link during a run.",
                                      {{"rate", ethernet::LinkChange::What::rate},
                                       {"pace", ethernet::LinkChange::What::pace},
                                       {"hold", ethernet::LinkChange::What::hold},
                                       {"resume", ethernet::LinkChange::What::resume},
                                       {"down", ethernet::LinkChange::What::down},
                                       {"up", ethernet::LinkChange::What::up},
                                       {"errors", ethernet::LinkChange::What::errors}});
    nanobind::enum_<CongestionControl> control(module, "CongestionControl",
                                               "Congestion control of TCP.");
    CongestionControls::each(
        [&](CongestionControl value, const char* name) { control.value(name, value); });
    words<CreditRelease>(
        module, "CreditRelease", "When a packet's buffer becomes free.",
        {{"per_block", CreditRelease::per_block}, {"at_tail", CreditRelease::at_tail}});
    words<InputQueue>(module, "InputQueue", "Which packets of an input may cross.",
                      {{"fifo", InputQueue::fifo}, {"virtual_output", InputQueue::virtual_output}});
    words<CrossbarArbiter>(
        module, "CrossbarArbiter", "How inputs and outputs of a switch find each other.",
        {{"round_robin", CrossbarArbiter::round_robin}, {"islip", CrossbarArbiter::islip}});
    words<PhaseChange>(module, "PhaseChange", "What ends a phase of linear shifting.",
                       {{"count", PhaseChange::by_count}, {"window", PhaseChange::by_time}});
    words<ShiftBarrier>(module, "ShiftBarrier", "How readout units wait for one another.",
                        {{"none", ShiftBarrier::none},
                         {"centralised", ShiftBarrier::centralised},
                         {"tournament", ShiftBarrier::tournament},
                         {"dissemination", ShiftBarrier::dissemination},
                         {"neighbour", ShiftBarrier::neighbour},
                         {"ideal", ShiftBarrier::external}});
    words<Pace>(module, "Pace", "Who says when a readout unit writes.",
                {{"schedule", Pace::schedule}, {"builder", Pace::builder}});
    words<WriteOrder>(module, "WriteOrder", "In which order a builder unit lets units write.",
                      {{"arrival", WriteOrder::arrival}, {"schedule", WriteOrder::schedule}});
    words<ShiftStage>(
        module, "ShiftStage", "What a readout unit does in a phase.",
        {{"entering", ShiftStage::entering, "Held back before sending."},
         {"asking", ShiftStage::asking, "Waiting until the builder unit lets it write."},
         {"sending", ShiftStage::sending, "Sending to the builder unit whose turn it is."},
         {"idle", ShiftStage::idle, "Without a partner: the turn of a dummy."},
         {"in_barrier", ShiftStage::in_barrier, "Waiting for the other units."},
         {"finished", ShiftStage::finished, "Done."}});
    words<Waiting>(module, "Waiting", "What a data thread does without work.",
                   {{"adaptive", Waiting::adaptive},
                    {"blocking", Waiting::blocking},
                    {"spinning", Waiting::spinning}});
    words<Protocol>(
        module, "Protocol", "How events are built.",
        {{"shift", Protocol::shift}, {"daqpipe", Protocol::daqpipe}, {"pull", Protocol::pull}});
    words<WhenFull>(module, "WhenFull", "What a builder unit with a full output buffer does.",
                    {{"discard", WhenFull::discard}, {"wait", WhenFull::wait}});
    words<FragmentSizes>(module, "FragmentSizes", "Distribution of the sizes of fragments.",
                         {{"fixed", FragmentSizes::fixed}, {"poisson", FragmentSizes::poisson}});
    words<SourceKind>(module, "SourceKind", "Where a readout unit's data comes from.",
                      {{"generator", SourceKind::generator},
                       {"replay", SourceKind::replay},
                       {"user", SourceKind::user}});
    words<Content>(module, "Content", "How often a generator fills its fragments.",
                   {{"every", Content::every}, {"once", Content::once}});
    words<SinkKind>(module, "SinkKind", "What becomes of built events.",
                    {{"discard", SinkKind::discard},
                     {"check", SinkKind::check},
                     {"file", SinkKind::file},
                     {"user", SinkKind::user}});
}

const Subject enumerations(bind_enumerations);

}  // namespace

}  // namespace daqloom::bindings
