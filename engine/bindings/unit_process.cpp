// The process of a unit, for Python code that connects it to run control, clock and node.
#include "protocol/run/unit_process.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;

/// Calls the methods of a Python node. Python's lock serialises the threads of a unit; long calls
/// of the node release it. Exceptions of the node are passed on to the caller of the process.
class NodeCalls final : public UnitNodes {
  public:
    explicit NodeCalls(nb::object node) : node_(std::move(node)) {}

    std::vector<std::byte> prepare(UnitIndex /*unit*/, const orders::Prepare& order) override {
        return call<std::vector<std::byte>>("prepare", order.epoch, order.members, order.moved,
                                            order.readouts, order.builders);
    }
    std::vector<UnitIndex> connect(UnitIndex /*unit*/, const orders::Connect& order) override {
        return call<std::vector<UnitIndex>>("connect", order.addresses, order.timeout);
    }
    void start(UnitIndex unit, std::uint64_t first_mep, UnitLease::Lease leased) override {
        lease(unit, leased);
        node_.attr("start")(first_mep);
    }
    void lease(UnitIndex /*unit*/, UnitLease::Lease leased) override {
        node_.attr("lease")(leased.mep_end, leased.until, leased.beat);
    }
    void close(UnitIndex /*unit*/, std::span<const UnitIndex> lost) override {
        node_.attr("close")(std::vector(lost.begin(), lost.end()));
    }
    std::optional<std::uint64_t> drain(UnitIndex /*unit*/, base::Time wait_until,
                                       base::Time until) override {
        return call<std::optional<std::uint64_t>>("drain", wait_until, until);
    }
    std::optional<NamedCounters> shut(UnitIndex unit) override {
        node_.attr("shut")();
        return counters(unit);
    }
    std::vector<UnitIndex> suspects(UnitIndex /*unit*/) const override {
        return call<std::vector<UnitIndex>>("suspects");
    }
    NamedCounters counters(UnitIndex /*unit*/) const override {
        return call<NamedCounters>("counters");
    }

  private:
    template <class Result, class... Arguments>
    Result call(const char* name, const Arguments&... arguments) const {
        return nb::cast<Result>(node_.attr(name)(arguments...));
    }

    nb::object node_;
};

}  // namespace daqloom::bindings

namespace nanobind::detail {

/// Caster for the node of a unit, or an object with the same methods; null for None.
template <>
struct type_caster<daqloom::protocol::UnitNodes> {
    NB_TYPE_CASTER(std::optional<daqloom::bindings::NodeCalls>, const_name("LiveNode"))

    bool from_python(handle object, uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
        if (!object.is_none()) {
            value.emplace(borrow(object));
        }
        return true;
    }
    explicit operator daqloom::protocol::UnitNodes*() { return value ? &*value : nullptr; }
};

}  // namespace nanobind::detail

namespace daqloom::bindings {

namespace {

void bind_unit_process(nb::module_& module) {
    const auto node = nb::arg("node").none();
    nb::class_<UnitProcess>(
        module, "UnitProcess",
        "The process of a unit: orders in, reports out. `node` is its node, which the caller makes "
        "after an order to configure or to reset; after an error of the node, the caller calls "
        "`on_failure`. Times are those of CLOCK_MONOTONIC. One thread passes the orders that have "
        "answers; other threads may call everything else meanwhile.")
        .def(nb::init<>())
        .def("on_order", &UnitProcess::on_order, nb::arg("now_s"), nb::arg("number"),
             nb::arg("order"), node,
             "Carries out an order and returns the answer: None to an order to renew a lease, and "
             "to an order to halt, which `on_drain` answers.")
        .def(
            "on_drain", &UnitProcess::on_drain, nb::arg("now_s"), node,
            "Waits until a unit that halts has drained, or has to hurry or to give up. Returns the "
            "answer once it has halted.")
        .def("on_failure", &UnitProcess::on_failure, nb::arg("order"), nb::arg("why"),
             "The unit cannot carry out the order with this number. Returns the answer.")
        .def("reports", &UnitProcess::reports, nb::arg("now_s"), nb::arg("answer").none(), node,
             "Reports to send now: the final counters of each node that was shut, once, and then "
             "the answer or else a heartbeat, with the counters until now.")
        .def("unconfirmed", &UnitProcess::unconfirmed,
             "Final counters that the run control is not known to have stored, to send again first "
             "over a new connection.")
        .def("rejoin", &UnitProcess::rejoin, "State of a process that keeps its node.")
        .def("shut", &UnitProcess::shut, node, "Ends the node.")
        .def_prop_ro("epoch", &UnitProcess::epoch, "Epoch of the unit.");
}

const Subject unit_process(bind_unit_process);

}  // namespace

}  // namespace daqloom::bindings
