"""Texts of a scenario that are checked by reading them: addresses of networks."""

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_network
from typing import Annotated

from pydantic import BeforeValidator


def text(read: Callable[[str], object], refusal: str) -> BeforeValidator:
    """Return the validator of a text: it becomes what `read` returns, as text. `refusal` is the end
    of the sentence on anything else, for which `read` returns None or raises ValueError."""

    def check(value: object) -> str:
        with suppress(ValueError):
            if isinstance(value, str) and (result := read(value)) is not None:
                return str(result)
        raise ValueError(refusal)

    return BeforeValidator(check)


IpNetwork = Annotated[
    str, text(ip_network, 'is not an IP address or network; expected one such as "10.0.0.0/24"')
]
