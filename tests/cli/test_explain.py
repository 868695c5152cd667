"""The command `daqloom explain`: text, lists, JSON, refusals, completion."""

from support.command import printed, record, refusal


def test_an_explanation_has_a_line_for_each_property() -> None:
    text = printed("explain", "event.rate", silent=True)
    assert text.startswith("event.rate (key of a scenario)\n  Mean event rate")
    lines = text.splitlines()
    assert "  unit    Hz" in lines
    assert "  see     docs/reference/scenario.md" in lines
    assert max(map(len, lines)) <= 100


def test_many_explanations_are_a_list() -> None:
    lines = printed("explain", "speed", silent=True).splitlines()
    assert any(line.startswith("event.rate  ") for line in lines)
    assert lines[-1] == "`daqloom explain NAME` prints more of each."


def test_json_has_all_explanations_without_empty_fields() -> None:
    found = record("explain", "barrier", silent=True)
    assert found["schema"] == 1
    assert found["term"] == "barrier"
    key, term = found["explanations"]
    assert key["names"] == ["building.barrier"]
    assert "tournament" in key["values"]
    assert term["kind"] == "term"
    assert "unit" not in term


def test_an_unknown_term_is_one_sentence() -> None:
    assert "did you mean one of" in refusal("explain", "incst")
