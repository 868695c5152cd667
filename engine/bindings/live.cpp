// A unit of a real event builder, for Python. Its data thread never enters Python: calls from
// Python only pass commands to the thread, and release the interpreter lock while they wait.
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
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
#include "live/ends/data_rates.hpp"
#include "live/memory/clock.hpp"
#include "live/node/counters_page.hpp"
#include "live/node/node.hpp"
#include "live/transport/echo.hpp"
#include "live/transport/make.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace live;

namespace {

void set_token(Token& token, const nb::bytes& bytes) {
    if (bytes.size() != token.size()) {
        throw nb::value_error("a token has 16 bytes");
    }
    std::memcpy(token.data(), bytes.data(), bytes.size());
}

void bind_node_config(nb::module_& module) {
    bind_config<TcpConfig>(module, "LiveTcpConfig", "Connections of TCP.");
    using Config = NodeConfig;
    auto cls = bind_config<Config>(module, "LiveConfig", "The process of a unit.");
    cls.def(
           "check", [](const Config& self) { value_of(Node::check(self)); },
           "Raises ValueError for a configuration that no unit can run.")
        .def_rw("unit", &Config::self, "Number of the unit.")
        .def_prop_rw(
            "token",
            [](const Config& self) { return nb::bytes(self.token.data(), self.token.size()); },
            [](Config& self, const nb::bytes& token) { set_token(self.token, token); },
            "Secret of the run, 16 bytes.");
    [&]<class... Rules>(const EachRules<Rules...>*) {
        (bind_rules<Rules>(cls), ...);
    }(static_cast<const AllRules*>(nullptr));
}

std::unique_ptr<Node> make_node(const NodeConfig& config) {
    return without_lock([&] { return Node::make(config); });
}

std::vector<std::byte> prepare(Node& node, std::uint32_t epoch,
                               const std::vector<UnitIndex>& members,
                               const std::vector<protocol::RoleHolders>& moved,
                               const std::vector<UnitIndex>& readouts,
                               const std::vector<UnitIndex>& builders) {
    return without_lock([&] { return node.prepare(epoch, members, moved, readouts, builders); });
}

std::vector<UnitIndex> connect(Node& node, const std::vector<Transport::Peer>& addresses,
                               base::Time timeout) {
    return without_lock([&] { return node.connect(addresses, timeout); });
}

void start(Node& node, std::uint64_t first_mep) {
    without_lock([&] { return node.start(first_mep); });
}

CountersPage attach(std::int64_t process, const std::string& run, UnitIndex unit) {
    return without_lock([&] { return CountersPage::attach(process, run, unit); });
}

/// Offset from the clock of this machine to UTC (ns since 1970).
std::int64_t since_1970_ns() {
    timespec real{};
    ::clock_gettime(CLOCK_REALTIME, &real);
    return real.tv_sec * 1'000'000'000 + real.tv_nsec - now().ps / 1'000;
}

/// A stage: begin (ns since 1970), epoch, step, unit of the partner or -1, stage.
using StageRow =
    std::tuple<std::int64_t, std::uint32_t, std::uint64_t, UnitIndex, protocol::ShiftStage>;

std::vector<StageRow> take_stages(Node& node) {
    const std::int64_t to_1970_ns = since_1970_ns();
    std::vector<StageRow> stages;
    for (const StageRecord& record : node.take_stages()) {
        stages.emplace_back(record.at.ps / 1'000 + to_1970_ns, record.epoch, record.step, record.to,
                            record.stage);
    }
    return stages;
}

/// Arrivals: begin (ns since 1970), times since then (ns), number of arrivals not kept.
using ArrivalRows = std::tuple<std::int64_t, std::vector<std::int64_t>, std::uint64_t>;

ArrivalRows take_arrivals(Node& node) {
    const ArrivalRecord::Arrivals arrivals = node.take_arrivals();
    std::vector<std::int64_t> since_begin_ns;
    since_begin_ns.reserve(arrivals.times.size());
    for (const base::Time at : arrivals.times) {
        since_begin_ns.push_back((at - arrivals.begin).ps / 1'000);
    }
    return {arrivals.begin.ps / 1'000 + since_1970_ns(), std::move(since_begin_ns),
            arrivals.beyond};
}

std::unique_ptr<Echo> make_echo(const std::string& transport, const std::string& node,
                                const std::string& congestion_control, const nb::bytes& token,
                                std::uint32_t units, std::uint32_t unit, std::size_t most_bytes) {
    EchoConfig config;
    config.transport = transport;
    config.units = units;
    config.unit = unit;
    config.most_bytes = most_bytes;
    config.tcp.node = node;
    config.tcp.congestion_control = congestion_control;
    set_token(config.token, token);
    return without_lock([&] { return Echo::make(config); });
}

void bind_calibration(nb::module_& module) {
    bind_report<RoundTrips>(module, "RoundTrips", "Messages to other units and back.");
    nb::class_<Echo>(module, "Echo",
                     "A unit of a round-trip test: unit 0 sends messages, the others return them.")
        .def_static("make", &make_echo, nb::arg("transport"), nb::arg("node"),
                    nb::arg("congestion_control"), nb::arg("token"), nb::arg("units"),
                    nb::arg("unit"), nb::arg("most_bytes"),
                    "Raises ValueError and OSError, each with one sentence.")
        .def("address", &Echo::address)
        .def(
            "connect",
            [](Echo& self, std::vector<std::vector<std::byte>> others, base::Time timeout) {
                without_lock([&] { return self.connect(std::move(others), now() + timeout); });
            },
            nb::arg("others"), nb::arg("timeout_s"))
        .def(
            "run",
            [](Echo& self, std::uint32_t rounds, std::size_t bytes, base::Time pause,
               base::Time timeout) {
                return without_lock(
                    [&] { return self.run(rounds, bytes, pause, now() + timeout); });
            },
            nb::arg("rounds"), nb::arg("bytes"), nb::arg("pause_s"), nb::arg("timeout_s"));
    bind_report<DataRates>(module, "DataRates", "Rates of each thread (B/s).");
    module.def(
        "measure_data_rates",
        [](std::uint32_t threads, std::uint32_t packing, std::uint32_t fragment_bytes) {
            return without_lock(
                [&] { return measure_data_rates(threads, packing, fragment_bytes); });
        },
        nb::arg("threads"), nb::arg("packing"), nb::arg("fragment_bytes"),
        "Rates at which data are generated, copied and checked. Raises ValueError for sizes that "
        "no packet holds.");
}

void bind_live(nb::module_& module) {
    bind_node_config(module);
    bind_calibration(module);
    nb::class_<Node>(module, "LiveNode")
        .def(nb::new_(&make_node), nb::arg("config"))
        .def("prepare", &prepare, nb::arg("epoch"), nb::arg("members"),
             nb::arg("moved") = std::vector<protocol::RoleHolders>(),
             nb::arg("readouts") = std::vector<UnitIndex>(),
             nb::arg("builders") = std::vector<UnitIndex>(),
             "Prepares a new epoch with these units, this one included; `moved`: units in the "
             "place of others; `readouts`, `builders`: the units in the slots of another schedule. "
             "Returns the address of this unit.")
        .def("connect", &connect, nb::arg("addresses"), nb::arg("timeout_s"),
             "Connects to the other units. Returns the units that did not answer.")
        .def("start", &start, nb::arg("first_mep"), "Starts data flow from this MEP on.")
        .def(
            "close", [](Node& self, const std::vector<UnitIndex>& lost) { self.close(lost); },
            nb::arg("lost"),
            "Begins to drain granted MEPs. After a second call, without lost units, the unit waits "
            "for no consumer.")
        .def(
            "drain", &Node::drain, nb::arg("wait_until_s"), nb::arg("until_s"),
            nb::call_guard<nb::gil_scoped_release>(),
            "Waits until the epoch has drained, at most until `wait_until_s` (s, CLOCK_MONOTONIC). "
            "Returns the first MEP that the next epoch may take, or None. At `until_s` the halt is "
            "over.")
        .def("lease", &Node::lease, nb::arg("mep_end"), nb::arg("until_s"), nb::arg("beat"),
             "MEPs of the run before this number may be answered until then (s, CLOCK_MONOTONIC); "
             "`beat`: the last one of the run control.")
        .def("suspects", &Node::suspects, "Units that could not be reached in this epoch.")
        .def(
            "counters",
            [](const Node& node) {
                return counted([&](const auto& see) { node.each_counter(see); });
            },
            "Everything counted since the node was made.")
        .def("take_stages", &take_stages,
             "Stages of the unit since the last call: begin (ns since 1970), epoch, step, unit of "
             "the partner or -1, stage.")
        .def("take_arrivals", &take_arrivals,
             "Arrivals of events at the unit's event manager since the last call: begin of the "
             "epoch (ns since 1970), times since then (ns), number of arrivals not kept.")
        .def("connections", &Node::connections,
             "Kernel statistics of each connection of this epoch; only for sockets of TCP.")
        .def("shut", &Node::shut, nb::call_guard<nb::gil_scoped_release>(),
             "Ends the threads and frees the memory.");
    bind_counters(module);
    bind_report<ConnectionCounts>(module, "ConnectionCounts",
                                  "Kernel statistics of a connection since it was made.");
    nb::class_<CountersPage>(module, "UnitCounters")
        .def_static("attach", &attach, nb::arg("process"), nb::arg("run"), nb::arg("unit"),
                    "Attaches to a unit of this user in a process of this machine. Raises OSError.")
        .def_static(
            "open",
            [](const std::string& folder, UnitIndex unit) {
                return value_of(CountersPage::open(folder, unit));
            },
            nb::arg("folder"), nb::arg("unit"),
            "Opens the file of a unit's counters, also after its end. Raises OSError.")
        .def(
            "read",
            [](const CountersPage& page) {
                return counted([&](const auto& see) { see_counters(page.counters(), see); });
            },
            "Counters of the unit up to now, or to its end.");
    module.def(
        "transport_names", [] { return transport_names(); },
        "Values of measure.transport available on this machine.");
}

const Subject live(bind_live);

}  // namespace

}  // namespace daqloom::bindings
