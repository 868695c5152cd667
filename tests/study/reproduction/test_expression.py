"""Expressions of named numbers: arithmetic and three functions, nothing else."""

import pytest

from daqloom.study.reproduction.expression import LONGEST, evaluate, names

FUNCTIONS = {"abs": abs, "min": min, "max": max}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 6.0),
        ("-a / b + 1", -2.0),
        ("a - b - 1", 3.0),
        ("a * (b + 1) ** 2", 54.0),
        ("300 * 5 * 8 / 60 / 24", 8 + 1 / 3),
        ("abs(b - a)", 4.0),
        ("max(c) - min(c)", 7.0),
    ],
)
def test_an_expression_has_the_value_of_arithmetic(text: str, value: float) -> None:
    assert evaluate(text, {"a": 6.0, "b": 2.0, "c": [1, 8]}, FUNCTIONS) == pytest.approx(value)


def test_names_are_those_of_terms_and_not_of_functions() -> None:
    assert names("max(tree - cluster) / abs(tree)") == {"tree", "cluster"}
    assert names("144 * 4096") == set()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a +",
            "a, b",
            "a.b",
            "a[0]",
            "a if b else c",
            "a == b",
            "lambda: a",
            "a @ b",
            "a // b",
        ),
        *(
            "open(a)",
            "max(a, b)",
            "max()",
            "max(*a)",
            "abs(x=a)",
            "(abs)(a)(b)",
            "'a'",
            "True",
            "1j",
        ),
        *("a ** b", "a ** 10", "a ** -1", "9 ** 9.5", "[a for a in b]", "a := 1", "+a", "~a"),
        *("a" * (LONGEST + 1), "(" * 150, "-" * 190 + "a("),
    ],
)
def test_other_forms_of_python_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no expression; expected names of terms and numbers"):
        names(text)
