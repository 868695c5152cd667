import asyncio
import json

import pytest

from daqloom.console.feed import MOST_PAST, MOST_VIEWERS, Feed, commands_of
from daqloom.control.protocol.states import Goal, Phase, Standing
from daqloom.control.record.meter import Bin
from daqloom.control.record.series import SeriesWriter
from daqloom.results.errors import MeasureError
from support.consoles import status, unit

UNITS = ("reset", "include", "exclude")
"""Commands about units."""


@pytest.mark.parametrize(
    ("phase", "goal", "expected"),
    [
        (Phase.WAITING, Goal.IDLE, ["configure", "start", *UNITS, "exit"]),
        (Phase.READY, Goal.READY, ["configure", "start", *UNITS, "exit"]),
        (Phase.RUNNING, Goal.RUNNING, ["stop", *UNITS, "exit"]),
        (
            Phase.ERROR,
            Goal.RUNNING,
            ["configure", "start", "stop", *UNITS, "exit"],
        ),
        (Phase.ENDING, Goal.ENDED, []),
    ],
)
def test_commands_follow_from_phase_and_goal(phase: Phase, goal: Goal, expected: list[str]) -> None:
    assert commands_of(status(phase=phase, goal=goal)) == expected


async def test_a_frame_has_the_rates_of_the_run_and_units_with_trouble_first() -> None:
    units = (
        unit(0, rates={"event_rate_hz": 12.3456789, "wait_consumer": 0.9}),
        unit(1, rates={"event_rate_hz": 10.0}),
        unit(2, member=False, standing=Standing.LOST, reason="its connection ended"),
    )
    rates = {"event_rate_hz": 22.3456789, "latency_p99_s": 0.001}
    state = status(7.0, units, rates=rates, lost={"dropped": 5}, counts={"refused.token": 2})
    frame = await Feed(lambda: state).frame()
    assert [each["unit"] for each in frame["units"]] == [2, 0, 1]
    assert [each["state"] for each in frame["units"]] == ["lost", "running", "running"]
    assert frame["units"][1]["event_rate_hz"] == 12.346
    assert frame["total"] | {"at": 0} == {
        "at": 0,
        "time_s": 7.0,
        "members": 2,
        "event_rate_hz": 22.346,
        "latency_p99_s": 0.001,
    }
    assert frame["losses"] == [("dropped", 5), ("refused.token", 2)]


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


async def test_a_console_that_comes_late_has_the_recorded_past_of_the_run(tmp_path) -> None:
    row = {"events": 30.0, "bytes": 1e3, "unit_s": 4.0, "wait_peer_s": 1.0, "members": 2.0}
    bins = [Bin(float(at), 1.0, row | {"events": 10.0 * at}, Phase.RUNNING, {}) for at in range(9)]
    SeriesWriter(tmp_path).add(bins, 0.0)
    feed = Feed(lambda: status(9.5, record=str(tmp_path), began_s=1000.0))
    await feed.frame()
    viewer = feed.frames()
    past = json.loads(await anext(viewer))["past"]
    assert [each["event_rate_hz"] for each in past[:9]] == [10.0 * at for at in range(9)]
    first = past[0]
    assert (first["at"], first["time_s"], first["members"]) == (1001.0, 1.0, 2)
    assert (first["throughput_bps"], first["wait_peer"]) == (8e3, 0.25)
    assert len(past) == 10
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
