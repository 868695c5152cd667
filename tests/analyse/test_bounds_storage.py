"""Closed forms of storage units behind a rack."""

import pytest

from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.study.methods import methods


def analysed(**changes: object) -> Result:
    keys = {"storage.units": 2, "storage.accepted": "1 %"}
    keys |= {key.replace("__", "."): value for key, value in changes.items()}
    return methods.analyse(load("atlas-lab", keys))


WIRE_BITS = 8 * (5_000_000 + 3454 * 90)
"""5 MB in segments of 1448 B, each with 90 B of headers, preamble and gap."""


def test_storage_receives_the_accepted_share_of_the_event_rate() -> None:
    result = analysed()
    assert result.metric("stored_throughput_bps") == pytest.approx(12e3 * 0.01 * 40e6)
    utilisation = result.metrics["link_utilisation"]["storage.down"]
    assert utilisation == pytest.approx(12e3 * 0.01 * WIRE_BITS / 200e9)


def test_the_links_of_storage_units_bound_the_rate() -> None:
    result = analysed(network__links__storage__rate="1 Gb/s")
    bounds = result.analysis["rate_bounds_hz"]
    assert bounds["storage"] == pytest.approx(2e9 / 0.01 / WIRE_BITS)  # 4.7 kHz
    assert result.metric("event_rate_bound_hz") == bounds["storage"]
    assert any("rate_bounds_hz.storage" in warning for warning in result.warnings)


def test_an_event_counts_as_concurrent_until_it_is_stored() -> None:
    before = methods.analyse(load("atlas-lab")).analysis["rate_bounds_hz"]["concurrent_events"]
    after = analysed(storage__accepted=1).analysis["rate_bounds_hz"]["concurrent_events"]
    # The access link is the slowest, and three links delay by 1 us each.
    assert 32 * 32 / after - 32 * 32 / before == pytest.approx(WIRE_BITS / 25e9 + 3e-6)


def test_nothing_changes_without_storage_units() -> None:
    result = methods.analyse(load("atlas-lab"))
    assert "stored_throughput_bps" not in result.metrics
    assert "storage" not in result.analysis["rate_bounds_hz"]
