"""Names of hosts and switches in a scenario."""

import re
from typing import Annotated

from daqloom.scenario.addresses import text

_NAME = re.compile(r"[!-~](?:[ -~]{0,98}[!-~])?")

NodeName = Annotated[
    str,
    text(
        lambda name: _NAME.fullmatch(name) and name,
        "is not a name; expected 1 to 100 printable ASCII characters",
    ),
]
