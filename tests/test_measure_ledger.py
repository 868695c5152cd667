"""What has become of a run's MEPs, from counters that are made up, by hand."""

from hypothesis import given
from hypothesis import strategies as st

from daqloom._engine import Counters
from daqloom.measure.ledger import Balance, Ledger


def counters(built: int = 0, granted: int | None = None, **others: int) -> Counters:
    granted = built if granted is None else granted
    fates = {"built": built, "granted": granted} | others
    return Counters({f"meps_{fate}": count for fate, count in fates.items()})


def test_units_that_built_their_share_leave_nothing() -> None:
    """MEPs 0 to 6 of three units that take turns: 3, 2 and 2 of them."""
    totals = {unit: counters() for unit in range(3)}
    ledger = Ledger(takes_turns=True)
    ledger.begin(0, (0, 1, 2), totals.__getitem__)
    totals.update({0: counters(3), 1: counters(2), 2: counters(2)})
    assert ledger.balance(7, totals.__getitem__) == Balance()


def test_granted_and_not_built_is_unfinished_and_never_granted_is_skipped() -> None:
    """Of MEPs 0 to 11, unit 1 has six: it was granted 4, built 2, dropped 1 and was killed."""
    totals = {0: counters(), 1: counters()}
    ledger = Ledger(takes_turns=True)
    ledger.begin(0, (0, 1), totals.__getitem__)
    totals.update({0: counters(5, discarded=1), 1: counters(2, granted=4, dropped=1)})
    assert ledger.balance(12, totals.__getitem__) == Balance(unfinished=1, skipped=2)


def test_the_balance_of_ended_epochs_leaves_out_what_is_in_flight() -> None:
    """Unit 1 was granted 2 of its 5 MEPs and built 1; in the next epoch another 2 are under way."""
    totals = {0: counters(), 1: counters()}
    ledger = Ledger(takes_turns=True)
    ledger.begin(0, (0, 1), totals.__getitem__)
    totals.update({0: counters(5), 1: counters(1, granted=2)})
    assert ledger.ended(totals.__getitem__) == Balance()
    ledger.begin(10, (0,), totals.__getitem__)
    totals[0] = counters(8, granted=10)
    assert ledger.ended(totals.__getitem__) == Balance(unfinished=1, skipped=3)
    assert ledger.balance(15, totals.__getitem__) == Balance(unfinished=3, skipped=3)


def test_what_one_unit_built_twice_is_not_made_up_by_what_another_has_not_built() -> None:
    totals = {0: counters(), 1: counters()}
    ledger = Ledger(takes_turns=True)
    ledger.begin(0, (0, 1), totals.__getitem__)
    totals.update({0: counters(8), 1: counters(2)})
    assert ledger.balance(10, totals.__getitem__) == Balance(skipped=3, twice=3)


def test_where_no_turns_are_taken_only_all_units_together_have_a_share() -> None:
    totals = {0: counters(), 1: counters()}
    ledger = Ledger(takes_turns=False)
    ledger.begin(0, (0, 1), totals.__getitem__)
    totals.update({0: counters(8), 1: counters(1, granted=2)})
    assert ledger.balance(12, totals.__getitem__) == Balance(unfinished=1, skipped=2)
    totals[1] = counters(6)
    assert ledger.balance(12, totals.__getitem__) == Balance(twice=2)


def test_what_a_lost_unit_tells_late_belongs_to_the_epoch_in_which_it_was() -> None:
    """Epoch of MEPs 0 to 9 with units 0 and 1; unit 1 is lost, and epochs without it follow."""
    totals = {0: counters(), 1: counters()}
    ledger = Ledger(takes_turns=True)
    ledger.begin(0, (0, 1), totals.__getitem__)
    totals.update({0: counters(5), 1: counters(2, granted=3)})
    ledger.begin(10, (0,), totals.__getitem__)
    totals[0] = counters(15)
    assert ledger.balance(20, totals.__getitem__) == Balance(unfinished=1, skipped=2)
    totals[1] = counters(4)  # its last words
    assert ledger.balance(20, totals.__getitem__) == Balance(skipped=1)
    ledger.begin(20, (0, 1), totals.__getitem__)
    totals.update({0: counters(16), 1: counters(5)})
    assert ledger.balance(22, totals.__getitem__) == Balance(skipped=1)


@given(st.data())
def test_all_that_was_begun_has_a_fate(data: st.DataObject) -> None:
    """Each MEP of each epoch gets one, by chance; the ledger finds those that no counter tells."""
    takes_turns = data.draw(st.booleans())
    ledger, first = Ledger(takes_turns), 0
    fates: dict[int, dict[str, int]] = {
        unit: {"built": 0, "granted": 0, "incomplete": 0} for unit in range(4)
    }

    def totals(unit: int) -> Counters:
        return counters(**fates[unit])

    unfinished = skipped = 0
    for _ in range(data.draw(st.integers(1, 5))):
        builders = tuple(sorted(data.draw(st.sets(st.integers(0, 3), min_size=1))))
        ledger.begin(first, builders, totals)
        for mep in range(data.draw(st.integers(0, 12))):
            unit = fates[builders[mep % len(builders)]]
            fate = data.draw(st.sampled_from(["built", "incomplete", "unfinished", "skipped"]))
            unit["granted"] += fate != "skipped"
            if fate in ("built", "incomplete"):
                unit[fate] += 1
            unfinished += fate == "unfinished"
            skipped += fate == "skipped"
            first += 1
    assert ledger.balance(first, totals) == Balance(unfinished, skipped)
