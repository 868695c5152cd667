// The process of a unit, for Python, which connects it to the run control, the clock and its node.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "protocol/run/unit_process.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;

namespace {

/// The node of a unit, or an object with the same methods, or None.
class NodeObject : public nb::object {
    static bool is_any(nb::handle /*object*/) { return true; }

  public:
    NB_OBJECT_DEFAULT(NodeObject, object, "LiveNode | None", is_any)
};

/// Calls of a node. Python's lock is the lock of a unit's threads; long calls of the node release
/// it. Exceptions go on to the caller of the process.
class NodeCalls final : public UnitNodes {
  public:
    explicit NodeCalls(NodeObject node) : node_(std::move(node)) {}

    /// Null for None.
    [[nodiscard]] UnitNodes* get() { return node_.is_none() ? nullptr : this; }

    std::vector<std::byte> prepare(UnitIndex /*unit*/, const orders::Prepare& order,
                                   base::Time /*now*/) override {
        return call<std::vector<std::byte>>("prepare", order.epoch, order.members, order.moved);
    }
    std::vector<UnitIndex> connect(UnitIndex /*unit*/, const orders::Connect& order) override {
        return call<std::vector<UnitIndex>>("connect", order.addresses, order.timeout);
    }
    void start(UnitIndex unit, std::uint64_t first_mep, const UnitLease::Leased& leased,
               base::Time now) override {
        lease(unit, leased, now);
        node_.attr("start")(first_mep);
    }
    void lease(UnitIndex /*unit*/, const UnitLease::Leased& leased, base::Time /*now*/) override {
        node_.attr("lease")(leased.mep_end, leased.until);
    }
    void close(UnitIndex /*unit*/, std::span<const UnitIndex> lost, base::Time /*now*/) override {
        node_.attr("close")(std::vector(lost.begin(), lost.end()));
    }
    std::optional<NamedCounters> shut(UnitIndex unit, base::Time now) override {
        node_.attr("shut")();
        return counters(unit, now);
    }
    std::vector<UnitIndex> suspects(UnitIndex /*unit*/) const override {
        return call<std::vector<UnitIndex>>("suspects");
    }
    NamedCounters counters(UnitIndex /*unit*/, base::Time /*now*/) const override {
        return call<NamedCounters>("counters");
    }

  private:
    template <class Result, class... Arguments>
    Result call(const char* name, const Arguments&... arguments) const {
        return nb::cast<Result>(node_.attr(name)(arguments...));
    }

    NodeObject node_;
};

void bind_unit_process(nb::module_& module) {
    nb::class_<UnitProcess>(
        module, "UnitProcess",
        "The process of a unit: orders in, reports out. `node` is its node, which the caller makes "
        "after an order to configure or to reset. Times are those of CLOCK_MONOTONIC. One thread "
        "passes the orders with answers, others may call all else meanwhile.")
        .def("__init__", [](UnitProcess* self) { new (self) UnitProcess(); })
        .def(
            "on_order",
            [](UnitProcess& self, base::Time now, std::uint64_t number, const Order& order,
               NodeObject node) {
                return self.on_order(now, number, order, NodeCalls(std::move(node)).get());
            },
            nb::arg("now_s"), nb::arg("number"), nb::arg("order"), nb::arg("node").none(),
            "Carries out an order and returns the answer: None to an order to renew a lease, which "
            "any thread may pass, and to an order to halt, which `on_drain` answers. Raises what "
            "the node raises; then call `on_failure`.")
        .def(
            "on_drain",
            [](UnitProcess& self, base::Time now, std::optional<std::uint64_t> next_mep,
               NodeObject node) {
                NodeCalls calls(std::move(node));
                return self.on_drain(now, next_mep, calls);
            },
            nb::arg("now_s"), nb::arg("next_mep").none(), nb::arg("node").none(),
            "The epoch has drained, and the next one may take `next_mep`; or it has not drained by "
            "now. Returns the answer once the unit has halted.")
        .def("on_failure", &UnitProcess::on_failure, nb::arg("order"), nb::arg("why"),
             "The unit cannot carry out the order with this number. Returns the answer.")
        .def(
            "reports",
            [](UnitProcess& self, base::Time now, UnitProcess::Answer answer, NodeObject node) {
                return self.reports(now, std::move(answer), NodeCalls(std::move(node)).get());
            },
            nb::arg("now_s"), nb::arg("answer").none(), nb::arg("node").none(),
            "Reports to send now: the final counters of each node that was shut, once, and then "
            "the "
            "answer or else a heartbeat, with the counters until now.")
        .def(
            "shut",
            [](UnitProcess& self, base::Time now, NodeObject node) {
                self.shut(now, NodeCalls(std::move(node)).get());
            },
            nb::arg("now_s"), nb::arg("node").none(), "Ends the node.")
        .def_prop_ro("epoch", &UnitProcess::epoch, "Epoch of the unit.")
        .def_prop_ro("hurries_at_s", &UnitProcess::hurries_at,
                     "Time from which a unit that halts waits for no consumer.")
        .def_prop_ro("gives_up_at_s", &UnitProcess::gives_up_at,
                     "Time at which a unit that halts gives up.");
}

const Subject unit_process(bind_unit_process);

}  // namespace

}  // namespace daqloom::bindings
