"""Hints on unknown keys."""

from daqloom.scenario.explain import nearest


def test_an_unknown_key_is_most_likely_the_one_that_begins_like_it() -> None:
    """`tor.pace` is nearer by letters."""
    assert nearest("network.switch.tor.cell") == '; did you mean "network.switch.tor.cell_size"?'
