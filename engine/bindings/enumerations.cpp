// The enumerations of the engine, for Python. Where a scenario has a word for a value, the value
// has that word as its name, with `_` for `-`.
#include "base/distribution.hpp"
#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/link_change.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/switch_buffer.hpp"
#include "infiniband/fabric_config.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/shift_unit.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;

namespace {

void bind_of_racks(nb::module_& module) {
    using ethernet::BufferModel;
    using ethernet::LinkChange;
    using ethernet::Scheduling;
    using protocol::ArrivalsConfig;
    using protocol::Assignment;
    using protocol::EventSizeConfig;
    using transport::CongestionControl;
    nb::enum_<ArrivalsConfig::Kind>(module, "ArrivalKind", "When events arrive.")
        .value("poisson", ArrivalsConfig::Kind::poisson)
        .value("deterministic", ArrivalsConfig::Kind::deterministic)
        .value("lhc", ArrivalsConfig::Kind::lhc)
        .value("trace", ArrivalsConfig::Kind::trace);
    nb::enum_<EventSizeConfig::Kind>(module, "SizeKind", "Distribution of the sizes of events.")
        .value("fixed", EventSizeConfig::Kind::fixed)
        .value("gaussian", EventSizeConfig::Kind::gaussian)
        .value("gamma", EventSizeConfig::Kind::gamma)
        .value("poisson", EventSizeConfig::Kind::poisson)
        .value("histogram", EventSizeConfig::Kind::histogram);
    nb::enum_<Assignment>(module, "Assignment", "Which builder unit an event is given to.")
        .value("round_robin", Assignment::round_robin)
        .value("least_busy", Assignment::least_busy)
        .value("random", Assignment::random);
    nb::enum_<BufferModel>(module, "BufferModel", "Which frames the buffer of a switch accepts.")
        .value("infinite", BufferModel::infinite)
        .value("drop_tail", BufferModel::drop_tail)
        .value("shared_memory", BufferModel::shared_memory)
        .value("voq", BufferModel::voq);
    nb::enum_<Scheduling>(module, "Scheduling", "How a port shares its wire among classes.")
        .value("fifo", Scheduling::fifo)
        .value("strict", Scheduling::strict)
        .value("weighted", Scheduling::weighted);
    nb::enum_<LinkChange::What>(module, "LinkChange", "What happens to a link during a run.")
        .value("rate", LinkChange::What::rate)
        .value("pace", LinkChange::What::pace)
        .value("hold", LinkChange::What::hold)
        .value("resume", LinkChange::What::resume)
        .value("down", LinkChange::What::down)
        .value("up", LinkChange::What::up);
    nb::enum_<CongestionControl>(module, "CongestionControl", "Congestion control of TCP.")
        .value("newreno", CongestionControl::newreno)
        .value("cubic", CongestionControl::cubic)
        .value("dctcp", CongestionControl::dctcp)
        .value("static", CongestionControl::static_window);
}

void bind_of_fabrics(nb::module_& module) {
    using infiniband::CreditRelease;
    using infiniband::InputQueue;
    nb::enum_<CreditRelease>(module, "CreditRelease", "When a packet's buffer becomes free.")
        .value("per_block", CreditRelease::per_block)
        .value("at_tail", CreditRelease::at_tail);
    nb::enum_<InputQueue>(module, "InputQueue", "Which packets of an input may cross.")
        .value("fifo", InputQueue::fifo)
        .value("virtual_output", InputQueue::virtual_output);
}

void bind_of_shift(nb::module_& module) {
    using protocol::PhaseChange;
    using protocol::ShiftBarrier;
    using protocol::ShiftStage;
    nb::enum_<PhaseChange>(module, "PhaseChange", "What ends a phase of linear shifting.")
        .value("count", PhaseChange::by_count)
        .value("window", PhaseChange::by_time);
    nb::enum_<ShiftBarrier>(module, "ShiftBarrier", "How readout units wait for one another.")
        .value("none", ShiftBarrier::none)
        .value("centralised", ShiftBarrier::centralised)
        .value("tournament", ShiftBarrier::tournament)
        .value("dissemination", ShiftBarrier::dissemination)
        .value("ideal", ShiftBarrier::external);
    nb::enum_<ShiftStage>(module, "ShiftStage", "What a readout unit does in a phase.")
        .value("entering", ShiftStage::entering, "Held back before sending.")
        .value("sending", ShiftStage::sending, "Sending to the builder unit whose turn it is.")
        .value("idle", ShiftStage::idle, "Without a partner: the turn of a dummy.")
        .value("in_barrier", ShiftStage::in_barrier, "Waiting for the other units.")
        .value("finished", ShiftStage::finished, "Done.");
}

void bind_of_units(nb::module_& module) {
    using namespace live;
    nb::enum_<Waiting>(module, "Waiting", "What a data thread does without work.")
        .value("adaptive", Waiting::adaptive)
        .value("blocking", Waiting::blocking)
        .value("spinning", Waiting::spinning);
    nb::enum_<Protocol>(module, "Protocol", "How events are built.")
        .value("shift", Protocol::shift)
        .value("daqpipe", Protocol::daqpipe)
        .value("pull", Protocol::pull);
    nb::enum_<SourceKind>(module, "SourceKind", "Where a readout unit's data comes from.")
        .value("generator", SourceKind::generator)
        .value("replay", SourceKind::replay)
        .value("user", SourceKind::user);
    nb::enum_<Content>(module, "Content", "How often a generator fills its fragments.")
        .value("every", Content::every)
        .value("once", Content::once);
    nb::enum_<SinkKind>(module, "SinkKind", "What becomes of built events.")
        .value("discard", SinkKind::discard)
        .value("check", SinkKind::check)
        .value("file", SinkKind::file)
        .value("user", SinkKind::user);
}

void bind_enumerations(nb::module_& module) {
    using Kind = base::DelayDistribution::Kind;
    nb::enum_<Kind>(module, "DelayKind", "Distribution of a delay.")
        .value("fixed", Kind::fixed)
        .value("exponential", Kind::exponential)
        .value("gaussian", Kind::gaussian)
        .value("uniform", Kind::uniform)
        .value("measured", Kind::measured);
    bind_of_racks(module);
    bind_of_fabrics(module);
    bind_of_shift(module);
    bind_of_units(module);
}

const Subject enumerations(bind_enumerations);

}  // namespace

}  // namespace daqloom::bindings
