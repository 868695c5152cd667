"""Files of `--pcap` and `--trace`, read by tshark and a JSON parser."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario
from daqloom.scenario.errors import ScenarioError
from daqloom.study.methods import methods

pytestmark = pytest.mark.process

pytest.importorskip("daqloom._engine")

LINK = "access.0.down"
#: All events from the first on count, one each 2 ms, and nothing is lost.
LOSSLESS = {
    "event.arrivals": "deterministic",
    "event.rate": "500 Hz",
    "run.duration": "21 ms",
    "run.warmup": "0 s",
}
#: Rings of eight packets: fragments are lost and repeated, with and without timeouts.
LOSSY = {
    "network.switch.tor.model": "drop-tail",
    "network.switch.tor.queue_packets": 8,
    "transport.tail_loss_probe": False,
    "run.duration": "500 ms",
    "run.warmup": "0 s",
}


def small_rack(**overrides: Any) -> Scenario:
    return override(load("small-rack"), overrides)


def command(overrides: dict[str, Any], *arguments: str) -> list[str]:
    options = [part for key, value in overrides.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "daqloom", "simulate", "small-rack", *options, *arguments]


def tshark(capture: Path, *arguments: str) -> list[str]:
    assert shutil.which("tshark"), "these tests need tshark: apt-get install tshark"
    checks = [f"-o{name}:TRUE" for name in ("tcp.check_checksum", "ip.check_checksum")]
    command = ["tshark", "-r", capture, *checks, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def fields(capture: Path, *names: str, only: str = "frame") -> list[list[str]]:
    columns = [part for name in names for part in ("-e", name)]
    lines = tshark(capture, "-Y", only, "-T", "fields", *columns)
    return [line.split("\t") for line in lines]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with the recordings of a lossless run, and the metrics that the command printed."""
    folder = tmp_path_factory.mktemp("recorded")
    arguments = [f"--pcap={link}={folder}/{link}" for link in (LINK, "access.0.up", "uplink.0.up")]
    whole = command(LOSSLESS, *arguments, f"--trace={folder}/trace.json", "--json")
    done = subprocess.run(whole, capture_output=True, text=True, check=True)
    metrics: dict[str, Any] = json.loads(done.stdout)["metrics"]
    return folder, metrics


def test_recorded_files_have_the_bytes_of_the_events(recorded) -> None:
    names = {file.name for file in recorded[0].iterdir()}
    assert names == {LINK, "access.0.up", "uplink.0.up", "trace.json"}
    # Events begin at 2, 4, … 20 ms, and builder 0 has the first, fifth and ninth of them.
    folder, metrics = recorded
    assert metrics["events_built"] == 10
    frames = fields(folder / LINK, "tcp.len", "ip.src", "tcp.dstport")
    assert sum(int(length) for length, _, _ in frames) == 3 * 400_000
    sent = Counter((source, port) for _, source, port in frames)
    assert sorted(sent) == [(f"10.0.0.{i + 1}", f"{50_000 + i}") for i in range(4)]
    requests = fields(folder / "access.0.up", "tcp.len", only="tcp.len > 0")
    assert [int(length) for (length,) in requests] == 3 * 4 * [100]


def test_tshark_finds_nothing_wrong_with_a_run_without_losses(recorded) -> None:
    folder, metrics = recorded
    assert metrics["packets_dropped"] == sum(metrics["retransmissions"].values()) == 0
    for link in (LINK, "access.0.up", "uplink.0.up"):
        frames = fields(folder / link, "ip.checksum.status", "tcp.checksum.status", "tcp.len")
        assert len(frames) > 100
        assert {ip for ip, _, _ in frames} == {"1"}
        # Only 96 bytes are kept: longer packets cannot be checked.
        assert all(tcp == ("1" if int(length) == 0 else "2") for _, tcp, length in frames)
        wrong = tshark(folder / link, "-Y", "tcp.analysis.flags || _ws.malformed || _ws.expert")
        assert wrong == []


