"""What a run records: captures that tshark reads without complaint, a timeline in JSON."""

import json
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import daqloom
from daqloom.result import Result
from daqloom.scenario import Scenario

pytest.importorskip("daqloom._engine")

LINK = "access.0.down"  # from the top of rack to the first builder


def laptop() -> Scenario:
    return daqloom.load("laptop").with_overrides(
        {
            "event.arrivals": "deterministic",
            "event.rate": "500 Hz",
            "run.duration": "20 ms",
            "run.warmup": "1 ms",
        }
    )


def tshark(capture: Path, *arguments: str) -> list[str]:
    if shutil.which("tshark") is None:
        pytest.fail("these tests read captures with tshark: apt-get install tshark")
    options = ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE"]
    flags = [part for option in options for part in ("-o", option)]
    done = subprocess.run(
        ["tshark", "-r", str(capture), *flags, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("recordings")
    capture, timeline = folder / "builder.pcapng", folder / "timeline.json"
    result = laptop().simulate(pcap={LINK: capture}, trace=timeline)
    assert sorted(file.name for file in folder.iterdir()) == ["builder.pcapng", "timeline.json"]
    return result, capture, json.loads(timeline.read_text())


def test_tshark_has_nothing_to_complain_about(
    recorded: tuple[Result, Path, dict[str, Any]],
) -> None:
    _, capture, _ = recorded
    assert len(tshark(capture)) > 100
    complaints = "_ws.malformed || tcp.checksum_bad.expert || ip.checksum_bad.expert"
    assert tshark(capture, "-Y", complaints) == []
    # Nothing was lost, so nothing is missing from the stream or comes out of order.
    assert tshark(capture, "-Y", "tcp.analysis.lost_segment || tcp.analysis.out_of_order") == []


def test_a_capture_holds_each_fragment_byte_once(
    recorded: tuple[Result, Path, dict[str, Any]],
) -> None:
    _, capture, _ = recorded
    by_stream: dict[str, int] = defaultdict(int)
    for line in tshark(capture, "-T", "fields", "-e", "tcp.stream", "-e", "tcp.len"):
        stream, payload = line.split()
        by_stream[stream] += int(payload)
    # Events at 2, 4, … 18 ms go round the 4 builders: the first one takes the 1st, 5th and 9th,
    # each of 4 fragments of 100 kB on as many connections.
    assert sorted(by_stream.values()) == [300_000] * 4


def test_a_capture_counts_time_from_the_start_of_the_run(
    recorded: tuple[Result, Path, dict[str, Any]],
) -> None:
    _, capture, _ = recorded
    times = [float(t) for t in tshark(capture, "-T", "fields", "-e", "frame.time_epoch")]
    assert times == sorted(times)
    assert 2e-3 < times[0] < 2.1e-3  # the first event, one round trip later
    assert times[-1] < 20e-3


def test_the_timeline_shows_every_event_built(
    recorded: tuple[Result, Path, dict[str, Any]],
) -> None:
    result, _, timeline = recorded
    entries = timeline["traceEvents"]
    slices = [entry for entry in entries if entry["ph"] == "X"]
    assert len(slices) == result.metric("events_built")
    mean_s = sum(entry["dur"] for entry in slices) / len(slices) * 1e-6
    latency = result.metrics["collection_latency_s"]
    assert mean_s == pytest.approx(latency["mean"], rel=1e-6)
    assert max(entry["dur"] for entry in slices) * 1e-6 == pytest.approx(latency["max"], rel=1e-6)
    named = {(e["pid"], e["tid"]) for e in entries if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {(entry["pid"], entry["tid"]) for entry in slices} <= named
    assert timeline["otherData"]["left_out"] == 0


def test_recording_does_not_change_the_run(
    recorded: tuple[Result, Path, dict[str, Any]],
) -> None:
    result, _, _ = recorded
    assert laptop().simulate().metrics == result.metrics
