"""DAQPIPE with processes of this machine, and their configuration from a scenario."""

import pytest

from daqloom import _engine
from daqloom.deployment.scenarios import load
from daqloom.measure.configure import _config, places
from daqloom.measure.run import measure
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.models import Scenario
from support.measure.live_nodes import TOKEN, configure
from support.measure.tiny_runs import (
    TINY_DAQPIPE,
    expect_all_built,
    expect_built_right,
    tiny_daqpipe,
)


def test_a_readout_units_streams_travel_as_one_fragment() -> None:
    shifted = places(tiny_daqpipe(building__protocol="shift"))
    assert (shifted.streams, shifted.fragment_bytes) == (2, [200] * 4)
    piped = places(tiny_daqpipe())
    assert (piped.streams, piped.fragment_bytes) == (1, [400] * 2)


def test_groups_are_summed_over_a_units_streams() -> None:
    groups = [{"sources": 1, "share": 0.5}, {"sources": 3, "share": 0.5}]
    event = {**TINY_DAQPIPE["event"], "groups": groups}
    scenario = Scenario.model_validate(TINY_DAQPIPE | {"event": event})
    # 4 sources of 200 B: half of 800 B in the first, a sixth in each of the others.
    assert places(scenario).fragment_bytes == [round(400 + 800 / 6), round(2 * 800 / 6)]


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("slot", ["0 s", "50 us"])
@pytest.mark.process
def test_every_event_is_built_right(mode: str, slot: str) -> None:
    result = measure(tiny_daqpipe(building__mode=mode, building__slot=slot))
    expect_built_right(result, events=2000)
    expect_all_built(result, readouts=2)


def test_too_many_credits_are_refused() -> None:
    with pytest.raises(ScenarioError, match="give fewer credits or a larger output buffer"):
        measure(tiny_daqpipe(building__credits=1000))


def test_the_laptop_is_the_same_to_all_methods() -> None:
    scenario = load("daqpipe-laptop")
    where = places(scenario)
    assert (where.units, where.streams, where.fragment_bytes) == (4, 1, [1000] * 4)
    pushed = tiny_daqpipe(building__mode="push", building__credits=7)
    config = _config(pushed, configure(), TOKEN)
    assert config.protocol is _engine.Protocol.daqpipe
    assert (config.daqpipe_rules.is_push, config.daqpipe_rules.credits) == (True, 7)
