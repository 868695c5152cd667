"""Program that calls the Python function of a hook: `python -m daqloom.control.hooks.call NAME`.

It reads one JSON object from standard input and passes it as a dictionary. Its last line of output
is the function's return value, a dictionary as JSON."""

import json
import sys
from importlib import import_module
from typing import Any

from daqloom.base.plugins import by_name, load
from daqloom.control.hooks.document import GROUP


def call(target: str, transition: dict[str, object]) -> str:
    """Return the value of the function as text. Raises the errors of its import and of the call."""
    module, _, name = target.partition(":")
    function: Any = getattr(import_module(module), name) if name else load(by_name(GROUP)[target])
    value = function(transition)
    return json.dumps(value) if isinstance(value, dict) else "" if value is None else str(value)


def main() -> None:
    """Call the function named by the argument. A failure is exit code 1 with one line."""
    try:
        print(call(sys.argv[1], json.load(sys.stdin)))
    except Exception as error:  # any error of a function of another author
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
