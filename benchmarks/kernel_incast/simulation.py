"""The simulated side: `daqloom simulate incast.toml` in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from comparison import (
    BOTTLENECK_BPS,
    MTU_BYTES,
    REPLY_BYTES,
    REPLY_WIRE_BYTES,
    REQUEST_BYTES,
    SEGMENT_BYTES,
    SENDERS,
    WARMUP_S,
    Outcome,
    Point,
)
from kernel import BenchmarkError, Hosts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCENARIO = HERE / "incast.toml"


class SimulatedSide:
    """The incast in the simulator, on hosts like those measured."""

    def __init__(self, daqloom: str | None, hosts: Hosts) -> None:
        self._daqloom = daqloom or find_daqloom()
        self._hosts = hosts

    def measure(self, point: Point, seconds: float, repeat: int = 0) -> Outcome:
        return outcome(self._simulate(point, seconds, repeat))

    def drops(self, point: Point, rounds: int) -> bool:
        """Whether the bottleneck drops anything in the time of so many undisturbed rounds."""
        seconds = WARMUP_S + rounds * 8 * SENDERS * REPLY_WIRE_BYTES / BOTTLENECK_BPS
        return bool(self._simulate(point, seconds, 0, WARMUP_S)["packets_dropped"])

    def _simulate(
        self, point: Point, seconds: float, repeat: int, warmup_s: float = 0
    ) -> dict[str, Any]:
        overrides = {
            "event.size": f"{SENDERS * REPLY_BYTES} B",
            "readout.units": SENDERS,
            "building.request_size": f"{REQUEST_BYTES} B",
            "network.mtu": f"{MTU_BYTES} B",
            "builders.message_cost": f"{self._hosts.spacing_s} s",
            "transport.timer_tick": f"{self._hosts.tick_s} s",
            "network.links.source.rate": f"{self._hosts.emission_bps:.0f} b/s",
            "readout.response.mean": f"{2 * self._hosts.jitter_s} s",
            "readout.response.spread": f"{self._hosts.jitter_s} s",
            "network.switch.tor.pace": f"{BOTTLENECK_BPS} b/s",
            "network.switch.tor.queue_packets": point.buffer_packets,
            "transport.congestion": point.load.congestion,
            "run.duration": f"{seconds} s",
            "run.warmup": f"{warmup_s} s",
            "run.seed": 1 + repeat,
        }
        if point.load.congestion == "static":
            overrides["transport.static_window"] = f"{point.load.window * SEGMENT_BYTES} B"
        words = [self._daqloom, "simulate", str(SCENARIO), "--json"]
        for key, value in overrides.items():
            words += ["--set", f"{key}={value}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise BenchmarkError(f"daqloom simulate failed: {done.stderr.strip()}")
        metrics: dict[str, Any] = json.loads(done.stdout)["metrics"]
        return metrics


def outcome(metrics: dict[str, Any]) -> Outcome:
    """The figures of a run out of the simulation's result."""
    latency = metrics.get("collection_latency_s", {})
    retransmissions = metrics["retransmissions"]
    return Outcome(
        rounds=metrics["events_built"],
        goodput_bps=metrics["throughput_bps"],
        median_round_s=latency.get("p50", 0.0),
        longest_round_s=latency.get("max", 0.0),
        drops=metrics["packets_dropped"],
        timeouts=metrics["retransmission_timeouts"],
        loss_probes=retransmissions["probe"],
        retransmissions=sum(retransmissions.values()),
    )


def find_daqloom() -> str:
    """The command of this checkout's environment, else the one on PATH."""
    own = ROOT / ".venv" / "bin" / "daqloom"
    found = str(own) if own.exists() else shutil.which("daqloom")
    if found is None:
        raise BenchmarkError("no daqloom command is installed; run `make test` or give --daqloom")
    return found
