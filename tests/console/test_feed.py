import asyncio
import json

import pytest

from daqloom.console.feed import MOST_PAST, MOST_VIEWERS, Feed, Meter, allowed
from daqloom.control.protocol.states import Goal, Phase, Standing
from daqloom.results.errors import MeasureError
from support.consoles import status, unit


def counted(scale: float) -> dict[str, float]:
    return {
        "meps_delivered": 10 * scale,
        "mfp_bytes_built": 1000 * scale,
        "building_s": 0.5 * scale,
        "waiting_for_source_s": 0.1 * scale,
        "asking_s": 0.2 * scale,
        "waiting_for_network_s": 0.3 * scale,
    }


@pytest.mark.parametrize(
    ("phase", "goal", "expected"),
    [
        (Phase.WAITING, Goal.IDLE, ["configure", "start", "reset", "exit"]),
        (Phase.READY, Goal.READY, ["start", "reset", "exit"]),
        (Phase.RUNNING, Goal.RUNNING, ["stop", "reset", "exit"]),
        (Phase.ERROR, Goal.RUNNING, ["configure", "start", "stop", "reset", "exit"]),
        (Phase.ENDING, Goal.ENDED, []),
    ],
)
def test_commands_follow_from_phase_and_goal(phase: Phase, goal: Goal, expected: list[str]) -> None:
    assert allowed(status(phase=phase, goal=goal)) == expected


async def test_rates_are_increases_of_counters_over_the_time_of_the_run() -> None:
    states = iter([status(10.0, (unit(0, counted(1)),)), status(12.0, (unit(0, counted(3)),))])
    feed = Feed(lambda: next(states))
    first, second = await feed.frame(), await feed.frame()
    assert first["total"]["meps_hz"] is None  # nothing to compare with
    assert second["total"]["meps_hz"] == 10
    assert second["total"]["bps"] == 8000
    assert second["total"]["latency_s"] == pytest.approx(0.05)
    [row] = second["units"]
    assert (row["wait"], row["wait_share"]) == ("peer", pytest.approx(0.5))


def test_a_restarted_unit_and_another_run_begin_without_rates() -> None:
    meter = Meter()
    meter.rates(status(1.0, (unit(0, counted(5)), unit(1, counted(5)))))
    assert list(meter.rates(status(2.0, (unit(0, counted(1)), unit(1, counted(6)))))) == [1]
    assert meter.rates(status(3.0, (unit(1, counted(9)),), run="r2")) == {}


async def test_all_viewers_share_one_poll_which_ends_with_the_last() -> None:
    asked = []

    def ask():
        asked.append(1)
        return status(len(asked), (unit(0, standing=Standing.LOST, member=False),))

    feed = Feed(ask)
    viewers = [feed.frames() for _ in range(3)]
    for viewer in viewers:
        assert "past" in json.loads(await anext(viewer))
    frames = [json.loads(await anext(viewer)) for viewer in viewers]
    assert frames[0] == frames[1] == frames[2]
    assert (len(asked), feed.polls) == (1, 1)
    for viewer in viewers:
        await viewer.aclose()
    await asyncio.sleep(0)
    assert len(asked) == 1


async def test_past_totals_are_bounded_and_reach_a_new_viewer() -> None:
    times = iter(range(1, MOST_PAST + 100))
    feed = Feed(lambda: status(float(next(times))))
    for _ in range(MOST_PAST + 50):
        await feed.frame()
    viewer = feed.frames()
    past = json.loads(await anext(viewer))["past"]
    assert (len(past), past[-1]["time_s"]) == (MOST_PAST, MOST_PAST + 50)
    await viewer.aclose()


async def test_viewers_are_limited() -> None:
    feed = Feed(status)
    viewers = [feed.frames() for _ in range(MOST_VIEWERS)]
    for viewer in viewers:
        await anext(viewer)
    assert feed.is_full
    await viewers.pop().aclose()
    assert not feed.is_full
    for viewer in viewers:
        await viewer.aclose()


async def test_without_a_run_a_frame_has_the_reason() -> None:
    def ask():
        raise MeasureError("you have no run on this machine")

    frame = await Feed(ask).frame()
    assert frame == {"failure": "you have no run on this machine", "switch": None}
