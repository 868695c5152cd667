"""Flows beside a measured run: they share the network with event building, or are refused."""

import os
import select
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from daqloom._engine import transport_names
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load
from daqloom.lab import validity
from daqloom.lab.balance import Balance, settle
from daqloom.lab.laboratory import Laboratory
from daqloom.machine.launch import Local
from daqloom.machine.traffic import Count
from daqloom.measure.dry_run import dry_run
from daqloom.measure.flows import FlowCounts, Flows, check_flows, flow_warnings, interval_s
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, measurement_plan, plan_of
from daqloom.measure.run import Progress, measure
from daqloom.results.errors import MeasureError
from daqloom.scenario import to_toml
from daqloom.scenario.errors import ScenarioError
from support.children import HUNG_S, children
from support.measure.small_runs import DAQLOOM
from support.namespaces import NETWORKS

TO_THE_BUILDER = ("flows.a.source=0", "flows.a.destination=1")
BY_MPI = ("measure.launch=mpirun", "measure.transport=mpi")
HOST_FAULT = ("faults.injected.x.what=host", "faults.injected.x.which=H00-01")


def traffic_programs(parent: int) -> list[int]:
    """Return the children of a process that send and receive flows."""
    found = []
    for pid in children(parent):
        with suppress(OSError):  # it has just ended
            if b"daqloom.machine.traffic" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@dataclass(frozen=True)
class Noting(Local):
    """Launcher as by mpirun: a process starts the program, awaits its end, and tidies up."""

    folder: Path = Path()

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        return ("sh", "-c", f'"$@"; touch {self.folder}/$$', "sh", *command)


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
@NETWORKS[1]
def test_events_and_a_flow_share_a_link_until_the_balance(monkeypatch) -> None:
    """The builder's link carries 20 Hz x 60 kB of events and 6 Mb/s of a flow over TCP. The
    counters begin a little apart, so a half of either may be missing; the link has more than one
    of both. Nothing sends when packets are balanced."""
    at_balance: list[list[int]] = []

    def settle_now(lab: Laboratory) -> Balance:
        at_balance.append(traffic_programs(os.getpid()))
        return settle(lab)

    monkeypatch.setattr(validity, "KINDS", ())  # counts hold on a busy machine too
    monkeypatch.setattr("daqloom.measure.run.settle", settle_now)
    rate = ("flows.a.size=1500 B", "flows.a.interval=2 ms")
    found = measure(given(*rate, "measure.duration=3 s", "measure.warmup=1 s"))
    on_link_bps = 20e6 * (found.metric("link_utilisation.access.0.down") or 0)
    events_bps, flow_bps = (
        found.metric(name) or 0 for name in ("throughput_bps", "flow_throughput_bps.a")
    )
    assert min(events_bps, flow_bps) > 0
    assert on_link_bps > max(events_bps + flow_bps / 2, flow_bps + events_bps / 2)
    assert at_balance == [[]]
    assert found.metric("packets_unaccounted") == 0


