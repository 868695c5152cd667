"""Pydantic validators for text, and errors that report several mistakes in a table."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BeforeValidator, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

T = TypeVar("T")


def text(read: Callable[[str], object], refusal: str) -> BeforeValidator:
    """Return a validator that replaces a text by the result of `read`, as text. `read` returns None
    or raises ValueError for an invalid text; `refusal` is then the end of the error sentence."""

    def check(value: object) -> str:
        with suppress(ValueError):
            if isinstance(value, str) and (result := read(value)) is not None:
                return str(result)
        raise ValueError(refusal)

    return BeforeValidator(check)


@dataclass(frozen=True)
class _Pattern(BeforeValidator):
    """A validator of texts with the regular expression that they match."""

    form: str = ""

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({self.form})$"}


def pattern(form: str, refusal: str) -> BeforeValidator:
    """Return a validator that accepts a text if all of it matches a regular expression."""
    fits = re.compile(form).fullmatch
    check = text(lambda value: value if fits(value) else None, refusal)
    return _Pattern(check.func, form=form)


def value_error(first: str, *others: str) -> ValueError:
    """Return an error on several mistakes; all but the first mistake are notes of the error."""
    error = ValueError(first)
    for other in others:
        error.add_note(other)
    return error


def validate(handler: Callable[[Any], T], data: Any, refusals: Collection[str]) -> T:
    """Validate `data` by a pydantic handler. If there are `refusals` (errors on other keys of the
    table), raise them together with the handler's mistakes."""
    if not refusals:
        return handler(data)
    context = {"error": value_error(*refusals)}
    mistakes = [InitErrorDetails(type="value_error", loc=(), input=data, ctx=context)]
    try:
        handler(data)
    except ValidationError as error:
        mistakes += [_again(each) for each in error.errors(include_url=False)]
    raise ValidationError.from_exception_data("", mistakes)


def _again(mistake: ErrorDetails) -> InitErrorDetails:
    """Return a mistake in the form in which pydantic can raise it again."""
    details = InitErrorDetails(type=mistake["type"], loc=mistake["loc"], input=mistake["input"])
    if "ctx" in mistake:
        details["ctx"] = mistake["ctx"]
    return details
