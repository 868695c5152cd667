"""Recordings over all their files: duplicate, lost and incomplete events."""

import json
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.data import Mep, MepState, Mfp, check_recording
from daqloom.data import coverage as coverage_module
from daqloom.data.coverage import LAST_EVENT, Coverage, Duplicate, EventRange, Incomplete
from support.command import invoke

PACKING = 10
FAILED = 1
BAD_INPUT = 2


def mfp(source, mep, events=PACKING):
    """The fragments of a source for the events of MEP `mep`."""
    return Mfp(mep * PACKING, source, [(0, b"data")] * events).encode()


def write(path, source, meps):
    path.write_bytes(b"".join(mfp(source, mep) for mep in meps))
    return path


@pytest.fixture
def recorded(tmp_path):
    """Events 0 to 79 of sources 0 and 1, written by two units that took turns."""
    for unit in (0, 1):
        for source in (0, 1):
            write(tmp_path / f"unit-{unit}-source-{source}-0001.mfp", source, range(unit, 8, 2))
    return tmp_path


check = partial(invoke, "data", "check")


def test_a_recording_of_every_event_once(recorded):
    found = check_recording(str(recorded))
    assert found.is_right
    assert found.is_complete
    assert (found.sources, found.mfps, found.gaps.events) == (2, 16, 80)
    assert found.span == EventRange(0, 79)
    done = check(recorded)
    assert done.exit_code == 0
    assert "80 events, 0 to 79, of 2 sources: 16 MFPs\n" in done.stdout
    assert "duplicates: none" in done.stdout
    assert "gaps: none" in done.stdout


def test_events_that_two_units_recorded_are_duplicates(recorded):
    # Unit 1 wrote of source 1 the MEPs 1, 3, 5 and 7; a third file has 3 and 4 again.
    again = write(recorded / "unit-1-source-1-0002.mfp", 1, [3, 4])
    found = check_recording(recorded)
    assert not found.is_right
    assert found.is_complete
    assert found.duplicates == 2 * PACKING
    assert all(isinstance(each, Duplicate) for each in found.duplicate_examples)
    assert {each.source for each in found.duplicate_examples} == {1}
    covered = {n for each in found.duplicate_examples for n in range(each.first, each.last + 1)}
    assert covered == set(range(30, 50))
    done = check(recorded)
    assert done.exit_code == FAILED
    assert "duplicates: 20 (source, event) pairs occur more than once" in done.stdout
    assert "source 1, again in" in done.stdout
    # The files are whole, each by itself: only together they have anything twice.
    assert check(again).exit_code == 0
    assert check(*recorded.glob("*.mfp")).exit_code == 0


def test_packets_that_come_twice_or_overlap_are_duplicates(tmp_path):
    write(tmp_path / "a.mfp", 0, [0, 1, 2, 1])
    found = check_recording(tmp_path)
    assert found.duplicates == PACKING
    assert found.duplicate_examples == [Duplicate(10, 19, 0, str(tmp_path / "a.mfp"))]
    (tmp_path / "a.mfp").write_bytes(mfp(0, 0) + Mfp(7, 0, [(0, b"")] * 5).encode())
    found = check_recording(tmp_path)
    assert found.duplicates == 3  # events 7, 8 and 9
    assert [(each.first, each.last) for each in found.duplicate_examples] == [(7, 9)]
    assert found.span == EventRange(0, 11)


def test_events_that_no_source_has_are_lost(recorded):
    for source in (0, 1):
        write(recorded / f"unit-1-source-{source}-0001.mfp", source, [1, 7])  # not 3 and 5
    found = check_recording(recorded)
    assert found.is_right
    assert not found.is_complete
    assert found.gaps.lost == [EventRange(30, 39), EventRange(50, 59)]
    assert (found.gaps.lost_events, found.gaps.incomplete_events, found.gaps.missing) == (20, 0, 0)
    done = check(recorded)
    assert done.exit_code == 0
    assert "gaps: 20 events are lost: no source has them\n  events 30 to 39\n" in done.stdout
    assert check(recorded, "--complete").exit_code == FAILED


def test_events_that_some_source_lacks_are_incomplete(recorded):
    write(recorded / "unit-1-source-1-0001.mfp", 1, [1, 5])  # not 3 and 7
    write(recorded / "unit-0-source-2-0001.mfp", 2, [0, 1, 2, 3, 4, 5])
    found = check_recording(recorded)
    assert found.gaps.incomplete == [
        Incomplete(30, 39, missing_sources=(1,)),
        Incomplete(60, 69, missing_sources=(2,)),
        Incomplete(70, 79, missing_sources=(1, 2)),
    ]
    assert found.gaps.incomplete_events == 30
    assert found.gaps.missing == 40
    assert found.gaps.lost_events == 0
    printed = check(recorded).stdout
    assert "30 events are incomplete: 40 (source, event) pairs are missing" in printed
    assert "events 70 to 79: without sources 1, 2\n" in printed


