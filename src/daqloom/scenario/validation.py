"""Validators of texts, and errors of validators on several mistakes of a table."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BeforeValidator, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

T = TypeVar("T")


def text(read: Callable[[str], object], refusal: str) -> BeforeValidator:
    """Return the validator of a text: it becomes what `read` returns, as text. `refusal` is the end
    of the sentence on anything else, for which `read` returns None or raises ValueError."""

    def check(value: object) -> str:
        with suppress(ValueError):
            if isinstance(value, str) and (result := read(value)) is not None:
                return str(result)
        raise ValueError(refusal)

    return BeforeValidator(check)


def pattern(form: str, refusal: str) -> BeforeValidator:
    """Return the validator of a text that matches a regular expression as a whole."""
    fits = re.compile(form).fullmatch
    return text(lambda value: value if fits(value) else None, refusal)


def value_error(first: str, *others: str) -> ValueError:
    """Return an error of a validator on several mistakes: all but the first one are its notes."""
    error = ValueError(first)
    for other in others:
        error.add_note(other)
    return error


def validated(handler: Callable[[Any], T], data: Any, refusals: Collection[str]) -> T:
    """Validate `data` by the handler of a validator, and raise `refusals` of other keys of the same
    table with the mistakes that it finds."""
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
    """Return a mistake as pydantic takes it to raise it once more."""
    details = InitErrorDetails(type=mistake["type"], loc=mistake["loc"], input=mistake["input"])
    if "ctx" in mistake:
        details["ctx"] = mistake["ctx"]
    return details
