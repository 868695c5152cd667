"""Probes of a port's buffer from outside."""

import pytest

from daqloom.deployment.scenarios import load
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.study.methods.methods import analyse
from daqloom.study.run import probe as probing
from daqloom.study.run.probe import held_frames, probe
from support.laboratories import rack
from support.namespaces import can_make_networks


@pytest.mark.parametrize("ratio", [1.5, 2, 2.5, 4, 12])
@pytest.mark.parametrize("burst", [1, 2, 3, 7, 40, 73])
def test_a_port_holds_the_arrived_frames_of_a_burst_less_the_departed(burst, ratio):
    # Frame k has come whole at k + 1, and frame 0 begins to leave then; each leaves in `ratio`.
    most = 0
    for come in range(1, burst + 1):
        left = int((come - 1) / ratio)
        most = max(most, come - left)
    assert held_frames(burst, ratio) == most


def port(limit_bytes):
    """A measurement of a port that holds so much: it drops what the closed form says is more."""

    def measured(scenario):
        peak = analyse(scenario).metric("buffer_peak_bytes.tor")
        drops = max(0, round(peak) - limit_bytes)
        return Result(
            scenario=scenario.name,
            scenario_hash=scenario.hash(),
            method="measure",
            metrics={"packets_dropped": drops},
        )

    return measured


@pytest.mark.parametrize("limit_bytes", [5_000, 60_000, 300_000, 5_000_000])
def test_an_incast_finds_the_buffer_of_a_port_to_a_segment(monkeypatch, limit_bytes):
    monkeypatch.setattr(probing, "measure", port(limit_bytes))
    shares = []
    found = probing._incast(load("lab-rack"), shares.append)
    assert limit_bytes - 1600 < found.buffer_bytes <= limit_bytes
    assert found.tested == len(shares)
    assert sorted(shares) == shares
    assert shares[-1] < 1


def test_a_port_that_holds_less_than_an_incast_or_drops_nothing_is_a_sentence(monkeypatch):
    monkeypatch.setattr(probing, "measure", port(2_000))
    with pytest.raises(MeasureError, match="use fewer readout units"):
        probing._incast(load("lab-rack"), lambda _: None)
    monkeypatch.setattr(probing, "measure", port(1 << 60))
    with pytest.raises(MeasureError, match="no event was dropped"):
        probing._incast(load("lab-rack"), lambda _: None)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"measure.lab": "none"}, "measure.device"),
        ({"network.links.source.rate": "20 Mb/s"}, "has to be above"),
    ],
)
def test_scenarios_that_cannot_be_probed_are_refused_in_a_sentence(keys, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        probe(load("lab-rack", keys), lambda *_: None)


@pytest.mark.skipif(not can_make_networks(), reason="this machine allows no network namespaces")
@pytest.mark.usefixtures("any_machine")
@pytest.mark.process
def test_bursts_through_a_port_of_twenty_packets():
    found = probing._bursts(rack(), lambda _: None)
    # A machine that does other things at a time sends with gaps, or forwards late.
    assert 1518 * 8 < found.buffer_bytes < 1518 * 40
    assert found.tested >= 5
