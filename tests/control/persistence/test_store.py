"""Files of a run: what is stored is read again, and nothing else is accepted."""

import json
import os
import shutil
import stat

import pytest

from daqloom._engine import RunControl, RunPlan
from daqloom.control.persistence.store import (
    RESERVED,
    RUN,
    STATE,
    FormerSetup,
    Store,
    StoredSetup,
    interrupted_run,
)
from daqloom.control.protocol import wire
from daqloom.control.protocol.snapshot import Balance, RunSnapshot
from daqloom.control.protocol.states import Goal, Phase, State
from daqloom.control.record.folders import locked_run_folder
from daqloom.machine.foreign import began_of
from daqloom.machine.processes import ProcessRecord
from daqloom.results.errors import MeasureError
from support.measure.virtual_run import World

PROCESSES = [ProcessRecord((0, 1), 4711, 12)]


def store_in(folder):
    return Store.new(folder, "laptop", "abcd1234", {"title": "a run"})


def lost_unit() -> World:
    """A run with an ended epoch, a lost unit and a running epoch."""
    world = World(3, control_grace_s=60.0)
    world.want(Goal.RUNNING)
    assert world.run(10, lambda: world.control.phase is Phase.RUNNING)
    world.run(3)
    world.kill(2)
    assert world.run(10, lambda: world.control.phase is Phase.RUNNING)
    world.run(0.5)
    return world


def test_a_stored_state_is_read_again(tmp_path):
    world, store = lost_unit(), store_in(tmp_path)
    store.save(world.control, 5.0, 10**18, PROCESSES)
    found = Store.find(tmp_path)
    assert found
    assert found.state
    assert (found.about.name, found.about.run) == ("laptop", "abcd1234")
    assert found.about.token == store.about.token
    assert found.state.began_ns == 10**18
    [row] = found.state.processes
    assert (row.units, row.pid, row.began) == ((0, 1), 4711, 12)
    assert found.state.snapshot == wire.message(world.control.snapshot())
    other = RunControl(world.plan.rules)
    other.resume(7.0, wire.record(found.state.snapshot))
    assert other.phase is Phase.ATTACHING
    assert (other.epoch, other.members) == (world.control.epoch, {0, 1})
    assert other.balance().skipped == world.control.balance().skipped
    assert other.counts["units_lost"] == 1
    again = other.snapshot()
    assert (again.epoch, again.reserved_end) == (other.epoch, world.control.reserved_end)


def test_the_last_setup_is_stored_with_those_before_it(tmp_path):
    world, store = lost_unit(), store_in(tmp_path)
    store.save(world.control, 5.0, 10**18, PROCESSES)
    assert Store.find(tmp_path).scenario == {"title": "a run"}
    balance = Balance(unfinished=1, skipped=2, twice=0)
    former = FormerSetup(packing=4, counted={1: {"meps_built": 3, "waits": 0.5}}, balance=balance)
    setup = StoredSetup(scenario={"title": "another"}, run_number=7, former=(former,))
    store.save(world.control, 5.0, 10**18, PROCESSES, setup)
    found = Store.find(tmp_path)
    assert found.scenario == {"title": "another"}
    assert found.state.setup == setup


def test_a_run_whose_state_is_missing_is_not_begun_again(tmp_path):
    store = store_in(tmp_path)
    assert Store.find(tmp_path).state is None
    store.write_address("127.0.0.1:4711")
    with pytest.raises(MeasureError, match=r"state\.json is missing, though the run has begun"):
        Store.find(tmp_path)
    (tmp_path / STATE).symlink_to("nowhere")
    with pytest.raises(MeasureError, match=r"state\.json cannot be read"):
        Store.find(tmp_path)


def test_units_of_a_former_run_control_are_known_while_they_live(tmp_path):
    store = store_in(tmp_path)
    here = os.getpid()
    for began, lives in ((began_of(here), True), (1, False)):
        store.save(lost_unit().control, 5.0, 10**18, [ProcessRecord((0,), here, began)])
        assert Store.find(tmp_path).has_processes is lives


