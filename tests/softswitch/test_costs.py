"""The costs of a packet and a batch, and the energy that the processors count."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from daqloom.softswitch.costs import BATCH, ROUNDS, fit, measure
from daqloom.softswitch.energy import Energy
from support.softswitch.switches import DAQLOOM


def test_costs_are_those_of_the_turns() -> None:
    packets = np.arange(1, 33)
    found = fit(2 * 120e-9 + packets * 45e-9, 50e-9, buffers=64)
    assert found.packet_s == pytest.approx(45e-9)
    assert found.batch_s == pytest.approx(120e-9)
    assert found.largest_residual_s < 1e-12
    # A full turn: 32 packets in 32 × 45 + 2 × 120 ns.
    assert found.full_batches_hz == pytest.approx(32 / 1680e-9)
    calls = 0

    def turn_time_s(packets: int, turns: int, buffers: int) -> float:
        nonlocal calls
        calls += 1
        disturbed = 1e-3 if calls % ROUNDS else 0.0
        return disturbed + (60e-9 if packets == 0 else 200e-9 + packets * 30e-9)

    # One of ten calls is not disturbed, and 33 times in a round it is another number of packets.
    found = measure(turn_time_s, buffers=64)
    assert calls == ROUNDS * (BATCH + 1)
    assert found.packet_s == pytest.approx(30e-9)
    assert found.batch_s == pytest.approx(100e-9)
    assert found.idle_turn_s == pytest.approx(60e-9)


@pytest.mark.process
def test_the_command_measures_the_costs_of_the_real_switch() -> None:
    pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
    done = subprocess.run(
        [*DAQLOOM, "switch", "costs", "--json"], capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for where in ("in_caches", "in_memory"):
        of = told[where]
        times = of["turn_times_s"]
        assert len(times) == BATCH
        assert min(times) > 0
        # The last turns have thirty times the packets of the first.
        assert sum(times[-4:]) > sum(times[:4])
        assert of["packet_s"] > 0


def package(powercap: Path, name: str, energy_uj: int, most_uj: int) -> Path:
    folder = powercap / name
    folder.mkdir(parents=True)
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{most_uj}\n")
    return folder


def test_energy_is_that_of_all_packages_also_when_a_counter_begins_again(tmp_path: Path) -> None:
    first = package(tmp_path, "intel-rapl:0", 7_000_000, 9_999_999)
    second = package(tmp_path, "intel-rapl:1", 0, 9_999_999)
    package(tmp_path, "intel-rapl:0:0", 1_000_000, 9_999_999)  # a part of the first
    energy = Energy(tmp_path)
    (first / "energy_uj").write_text("9000000\n")
    assert energy.read() == pytest.approx(2.0)
    (first / "energy_uj").write_text("1000000\n")  # 2 J further, past 10 J
    (second / "energy_uj").write_text("500000\n")
    assert energy.read() == pytest.approx(4.5)


def test_energy_that_is_not_counted_is_absent(tmp_path: Path) -> None:
    assert Energy(tmp_path).read() is None
    assert Energy(tmp_path / "none").power_w() is None
    (tmp_path / "intel-rapl:0").mkdir()  # whose counter only root may read
    assert Energy(tmp_path).power_w() is None
