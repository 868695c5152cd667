"""Faults of a measurement's processes: counts, but no durations."""

import json
import shutil
import subprocess

import pytest

from daqloom.cli.console.terminal import FAILED, present, whole_or_stopped
from daqloom.control.counters.warnings import failures
from daqloom.data import check_recording, recover
from daqloom.deployment.scenarios import override
from daqloom.machine.launch import Local
from daqloom.measure.inject import hold_s
from daqloom.measure.run import measure
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import METRICS, find_declaration, flatten
from daqloom.results.result import Result
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.parts import Parts
from support.measure.controlled_runs import FAKE, HUNG_S
from support.measure.faulted_runs import KILLED, broken, expect_accounted, laptop
from support.measure.small_runs import DAQLOOM, daqloom, small
from support.namespaces import SBIN, can_make_networks

pytestmark = pytest.mark.process

STOPPED = {"what": "unit", "which": 1, "how": "stopped", "at": "1 s"}


def test_a_killed_and_a_stopped_unit_are_lost_and_every_event_is_accounted_for() -> None:
    log = []
    result = measure(
        broken(laptop(), killed=KILLED, stopped=STOPPED),
        on_event=lambda event: log.append(event.text),
    )
    expect_accounted(result)
    assert result.metric("faults_begun") == result.metric("faults_detected") == 2
    assert result.metric("fault_detection_s.stopped") > 0
    assert result.metric("fault_detection_s.killed") > 0
    names = {metric.name for path in flatten(result.metrics) if (metric := find_declaration(path))}
    faulted = {metric.name for metric in METRICS if metric.given_by("measure") == Parts.FAULTED}
    assert faulted - names <= {"fault_recovery_s.*"}  # there may be no time for it
    cost = result.metrics["fault_events_lost"]
    assert cost.keys() == {"killed", "stopped"}
    assert sum(cost.values()) > 0  # without a unit, events are incomplete
    faults = result.series["faults"]
    assert sorted(zip(faults["name"], faults["change"], strict=True)) == [
        (name, change) for name in ("killed", "stopped") for change in ("begins", "detected")
    ]
    assert faults["time_s"] == sorted(faults["time_s"])
    assert any("killed at" in text and "unit 2 is killed" in text for text in log)
    times_s = result.series["members"]["time_s"]
    assert times_s == sorted(times_s)
    assert times_s[0] == 0
    assert result.series["members"]["members"][0] == 4
    assert sum(result.series["throughput"]["throughput_bps"]) > 0


def test_a_run_that_fails_after_the_warm_up_keeps_its_result() -> None:
    dead = {"what": "unit", "which": 1, "how": "down", "at": "300 ms"}
    scenario = broken(small(duration="60 s", minimum=3, restart=False), dead=dead)
    with pytest.raises(MeasureError, match="too few units are left, 2 of 3") as raised:
        measure(scenario, launcher=Local(FAKE))
    result = raised.value.result
    assert result.failure == str(raised.value)
    assert not result.interrupted
    assert result.metric("units_lost") == 1
    assert result.warnings[0].startswith("the run failed: ")
    assert result.failure in list(failures(result))
    again = Result.from_json(result.to_json())
    assert (again.failure, again.metrics) == (result.failure, result.metrics)


def test_a_failed_measurement_prints_its_result_and_has_the_failing_exit_code(capsys) -> None:
    stalled = {"metrics": {"events_built": 70}, "failure": "event building has stalled"}
    result = Result(scenario="small", scenario_hash="0", method="measure", **stalled)

    def fail() -> Result:
        raise MeasureError(result.failure, result)

    with pytest.raises(SystemExit) as ended:
        present(whole_or_stopped(fail), json=True)
    printed = capsys.readouterr()
    assert ended.value.code == FAILED
    assert json.loads(printed.out)["metrics"] == {"events_built": 70}
    assert result.failure in printed.err


def test_a_host_that_is_down_starts_no_process_until_it_is_up() -> None:
    host = {"what": "host", "which": "H00-01", "at": "200 ms", "lasts": "2 s"}
    result = measure(broken(small(duration="4 s"), host=host), launcher=Local(FAKE))
    assert result.metric("faults_begun") == result.metric("faults_detected") == 1
    log = result.series["run_events"]["text"]
    down, up = (
        next(place for place, text in enumerate(log) if text.endswith(end))
        for end in ("is down", "is mended")
    )
    assert "unit 1 is lost" in " ".join(log[down:up])
    assert "unit 1 is available" not in log[down:up]


def test_a_fault_of_a_lost_unit_is_none() -> None:
    host = {"what": "host", "which": "H00-01", "at": "200 ms"}
    late = {"what": "unit", "which": 1, "at": "1 s"}
    result = measure(broken(small(duration="1500 ms"), a=host, b=late), launcher=Local(FAKE))
    assert result.metric("faults_begun") == 1
    assert "is lost already" in " ".join(result.series["run_events"]["text"])


def test_a_slow_unit_goes_on() -> None:
    slow = {"what": "unit", "which": 1, "how": "slow", "at": "0 s", "lasts": "300 ms", "factor": 3}
    patient = small(fault_timeout=f"{HUNG_S} s")
    result = measure(broken(patient, slow=slow), launcher=Local(FAKE))
    assert result.metric("units_lost") == 0
    assert result.series["faults"]["change"] == ["begins", "ends"]