def test_a_timeline_has_a_slice_for_every_event(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, metrics = recorded
    trace = json.loads((folder / "trace.json").read_text())
    assert trace["otherData"]["left_out"] == 0
    entries = trace["traceEvents"]
    slices = [entry for entry in entries if entry["ph"] == "X"]
    assert sorted(entry["name"] for entry in slices) == [f"event {i}" for i in range(10)]
    latency = metrics["collection_latency_s"]
    assert max(entry["dur"] for entry in slices) == pytest.approx(latency["max"] * 1e6)
    groups = {e["args"]["name"] for e in entries if e["name"] == "process_name"}
    assert groups == {"top of rack", *(f"builder {i}" for i in range(4))}


def test_tshark_finds_drops_and_retransmissions(tmp_path: Path) -> None:
    files = {LINK: tmp_path / "down", "uplink.0.down": tmp_path / "uplink"}
    trace = tmp_path / "trace.json"
    metrics = methods.simulate(small_rack(**LOSSY), pcap=files, trace=trace).metrics
    entries = json.loads(trace.read_text())["traceEvents"]
    kinds = Counter(entry["name"] for entry in entries if entry["ph"] == "i")
    assert kinds["drop"] == metrics["packets_dropped"] > 0
    timeouts = kinds["timeout of a fragment"] + kinds["timeout of a request"]
    assert timeouts == metrics["retransmission_timeouts"] > 0

    # Before the switch retransmissions are duplicates; behind it are gaps.
    assert fields(files["uplink.0.down"], "tcp.seq", only="tcp.analysis.lost_segment") == []
    assert len(fields(files[LINK], "tcp.seq", only="tcp.analysis.lost_segment")) > 10
    frames = fields(files["uplink.0.down"], "tcp.stream", "tcp.seq", only="tcp.len > 0")
    again = sum(n - 1 for n in Counter(map(tuple, frames)).values())
    assert again == pytest.approx(sum(metrics["retransmissions"].values()), rel=0.01)


def test_recording_does_not_change_the_metrics(tmp_path: Path) -> None:
    system = small_rack(**LOSSLESS)
    result = methods.simulate(system, pcap={LINK: tmp_path / "a"}, trace=tmp_path / "new" / "b")
    assert result.metrics == methods.simulate(system).metrics


def test_a_capture_shows_the_datagrams_of_a_flow_over_udp(tmp_path: Path) -> None:
    flow = {"source": 1, "destination": 0, "size": "2000 B", "messages": 5, "transport": "udp"}
    scenario = small_rack(**LOSSLESS, **{f"flows.a.{key}": value for key, value in flow.items()})
    methods.simulate(scenario, pcap={"source.0.down": tmp_path / "a"}, trace=tmp_path / "b")
    frames = fields(tmp_path / "a", "ip.src", "ip.dst", "udp.srcport", "udp.length", only="udp")
    lengths = [str(8 + 1472), str(8 + 2000 - 1472)] * 5
    assert frames == [["10.0.0.2", "10.0.0.1", "50000", length] for length in lengths]
    assert fields(tmp_path / "a", "tcp.len", only="tcp")


@pytest.mark.parametrize(
    ("link", "trace", "sentence"),
    [
        ("access.9.down", "b", r'no link "access.9.down".*source.0.up to access.3.up'),
        (LINK, "a", "another recording goes there"),
    ],
)
def test_impossible_recordings_are_refused_without_files(tmp_path, link, trace, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        methods.simulate(small_rack(), pcap={link: tmp_path / "a"}, trace=tmp_path / trace)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_link_and_a_disk_that_fills_are_one_sentence(tmp_path: Path) -> None:
    arguments = command(LOSSLESS, "--pcap", f"access.9.down={tmp_path}/a")
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 2
    assert 'no link "access.9.down"' in done.stderr
    # A file may grow to 64 kB and no further; the kernel refuses the rest.
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 128; exec "$@"', "sh"]
    whole = [*limited, *command(LOSSLESS, "--pcap", f"{LINK}={tmp_path}/a")]
    done = subprocess.run(whole, capture_output=True, text=True)
    assert done.returncode == 1
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(f"daqloom: cannot write {tmp_path}/a: File too large")
    assert list(tmp_path.iterdir()) == []
