"""Names of hosts and switches, as a scenario gives them."""

import re
from typing import Annotated

from pydantic import BeforeValidator

_NAME = re.compile(r"[!-~](?:[ -~]{0,98}[!-~])?")


def _name(value: object) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ValueError("is not a name; expected 1 to 100 printable ASCII characters")


NodeName = Annotated[str, BeforeValidator(_name)]