def test_only_the_user_can_read_the_files(tmp_path):
    store = store_in(tmp_path)
    store.save(lost_unit().control, 0.0, 0, [])
    for name in (RUN, STATE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_leases_are_reserved_between_two_states(tmp_path):
    world, store = lost_unit(), store_in(tmp_path)
    store.save(world.control, 0.0, 0, [])
    before, written = world.control.reserved_end, (tmp_path / STATE).read_bytes()
    assert world.run(200, lambda: world.control.reserved_end > before)
    changes = world.control.changes
    store._changes = (changes, (), None)
    store.save(world.control, 1.0, 0, [])
    assert (tmp_path / STATE).read_bytes() == written
    assert int((tmp_path / RESERVED).read_text()) == world.control.reserved_end
    found = Store.find(tmp_path)
    assert found.state.snapshot.reserved_end == world.control.reserved_end


def test_old_counters_are_stored_again_though_nothing_happens(tmp_path):
    world, store = lost_unit(), store_in(tmp_path)
    store.save(world.control, 0.0, 0, [])
    (tmp_path / STATE).unlink()
    store.save(world.control, 9.0, 0, [])
    assert not (tmp_path / STATE).exists()
    store.save(world.control, 11.0, 0, [])
    assert (tmp_path / STATE).exists()


def test_a_run_that_has_ended_is_not_continued(tmp_path):
    assert Store.find(tmp_path) is None
    world, store = World(2), store_in(tmp_path)
    assert Store.find(tmp_path).state is None
    world.want(Goal.ENDED)
    assert world.run(30, lambda: world.control.phase is Phase.ENDED)
    store.save(world.control, 0.0, 0, [])
    assert Store.find(tmp_path) is None


def test_the_newest_run_of_a_scenario_without_run_control_is_found(tmp_path):
    folders = [tmp_path / name for name in ("held", "damaged", "other", "newer", "older")]
    for folder in folders:
        folder.mkdir()
        Store.new(folder, folder.name if folder.name == "other" else "laptop", "r", {})
    (folders[1] / STATE).write_text("{}")
    with locked_run_folder(folders[0]):
        assert interrupted_run(folders, "laptop") == folders[3]
    assert interrupted_run(folders, "none") is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b'{"began_ns": 1}',
        b'{"began_ns": 1e400, "snapshot": {}}',
        b"\xff" * 100,
    ],
)
def test_a_damaged_state_is_one_sentence(tmp_path, damage):
    store_in(tmp_path)
    (tmp_path / STATE).write_bytes(damage)
    with pytest.raises(MeasureError, match=r"state.json is not the state of a run .*begin a new"):
        Store.find(tmp_path)


@pytest.mark.parametrize("text", ["x", "-1", str(1 << 63)])
def test_a_damaged_reserve_is_one_sentence(tmp_path, text):
    store_in(tmp_path).save(lost_unit().control, 0.0, 0, [])
    (tmp_path / RESERVED).write_text(text)
    with pytest.raises(MeasureError, match="reserved is not the state of a run"):
        Store.find(tmp_path)


def test_files_of_others_and_of_other_versions_are_refused(tmp_path):
    store_in(tmp_path).save(lost_unit().control, 0.0, 0, [])
    (tmp_path / STATE).chmod(0o622)
    with pytest.raises(MeasureError, match="can be written by other users"):
        Store.find(tmp_path)
    (tmp_path / STATE).chmod(0o600)
    about = json.loads((tmp_path / RUN).read_text())
    (tmp_path / RUN).write_text(json.dumps(about | {"version": "0.0.9"}))
    with pytest.raises(MeasureError, match=r"has a run of daqloom 0\.0\.9"):
        Store.find(tmp_path)


def test_the_state_of_another_run_is_refused(tmp_path):
    snapshot = lost_unit().control.snapshot()
    with pytest.raises(ValueError, match="3 units; expected one of 4 units"):
        RunControl(RunPlan(units=4)).resume(0.0, snapshot)
    message = wire.message(snapshot)
    assert isinstance(message, RunSnapshot)
    units = tuple(
        unit.model_copy(update={"standing": "lost"}) if number == 0 else unit
        for number, unit in enumerate(message.units)
    )
    with pytest.raises(ValueError, match="contradicts itself"):
        RunControl(RunPlan(units=3)).resume(
            0.0, wire.record(message.model_copy(update={"units": units}))
        )


def test_a_full_disk_is_a_failure_of_the_store_and_not_of_the_run(tmp_path):
    world, store = lost_unit(), store_in(tmp_path)
    store.folder = tmp_path / "gone" / "with" / "file"
    (tmp_path / "gone").write_text("")
    store.save(world.control, 0.0, 0, [])
    assert "cannot write" in store.failure
    assert State.RUNNING in {unit.state for unit in world.control.units}


def test_a_copy_of_a_run_is_refused_while_the_original_is_there(tmp_path):
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    store_in(original).save(lost_unit().control, 5.0, 10**18, PROCESSES)
    shutil.copytree(original, copy)
    with pytest.raises(MeasureError, match=f"copy is a copy of a run; .* original, {original}"):
        Store.find(copy)
    (tmp_path / "link").symlink_to(original)
    assert Store.find(tmp_path / "link").about == Store.find(original).about
    shutil.rmtree(original)
    assert Store.find(copy).about.folder == str(original)
