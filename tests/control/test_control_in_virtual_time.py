"""The run control in virtual time: single faults with their known ends, and faults by chance."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daqloom._engine import Counters, UnitStep, transitions
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import Answer, Heartbeat, Pulse
from daqloom.control.protocol.states import Goal, Phase, ReportRefusal, Standing, State
from daqloom.control.run_log import About
from support.measure.virtual_run import World

LONG_S = 400.0


def running(units: int = 4, **changes) -> World:
    world = World(units, **changes)
    world.want(Goal.RUNNING)
    assert world.run(10, lambda: world.control.phase is Phase.RUNNING)
    assert world.control.members == set(range(units))
    world.run(2)
    return world


def runs_with(world: World, members: set[int], within_s: float) -> bool:
    control = world.control
    return world.run(
        within_s, lambda: control.phase is Phase.RUNNING and control.members == members
    )


def log(world: World) -> str:
    return "\n".join(f"{event.time_s:8.2f} {event.text}" for event in world.control.events)


def test_only_the_transitions_of_the_table_are_allowed() -> None:
    after = {(each.state, each.step): each.next for each in transitions()}
    assert after[State.NOT_READY, UnitStep.CONNECTED] is State.READY
    assert after[State.READY, UnitStep.STARTED] is State.RUNNING
    assert after[State.RUNNING, UnitStep.HALTED] is State.NOT_READY
    assert {state for state, step in after if step is UnitStep.FAILED} == set(State)
    assert all(after[state, UnitStep.RESET] is State.NOT_READY for state in State)
    assert [state for state, step in after if step is UnitStep.STARTED] == [State.READY]


def test_a_run_is_configured_started_stopped_and_ended() -> None:
    world = World(3)
    control = world.control
    assert world.run(5, lambda: control.phase is not Phase.WAITING) is False
    for goal, phase in (
        (Goal.READY, Phase.READY),
        (Goal.RUNNING, Phase.RUNNING),
        (Goal.READY, Phase.READY),
        (Goal.RUNNING, Phase.RUNNING),
    ):
        world.want(goal)
        assert world.run(5, lambda phase=phase: control.phase is phase)
        world.run(1)
    assert control.epoch == 2, "a stop is the only reason for a new epoch"
    first = control.first_mep
    assert 1000 <= first <= 1500, "a MEP each millisecond, for a second, goes on where it stopped"
    world.want(Goal.ENDED)
    assert world.run(5, lambda: control.phase is Phase.ENDING)
    assert control.first_mep > first
    assert world.run(5, lambda: control.phase is Phase.ENDED)
    assert world.processes == [None] * 3
    assert control.counts["units_lost"] == 0


def test_a_unit_whose_host_is_down_comes_back_when_it_is_up_and_not_before() -> None:
    world = running()
    world.control.set_host_down(2, is_down=True)
    world.kill(2)
    assert runs_with(world, {0, 1, 3}, 5)
    assert not world.run(LONG_S, lambda: world.control.units[2].process)
    world.control.set_host_down(2, is_down=False)
    assert runs_with(world, {0, 1, 2, 3}, 5)


def test_the_log_names_the_lost_unit_and_counts_the_members() -> None:
    world = running()
    world.kill(2)
    assert runs_with(world, {0, 1, 3}, 5)
    events = world.control.events
    (lost,) = (event for event in events if event.lost is not None)
    assert (lost.lost, lost.about) == (2, About.UNIT)
    building = [event.members for event in events if event.phase is Phase.RUNNING]
    assert (building[0], building[-1]) == (4, 3)


@pytest.mark.parametrize(
    "fault", ["kill", "stop", "stick", "hang_in_a_halt", "disconnect", "break_stream"]
)
def test_the_others_go_on_within_a_few_timeouts_and_the_unit_comes_back(fault: str) -> None:
    world = running()
    if fault == "hang_in_a_halt":
        world.hang(2)
        world.kill(3)
    else:
        getattr(world, fault)(2)
    assert runs_with(world, {0, 1, 3}, 8), log(world)
    world.run(5)
    world.heal()
    assert runs_with(world, {0, 1, 2, 3}, 30), log(world)
    assert world.control.first_mep >= 2000


def test_a_unit_reports_the_reason_of_its_end() -> None:
    world = running(restart=False)
    world.break_stream(2)
    assert runs_with(world, {0, 1, 3}, 2)
    assert "1 stream has invalid descriptors" in world.control.units[2].reason


def test_a_silent_unit_is_noticed_after_the_timeout_and_not_before() -> None:
    world = running(fault_timeout_s=1.0, heartbeat_s=0.2)
    world.reaches = lambda a, b: True  # nor do others complain
    world.stop(1)
    assert not world.run(0.75, lambda: 1 not in world.control.members)
    assert world.run(0.6, lambda: 1 not in world.control.members)


def test_a_stopped_unit_that_is_continued_is_refused_until_it_has_been_reset() -> None:
    world = running()
    world.stop(1)
    assert runs_with(world, {0, 2, 3}, 5)
    old = world.processes[1].unit.process.epoch
    world.run(10)
    world.go_on(1)
    session = world.processes[1].session
    late = Heartbeat(pulse=Pulse(epoch=old, state=State.RUNNING, suspects=(0, 2, 3)))
    assert world.control.reported(world.now, 1, session, wire.record(late)) is ReportRefusal.EPOCH
    assert world.control.members == {0, 2, 3}
    assert runs_with(world, {0, 1, 2, 3}, 5)


def test_without_restart_a_lost_unit_waits_for_the_operator() -> None:
    world = running(restart=False)
    world.kill(1)
    world.stop(2)
    assert runs_with(world, {0, 3}, 5)
    world.heal()
    world.run(60)
    assert world.control.members == {0, 3}
    world.reset(1, 2)
    assert runs_with(world, {0, 1, 2, 3}, 10), log(world)


def test_a_reset_of_a_member_touches_no_process_of_the_others() -> None:
    world = running()
    sessions = [process.session for process in world.processes]
    world.reset(2)
    assert runs_with(world, {0, 1, 2, 3}, 10)
    assert [process.session for process in world.processes] == sessions


def test_a_reset_of_a_unit_that_does_not_answer_ends_its_process() -> None:
    world = running(restart=False)
    world.stop(2)
    assert runs_with(world, {0, 1, 3}, 5)
    session = world.processes[2].session
    world.reset(2)
    assert runs_with(world, {0, 1, 2, 3}, 30), log(world)
    assert world.processes[2].session != session


def test_a_cut_connection_is_made_anew_with_the_same_members() -> None:
    world = running()
    world.cut(0, 2)
    assert world.run(5, lambda: world.control.phase is Phase.HALTING)
    world.heal()
    assert runs_with(world, {0, 1, 2, 3}, 5)
    assert world.control.counts["units_lost"] == 0


def test_a_connection_that_stays_cut_costs_one_of_the_two() -> None:
    world = running()
    world.cut(0, 2)
    assert world.run(60, lambda: world.control.counts["units_lost"] == 1)
    assert world.run(5, lambda: world.control.phase is Phase.RUNNING)
    assert world.control.members in ({1, 2, 3}, {0, 1, 3})


def test_an_unreachable_unit_is_dropped_and_not_its_accusers() -> None:
    world = running()
    for other in (0, 2, 3):
        world.cut(1, other)
    assert runs_with(world, {0, 2, 3}, 10), log(world)


def test_a_run_that_stands_still_for_no_known_reason_ends_in_error() -> None:
    world = running(3)
    for process in world.processes:
        process.node.counters = lambda world=world: Counters(
            {"beats": round(1e6 * world.now), "steps": 7}
        )
    assert world.run(60, lambda: world.control.phase is Phase.ERROR), log(world)
    assert "event building has stalled" in world.control.failure
    assert world.control.counts["units_lost"] == 0


def test_a_run_that_stands_still_again_and_again_and_builds_in_between_goes_on() -> None:
    """However short the time in between is."""
    world = running(3)
    for _ in range(6):
        world.stalled = True
        assert world.run(5, lambda: world.control.phase is Phase.HALTING), log(world)
        world.stalled = False
        assert runs_with(world, {0, 1, 2}, 5), log(world)
        world.run(0.5)
    assert world.control.counts["units_lost"] == 0


def test_a_unit_that_waits_for_its_source_does_not_count_as_stopped() -> None:
    world = running(3)
    for process in world.processes:
        counters = Counters({"steps": 7, "waits": 1})
        process.node.counters = lambda counters=counters: counters
    world.run(60)
    assert world.control.counts["regroupings"] == 0


def test_too_few_units_are_an_error_that_the_operator_can_mend() -> None:
    world = running(3, restart=False, fewest_members=2)
    world.kill(0)
    world.kill(1)
    assert world.run(5, lambda: world.control.phase is Phase.ERROR)
    assert "too few units are left, 1 of 3" in world.control.failure
    world.reset(0, 1)
    world.run(5)
    world.want(Goal.RUNNING)
    assert runs_with(world, {0, 1, 2}, 10), log(world)


def test_an_entry_of_the_log_has_a_subject_apart_from_its_text() -> None:
    world = running(3, restart=False, fewest_members=2)
    about = {event.about for event in world.control.events}
    assert about == {About.COURSE}
    before = len(world.control.events)
    world.kill(0)
    world.kill(1)
    assert world.run(5, lambda: world.control.phase is Phase.ERROR)
    told = world.control.events[before:]
    losses = [event.text for event in told if event.about is About.UNIT]
    assert losses == [f"unit {number} is lost: its connection ended" for number in (0, 1)]
    [failure] = [event.text for event in told if event.about is About.FAILURE]
    assert failure == f"error: {world.control.failure}"
    # The reason of a halt names the lost unit, and is no second trouble.
    assert not any(e.is_trouble for e in told if e.text.startswith("halting"))


def test_a_slow_configuration_is_no_loss_while_heartbeats_arrive() -> None:
    world = World(2)
    world.control.want(world.now, Goal.RUNNING)
    assert world.run(10, lambda: world.processes[1] is not None)
    world.hang(1)
    world.run(4 * world.control.plan.order_timeout_s)
    assert world.control.counts["units_lost"] == 0
    world.unhang(1)
    assert runs_with(world, {0, 1}, 10), log(world)


def test_units_that_never_join_are_named() -> None:
    world = World(3, launches=False, launch_timeout_s=20.0)
    world.control.want(world.now, Goal.RUNNING)
    world._boot(1)
    assert world.run(30, lambda: world.control.phase is Phase.ERROR)
    assert world.control.failure == "2 of 3 units did not join within 20 s: 0, 2"


def test_a_process_that_breaks_again_and_again_costs_less_and_less() -> None:
    world = running()
    for _ in range(400):
        world.run(1)
        if world.processes[1]:
            world.kill(1)
    assert world.control.counts["units_lost"] < 20
    assert world.control.phase is Phase.RUNNING


def test_a_run_control_that_was_stopped_itself_loses_no_unit() -> None:
    world = running()
    world.control.tick(world.now + 30)
    assert world.control.members == {0, 1, 2, 3}


def test_strange_reports_are_refused_and_change_nothing() -> None:
    world = running()
    control, session = world.control, world.processes[0].session
    before = (control.phase, control.epoch, control.members)
    running_ = State.RUNNING
    for number, sess, report, why in (
        (0, session + 99, Heartbeat(pulse=Pulse(epoch=1, state=running_)), ReportRefusal.SESSION),
        (0, session, Heartbeat(pulse=Pulse(epoch=77, state=running_)), ReportRefusal.EPOCH),
        (0, session, Heartbeat(pulse=Pulse(epoch=0, state=running_)), ReportRefusal.EPOCH),
        (0, session, Answer(order=10**9, state=running_), ReportRefusal.UNASKED),
    ):
        assert control.reported(world.now, number, sess, wire.record(report)) is why
        assert (control.phase, control.epoch, control.members) == before
    assert not control.is_free(0)


FAULTS = ["kill", "stop", "go_on", "hang", "stick", "break_stream", "disconnect", "reset", "cut"]
FAULTS += ["cut_off", "kill_all", "stop_all", "cut_off_all", "disconnect_all", "goal"]


@st.composite
def faults(draw: st.DrawFn) -> tuple[float, str, int, int]:
    return (
        draw(st.sampled_from([0.0, 0.01, 0.06, 0.3, 1.0, 3.0, 20.0])),
        draw(st.sampled_from(FAULTS)),
        draw(st.integers(0, 3)),
        draw(st.integers(0, 3)),
    )


def commit(world: World, kind: str, a: int, b: int) -> None:
    if kind == "reset":
        world.reset(a)
    elif kind == "goal":
        world.want((Goal.READY, Goal.RUNNING)[b % 2])
    elif kind == "cut":
        if a != b:
            world.cut(a, b)
    elif kind.endswith("_all"):
        world.all(kind.removesuffix("_all"))
    else:
        getattr(world, kind)(a)
    world.act()


TWO_RESETS = [(0.01, "stop_all", 0, 0), (0.0, "kill", 0, 0), (3.0, "reset", 0, 0)]
TWO_RESETS += [(0.0, "reset", 0, 0)]
"""A unit carries out both before it reports what the first of its two nodes has built."""


@settings(max_examples=150)
@given(st.lists(faults(), max_size=20), st.booleans(), st.booleans())
@example(course=TWO_RESETS, restart=True, here=False)
def test_whatever_breaks_the_run_goes_on(course, restart, here) -> None:
    world = World(4, restart=restart, here=here)
    control = world.control
    world.want(Goal.RUNNING)
    if course and course[0][0]:
        world.run(3)
    for pause_s, kind, a, b in course:
        world.run(pause_s)
        commit(world, kind, a, b)
    world.heal()
    world.want(Goal.RUNNING)
    settled = (Phase.RUNNING, Phase.ERROR)
    if restart and control.phase is not Phase.ERROR:
        assert world.run(
            LONG_S,
            lambda: (
                (control.phase is Phase.RUNNING and len(control.members) == 4)
                or control.phase is Phase.ERROR
            ),
        ), log(world)
    assert world.run(LONG_S, lambda: control.phase in settled), log(world)
    if control.phase is Phase.ERROR:
        world.reset(*range(4))  # the operator looks
        world.run(30)
        world.want(Goal.RUNNING)
    assert world.run(LONG_S, lambda: control.phase is Phase.RUNNING), log(world)
    for unit in control.units:
        if unit.standing is Standing.LOST:
            assert unit.number not in control.members
    ends(world)


# ---- faults of all units together ---------------------------------------------------------------


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("fault", ["kill", "stop", "cut_off", "disconnect"])
def test_no_mep_is_handed_out_twice_when_all_units_are_lost_together(fault, here) -> None:
    world = running(here=here)
    for _ in range(4):
        world.all(fault)
        world.run(2.5)
        world.heal()  # what they answered while nobody heard them shows now; the world looks
        assert runs_with(world, {0, 1, 2, 3}, 150), log(world)
        world.run(2)
    ends(world)


def test_units_that_are_cut_off_answer_nothing_once_their_lease_is_over() -> None:
    world = running(fault_timeout_s=1.0, heartbeat_s=0.2)
    before = world.built[1].advance()
    world.all("cut_off")
    world.run(10)
    # Counted until the last report: at least until now less a heartbeat, at most until now.
    assert before + 800 <= world.built[1].advance() <= before + 1000


def test_stopped_units_report_before_the_run_continues_and_no_mep_is_skipped() -> None:
    world = running()
    world.all("stop")
    world.run(2.5)
    world.heal()
    assert runs_with(world, {0, 1, 2, 3}, 30), log(world)
    assert world.first_meps[-1] == world.built[1].advance()


def test_leased_meps_of_units_without_report_are_skipped() -> None:
    """Their machines are gone: they have answered up to their last heartbeat at least, and all
    that was leased to them at most: 500, and what four timeouts bring at 1000 a second."""
    world = running(here=False, leased_meps=500, fault_timeout_s=1.0)
    known = world.control.next_mep
    world.all("kill")
    answered = world.built[1].advance()
    assert runs_with(world, {0, 1, 2, 3}, 30), log(world)
    assert known <= answered < world.first_meps[-1]
    assert known + 4000 <= world.first_meps[-1] <= known + 500 + 4000 * 1.5  # as heartbeats come
    assert f"MEPs {known} to {world.first_meps[-1] - 1} are skipped" in log(world)


def test_a_lease_that_is_short_of_meps_holds_a_run_up_until_its_pace_is_known() -> None:
    """Leases of a hundred MEPs a heartbeat, where a thousand a second could be built."""
    world = running(leased_meps=100, heartbeat_s=0.2)
    assert world.control.counts["units_lost"] == 0
    before = world.built[1].advance()
    assert before < 2000 - 50
    world.run(10)
    assert abs(world.built[1].advance() - before - 10_000) <= 1  # it counts whole MEPs


def test_a_run_control_that_stood_still_goes_on_with_the_same_epoch() -> None:
    world = running()
    world.all("cut_off")  # nobody hears it, and it hears nobody: its ticks stop too
    world.control.tick(world.now + 5)
    world.now += 5
    world.heal()
    world.run(3)
    assert world.control.epoch == 1
    assert world.control.members == {0, 1, 2, 3}
    assert world.control.next_mep > world.built[1].advance() - 1000


@settings(max_examples=100)
@given(st.lists(faults(), max_size=8), st.booleans())
def test_a_run_can_be_ended_at_any_time_whatever_is_broken(course, restart) -> None:
    world = World(4, restart=restart)
    world.want(Goal.RUNNING)
    for pause_s, kind, a, b in course:
        world.run(pause_s)
        commit(world, kind, a, b)
    ends(world)


def ends(world: World) -> None:
    """In order, and no process is left, stopped or hung ones among them."""
    world.want(Goal.ENDED)
    assert world.run(60, lambda: world.control.phase is Phase.ENDED), log(world)
    assert world.processes == [None] * 4


def test_a_member_that_is_lost_while_the_run_ends_is_a_member_no_more() -> None:
    world = World(4)
    world.want(Goal.RUNNING)
    assert world.run(5, lambda: world.control.phase is Phase.STARTING)
    world.stop(0)
    ends(world)
