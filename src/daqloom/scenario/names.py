"""Names of hosts and switches in a scenario."""

from typing import Annotated

from daqloom.scenario.validation import pattern

_REFUSAL = "is not a name; expected 1 to 100 printable ASCII characters"
NodeName = Annotated[str, pattern(r"[!-~](?:[ -~]{0,98}[!-~])?", _REFUSAL)]