@pytest.mark.process
def test_no_program_of_flows_outlives_a_killed_measurement(tmp_path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(to_toml(given("measure.transport=tcp", scenario="laptop")))
    command = [*DAQLOOM, "measure", file, "--duration", "60 s"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            while len(pids := traffic_programs(run.pid)) < 2:
                assert run.poll() is None
            programs = [os.pidfd_open(pid) for pid in pids]
        finally:
            run.kill()
    for program in programs:  # readable when the process has ended
        assert select.select([program], [], [], HUNG_S)[0]
        os.close(program)


@pytest.mark.process
def test_the_end_of_a_program_during_a_run_ends_the_run() -> None:
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.share and not killed:
            killed.append(traffic_programs(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    # Longer than the time limit of a test: the run ends before its end.
    long = given("measure.transport=tcp", "measure.duration=1 h", scenario="laptop")
    with pytest.raises(MeasureError, match=r"the flows of unit [01]'s host: "):
        measure(long, progress=kill_one)


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
        pytest.raises(MeasureError, match=r"the flows of unit \d's host: "),
        Flows(scenario, NoPrograms()),
    ):
        pass
    before = set(children())
    with Flows(scenario, Local()) as flows:
        flows.begin("test")
        flows.count()
        for child in set(children()) - before:
            os.kill(child, signal.SIGKILL)
        with pytest.raises(MeasureError, match=r"the flows of unit \d's host: "):
            deque(iter(flows.count, None))


@pytest.mark.process
def test_programs_of_flows_end_by_themselves_after_a_run(tmp_path) -> None:
    """Unit 0 sends, and unit 1 receives."""
    with Flows(given("measure.transport=tcp", scenario="laptop"), Noting(folder=tmp_path)) as flows:
        flows.begin("test")
        flows.count()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.process
def test_a_stalled_program_of_flows_is_an_error_with_its_host(monkeypatch) -> None:
    monkeypatch.setattr("daqloom.measure.programs.END_S", 0.1)
    before = set(children())
    with Flows(given("measure.transport=tcp", scenario="laptop"), Local()) as flows:
        flows.begin("test")
        monkeypatch.setattr("daqloom.measure.flows.ANSWER_S", 0.1)
        for child in set(children()) - before:
            os.kill(child, signal.SIGSTOP)
            os.waitid(os.P_PID, child, os.WSTOPPED)
        with pytest.raises(
            MeasureError, match=r"the flows of unit \d's host: no answer within 0.1 s"
        ):
            flows.count()
    assert set(children()) <= before


@pytest.mark.process
@pytest.mark.skipif(which("mpirun") is None or "mpi" not in transport_names(), reason="no MPI")
def test_all_datagrams_of_a_flow_arrive_beside_mpi() -> None:
    few = ("flows.a.messages=10", "flows.a.interval=1 ms", "flows.a.start=700 ms")
    times = ("measure.duration=2 s", "measure.warmup=500 ms", "run.duration=2 s")
    result = measure(given("flows.a.transport=udp", *few, *times, "measure.lab=none", *BY_MPI))
    assert result.metrics["flow_messages"] == {"a": 10}
    assert result.metrics["events_built"] > 0


@pytest.mark.parametrize(
    "keys",
    [
        ["measure.transport=libfabric:udp;ofi_rxd"],
        ["measure.transport=shm+libfabric:udp;ofi_rxd"],
        BY_MPI,
    ],
)
def test_flows_over_udp_are_measured_beside_any_transport_with_a_network(keys) -> None:
    check_flows(given("flows.a.transport=udp", "measure.lab=none", *keys))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["measure.transport=shm"], "no network that a flow could share"),
        (["measure.transport=libfabric:udp;ofi_rxd"], 'transport = "system": a measured flow'),
        (BY_MPI, 'measure.transport is "mpi"; use "udp"'),
        (["measure.transport=tcp", *HOST_FAULT], 'x.what = "host" ends the units of a measured'),
        (["measure.transport=tcp", "flows.a.service_level=1"], "have no classes; use 0"),
    ],
)
def test_flows_that_cannot_be_measured_are_refused_before_the_start(keys, reason) -> None:
    with pytest.raises(ScenarioError, match=reason):
        measurement_plan(
            given(*keys, scenario="laptop"), seed=None, launcher=None, traced=False, arrivals=False
        )


@pytest.mark.parametrize(("size_bytes", "last_bytes"), [(20, 20), (1472 + 25, 25)])
def test_each_datagram_of_a_message_has_room_for_a_header(size_bytes, last_bytes) -> None:
    """A datagram in a frame of 1500 B has 1472 B of payload."""
    scenario = given("flows.a.transport=udp", f"flows.a.size={size_bytes} B")
    with pytest.raises(ScenarioError, match=f"would have {last_bytes} B; expected 26 B or more"):
        next(dry_run(scenario))
    check_flows(given("flows.a.transport=udp", "flows.a.size=1472 B"))
    check_flows(given("flows.a.transport=udp", f"flows.a.size={1472 + 26} B"))


def test_flows_on_several_machines_require_a_network() -> None:
    hosts = ("measure.launch=ssh", 'measure.hosts=["x", "y"]', "measure.certificates=certificates")
    keys = ("measure.transport=tcp", *hosts, "measure.bind=10.0.0.1")
    with pytest.raises(ScenarioError, match=r"flows\.a: its programs .* set measure\.network"):
        check_flows(given(*keys, scenario="laptop"))
    check_flows(given(*keys, "measure.network=10.0.0.0/24", scenario="laptop"))


def test_a_dry_run_lists_the_programs_of_flows() -> None:
    """Hosts of units 0 and 1 are the ends of the flow."""
    lines = list(dry_run(given("measure.transport=tcp", scenario="laptop")))
    heading = lines.index("# the flows, on the hosts of their units")
    assert [line.split()[1:] for line in lines[heading + 1 :]] == 2 * [
        ["-m", "daqloom.machine.traffic"]
    ]


@pytest.mark.parametrize("header_bytes", [40, 52])
def test_a_load_is_that_of_the_simulation(header_bytes: int) -> None:
    """A segment of 1000 B takes 1000 + 40 or, with timestamps, 52 + 38 B of the wire of 40 Mb/s."""
    stamps = f"transport.timestamps={str(header_bytes == 52).lower()}"
    scenario = given("flows.a.size=1000 B", "flows.a.load=0.5", stamps)
    found_s = interval_s(scenario, fabric_system(scenario), scenario.flows["a"], 0)
    assert found_s == pytest.approx(8 * (1000 + header_bytes + 38) / 40e6 / 0.5)


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
    assert "0 B were sent after the warm-up and 0 B received" in found[0]
    assert "flows.a did not reach its rate: a sender was 110 ms late" in found[0]
    assert found[1] == "no message of flows.a arrived after the warm-up"
    assert found[2].startswith("2 datagrams of flows were lost by receiving programs")