def test_meps_distinguish_missing_from_empty_sources(tmp_path):
    def mep(number, *entries):
        return Mep(number, number * PACKING, PACKING, entries).encode()

    def whole(source, number):
        return (source, MepState.COMPLETE, mfp(source, number))

    empty, missing = (1, MepState.EMPTY, b""), (1, MepState.MISSING, b"")
    (tmp_path / "a.mep").write_bytes(mep(0, whole(0, 0), empty) + mep(1, whole(0, 1), missing))
    found = check_recording(tmp_path)
    assert found.gaps.incomplete == [Incomplete(10, 19, missing_sources=(1,))]
    assert found.gaps.missing == PACKING


def test_folders_of_several_machines_are_one_recording(recorded, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    for path in recorded.glob("unit-1-*"):
        path.rename(there / path.name)
    assert check_recording(recorded).gaps.lost_events == 30
    assert check_recording([recorded, there]).is_complete
    assert check_recording([recorded, recorded / ".." / recorded.name, there]).is_right


def test_damage_is_listed_and_the_rest_counts(recorded):
    path = recorded / "unit-1-source-1-0001.mfp"
    path.write_bytes(path.read_bytes()[:-1])  # of MEP 7
    found = check_recording(recorded)
    assert found.fault_count == 1
    assert found.gaps.incomplete == [Incomplete(70, 79, missing_sources=(1,))]
    done = check(recorded, "--json")
    assert done.exit_code == FAILED
    record = json.loads(done.stdout)
    assert [each["fault_count"] for each in record["files"]] == [0, 0, 0, 1]
    assert record["recording"]["fault_count"] == 1
    assert record["recording"]["incomplete_examples"] == [
        {"first": 70, "last": 79, "missing_sources": [1]}
    ]


def test_unfinished_files_alone_are_no_recording(recorded):
    (recorded / "unit-0-source-0-0002.mfp.77.part").write_bytes(mfp(0, 0))
    found = check_recording(recorded)
    assert found.is_right
    assert found.unfinished == [str(recorded / "unit-0-source-0-0002.mfp.77.part")]
    assert "1 unfinished file was not read" in check(recorded).stdout
    for path in recorded.glob("*.mfp"):
        path.unlink()
    done = check(recorded)
    assert done.exit_code == BAD_INPUT
    assert f"{recorded} has no files that end in .mfp or .mep" in done.stderr


def test_event_numbers_at_the_end_of_64_bits_are_a_fault(tmp_path):
    last = Mfp(LAST_EVENT, 0, [(0, b"")]).encode()
    beyond = Mfp(LAST_EVENT, 0, [(0, b""), (0, b"")]).encode()
    (tmp_path / "a.mfp").write_bytes(last + beyond)
    found = check_recording(tmp_path)
    assert found.span == EventRange(LAST_EVENT, LAST_EVENT)
    [fault] = found.files[0].faults
    assert (fault.offset, fault.event) == (len(last), LAST_EVENT)
    assert "beyond" in fault.reason


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 12), st.booleans()),
        max_size=60,
    )
)
def test_intervals_count_as_sets_of_events_do(added):
    """Reference: a counter with one entry for each event, however often intervals are merged."""
    found = Coverage()
    counted: Counter[tuple[int, int]] = Counter()
    for number, (source, first, events, merges) in enumerate(added):
        found.begin_file(str(number))
        found.add(source, first, events)
        counted.update((source, first + event) for event in range(events))
        if merges:
            found.duplicates()
    repeated, examples = found.duplicates()
    assert repeated == sum(counted.values()) - len(counted)
    for each in examples:
        assert all(counted[each.source, n] > 1 for n in range(each.first, each.last + 1))
        source, first, events, _ = added[int(each.file)]
        assert source == each.source
        assert first <= each.first <= each.last < first + events
    assert bool(examples) == bool(repeated)

    events_seen = {event for _, event in counted}
    if not events_seen:
        assert found.span() is None
        return
    span = range(min(events_seen), max(events_seen) + 1)
    assert found.span() == EventRange(span[0], span[-1])
    gaps = found.gaps()
    lacking = {
        event: tuple(s for s in found.sources if (s, event) not in counted) for event in events_seen
    }
    assert gaps.events == len(events_seen)
    assert gaps.lost_events == len(span) - len(events_seen)
    assert gaps.incomplete_events == sum(1 for sources in lacking.values() if sources)
    assert gaps.missing == sum(map(len, lacking.values()))
    for gap in gaps.incomplete:
        for event in range(gap.first, gap.last + 1):
            assert lacking[event] == gap.missing_sources
    for lost in gaps.lost:
        assert not events_seen & set(range(lost.first, lost.last + 1))


def test_memory_does_not_grow_with_the_events(monkeypatch):
    # Two units take turns, each in files of 1 000 MEPs: when both have come, one interval is left.
    monkeypatch.setattr(coverage_module, "PENDING", 100)
    found = Coverage()
    kept = []
    for part in range(20):
        for unit in (0, 1):
            found.begin_file(f"{part}-{unit}")
            for turn in range(1000):
                found.add(0, (2000 * part + 2 * turn + unit) * PACKING, PACKING)
        found.duplicates()
        kept.append(len(found._sources[0].firsts))
    assert kept == [1] * 20
    assert found.gaps().events == 40_000 * PACKING
