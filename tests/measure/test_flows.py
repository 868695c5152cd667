"""Flows beside a measured run: they share the network with event building, or are refused."""

import os
import signal
from collections import deque
from collections.abc import Sequence

import pytest

from daqloom.deployment.scenarios import load
from daqloom.lab import validity
from daqloom.machine.launch import Local
from daqloom.machine.traffic import Count
from daqloom.measure.flows import FlowCounts, Flows, flow_warnings
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, measurement_plan, plan_of
from daqloom.measure.run import measure
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from support.children import children
from support.namespaces import NETWORKS

TO_THE_BUILDER = ("flows.a.source=0", "flows.a.destination=1")


class NoPrograms(Local):
    """Launcher of programs that end immediately."""

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        return ("false",)


def given(*keys: str, scenario: str = "lab-pair"):
    return load(scenario, [*TO_THE_BUILDER, *keys])


@pytest.mark.process
@NETWORKS[1]
def test_a_flow_of_a_laboratory_meets_the_events_in_its_ports(monkeypatch) -> None:
    """The source sends 0.9 x 40 Mb/s to a port of 20 Mb/s, which drops the rest, 16 of 36."""
    monkeypatch.setattr(validity, "KINDS", ())  # counts hold on a busy machine too
    udp = ("flows.a.transport=udp", "flows.a.size=1472 B", "flows.a.load=0.9")
    small = ("network.switch.tor.model=drop-tail", "network.switch.tor.port_limit=64 kB")
    result = measure(given(*udp, *small, "measure.duration=3 s", "measure.warmup=1 s"))
    [throughput] = result.metrics["flow_throughput_bps"].values()
    assert 0 < throughput < 20e6
    arrived, lost = (result.metrics[f"flow_messages{which}"]["a"] for which in ("", "_lost"))
    assert lost / (arrived + lost) > 0.3
    assert result.metrics["packets_dropped"] > 0


@pytest.mark.process
def test_all_messages_of_a_flow_arrive_after_its_start() -> None:
    few = ("flows.a.messages=10", "flows.a.interval=1 ms", "flows.a.start=700 ms")
    times = ("measure.transport=tcp", "measure.duration=2 s", "measure.warmup=500 ms")
    times += ("run.duration=2 s",)
    result = measure(given("flows.a.size=100 kB", *few, *times, scenario="laptop"))
    assert result.metrics["flow_messages"] == {"a": 10}
    assert result.metrics["events_built"] > 0
    assert not [text for text in result.warnings if "flows." in text]


@pytest.mark.process
def test_the_end_of_a_program_of_flows_is_an_error_with_its_host() -> None:
    scenario = given("measure.transport=tcp", scenario="laptop")
    with (
        pytest.raises(MeasureError, match="the flows of unit 0's host: "),
        Flows(scenario, NoPrograms()),
    ):
        pass
    before = set(children())
    with Flows(scenario, Local()) as flows:
        flows.begin()
        flows.count()
        for child in set(children()) - before:
            os.kill(child, signal.SIGKILL)
        with pytest.raises(MeasureError, match="the flows of unit 0's host: "):
            deque(iter(flows.count, None))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["measure.transport=shm"], "no network that a flow could share"),
        (["measure.transport=libfabric:udp;ofi_rxd"], 'transport = "system": a measured flow'),
        (["measure.transport=tcp", "flows.a.service_level=1"], "have no classes; use 0"),
    ],
)
def test_flows_that_cannot_be_measured_are_refused_before_the_start(keys, reason) -> None:
    with pytest.raises(ScenarioError, match=reason):
        measurement_plan(
            given(*keys, scenario="laptop"), seed=None, launcher=None, traced=False, arrivals=False
        )


def test_a_message_over_udp_has_room_for_its_header() -> None:
    scenario = given("flows.a.transport=udp", "flows.a.size=20 B")
    with pytest.raises(ScenarioError, match="26 B or more"):
        measurement_plan(scenario, seed=None, launcher=None, traced=False, arrivals=False)


def test_a_run_control_refuses_flows_and_takes_no_new_ones(tmp_path) -> None:
    with pytest.raises(ScenarioError, match="a run control has only event building"):
        control_of(given("measure.transport=tcp", scenario="laptop"), tmp_path)
    with pytest.raises(ScenarioError, match="flows"):
        new_setup(plan_of(load("laptop")), TO_THE_BUILDER)


def test_a_late_sender_a_silent_flow_and_a_slow_receiver_are_warnings() -> None:
    scenario = given("flows.a.start=1 s", "flows.a.transport=udp")

    def counts(time_s: float, behind_s: float, received: int, overflowed: int) -> FlowCounts:
        count = {"a": Count(received, 1000 * received)}
        return FlowCounts(time_s, {"a": Count(9, 9000, 0, behind_s)}, count, overflowed)

    begin = counts(1.0, 0.0, 5, 2)
    assert flow_warnings(scenario, begin, counts(6.0, 0.09, 9, 2)) == []
    found = flow_warnings(scenario, begin, counts(6.0, 0.11, 5, 4))  # 2 % of 5 s are 0.1 s
    assert len(found) == 3
    assert "flows.a did not reach its rate: a sender was 110 ms late" in found[0]
    assert found[1] == "no message of flows.a arrived after the warm-up"
    assert found[2].startswith("2 datagrams of flows were lost by receiving programs")