def test_a_slow_unit_is_stopped_in_proportion_to_its_computing() -> None:
    # The process computed for 2 of 5 ms: four times as long are 8 ms, of which 6 ms are left.
    assert hold_s(4, used_s=0.002, passed_s=0.005) == pytest.approx(0.006)
    # Three threads at a time compute no longer than one.
    assert hold_s(4, used_s=0.015, passed_s=0.005) == pytest.approx(0.015)
    assert hold_s(4, used_s=0.0, passed_s=0.005) == 0


def test_processes_that_others_start_are_not_broken() -> None:
    with pytest.raises(ScenarioError, match=r'faults.injected.a: .* measure.launch = "slurm"'):
        measure(broken(small(launch="slurm"), a=KILLED))


def test_the_command_prints_faults_and_their_costs() -> None:
    command = [*DAQLOOM, "measure", "laptop", "--duration", "4 s"]
    for key, value in {**KILLED, "at": "1 s"}.items():
        command += ["--set", f"faults.injected.one.{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "daqloom: fault one at 1." in done.stderr
    assert "unit 2 is killed" in done.stderr
    for metric in ("faults_begun", "fault_detection_s.one", "fault_events_lost.one"):
        assert metric in done.stdout


def test_steering_by_hand_breaks_nothing() -> None:
    done = daqloom("control", "laptop", "--set", "faults.injected.one.what=unit")
    assert done.returncode == 2
    assert "`daqloom measure`" in done.stderr


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
@pytest.mark.parametrize("transport", ["tcp", "libfabric:tcp"])
def test_a_dead_link_is_detected_and_damages_nothing(transport: str) -> None:
    port = {"what": "port", "which": "H00-02", "at": "1 s"}
    apart = laptop(namespaces=True, transport=transport, duration="5 s")
    result = measure(broken(apart, port=port))
    expect_accounted(result)
    assert result.metric("faults_begun") == result.metric("faults_detected") == 1


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
def test_the_recording_of_units_in_namespaces_agrees_with_the_accounts(tmp_path) -> None:
    # The counters of a killed unit are read beyond its last heartbeat, in any namespace.
    apart = laptop(namespaces=True, transport="tcp", sink="file", sink_files=str(tmp_path))
    kills = {f"k{at}": {"what": "unit", "which": at, "at": f"{2 * at} s"} for at in (1, 2)}
    result = measure(broken(override(apart, {"event.packing": 20}), **kills))
    recover(tmp_path)
    recording = check_recording([tmp_path], generated=True)
    assert recording.is_right, recording.record()
    accounts = result.metrics["events_accounted"]
    more = recording.gaps.events - accounts["built"] - accounts["incomplete"]
    lost = result.metric("units_lost")
    assert lost >= 2
    # Each may have been writing a packet of 20 events, which is not counted as processed.
    assert 0 <= more <= 20 * lost


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
@pytest.mark.skipif(shutil.which("nft", path=SBIN) is None, reason="nft, which loses, is not here")
def test_losses_of_a_link_are_retransmissions_in_the_kernels_counters() -> None:
    sound = laptop(namespaces=True, transport="tcp", duration="3 s", fault_timeout=f"{HUNG_S} s")
    # A frame of 1500 B is lost with a probability of 1 %.
    cable = {"what": "cable", "which": "H00-02", "how": "degraded", "bit_error_rate": 1e-2 / 12_000}
    lossy = measure(broken(sound, cable=cable | {"at": "0.2 s"}))
    expect_accounted(lossy)
    assert lossy.metric("units_lost") == 0
    assert lossy.metric("retransmissions.all") > 10
    assert lossy.metric("retransmission_timeouts") <= lossy.metric("retransmissions.all")
    columns = lossy.series["connections"]
    pairs = set(zip(columns["from"], columns["to"], strict=True))
    units = {unit for pair in pairs for unit in pair}
    assert pairs == {(a, b) for a in units for b in units if a != b}
    # Series count the whole run, metrics the time after the warm-up.
    rows = list(zip(*columns.values(), strict=True))
    assert sum(row[3] for row in rows) > 10
    assert sum(row[3] for row in rows if 2 in row[:2]) > sum(row[3] for row in rows) / 2
    for row in rows:
        assert 0 < row[6] <= row[5] < 10, "the shortest round trip, and the smoothed one (s)"
        assert row[7] > 0
    assert measure(laptop(duration="1 s")).metric("retransmissions.all") is None


def test_a_measurement_assumes_nothing_that_only_a_simulation_uses() -> None:
    given = broken(laptop(duration="1 s"), x={"what": "unit", "which": 2, "at": "20 s"})
    assert {"faults.routing", "faults.detection", "faults.sweep"} <= given.assumptions().keys()
    assert not measure(given).assumed


def test_a_key_that_only_the_given_transport_has_may_be_set() -> None:
    command = ["measure", "laptop", "--duration", "1 s", "--quiet", "--transport"]
    found = daqloom(*command, "libfabric:tcp", "--set", "measure.congestion=cubic")
    assert found.returncode == 0, found.stderr
    wrong = daqloom(*command, "udp")
    assert wrong.returncode != 0
    assert "--transport: measure.transport" in wrong.stderr
