"""Snapshots of a run control, with the fields of the engine's records, documented there."""

from typing import Annotated

from pydantic import Field

from daqloom.control.protocol.messages import (
    MOST_UNITS,
    Count,
    Counters,
    Epoch,
    Message,
    Slots,
    UnitNumber,
    UnitNumbers,
)
from daqloom.control.protocol.states import Goal, Phase, Standing

Signed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Number = Annotated[int, Field(ge=0, lt=2**64)]
Seconds = Annotated[float, Field(ge=0)]
MepCounts = Annotated[dict[UnitNumber, tuple[Signed, Signed]], Field(max_length=MOST_UNITS)]
"""Unit: its MEPs finished, and those granted and not finished."""


class TallySnapshot(Message):
    """Sums of a unit's counters."""

    totals: Counters
    last: Counters
    read_s: Seconds
    made_s: Seconds


class Balance(Message):
    """Fates of MEPs that are in no counter."""

    unfinished: Signed
    skipped: Signed
    twice: Signed


class LedgerEpoch(Message):
    """Accounts of one epoch."""

    first: Count
    takes_turns: bool
    builders: UnitNumbers
    before: MepCounts
    end: Count | None
    counted: MepCounts


class UnitSnapshot(Message):
    """State of a unit."""

    standing: Standing
    process: bool
    reason: Annotated[str, Field(max_length=5000)]
    last_report: Count
    failures: Count
    is_excluded: bool
    is_source_excluded: bool
    tally: TallySnapshot
    is_leased: bool
    lease_session: Count
    reads: bool
    is_settled: bool
    has_reported: bool
    was_left_out: bool


class RunSnapshot(Message):
    """State of a run."""

    phase: Phase
    goal: Goal
    epoch: Epoch
    leased_epoch: Epoch
    first_mep: Count
    next_mep: Count
    reserved_end: Count
    pace_hz: Seconds
    order: Count
    session: Count
    beat: Number
    was_ready: bool
    members: UnitNumbers
    readouts: Slots
    builders: Slots
    readout_slots: Slots = ()
    builder_slots: Slots = ()
    failure: Annotated[str, Field(max_length=100_000)]
    units_lost: Count
    regroupings: Count
    run_events: Count
    closed: Balance
    epochs: Annotated[tuple[LedgerEpoch, ...], Field(max_length=100_000)]
    units: Annotated[tuple[UnitSnapshot, ...], Field(max_length=MOST_UNITS)]
