"""Controllers of a switch by name: entry points of the group `daqloom.switch_controllers`."""

from typing import Any, Protocol

from daqloom.base import plugins
from daqloom.base.words import printable
from daqloom.results.errors import MeasureError
from daqloom.softswitch.running import RunningSwitch

GROUP = "daqloom.switch_controllers"
PACKAGE = "daqloom-sdn"
"""Package with daqloom's own controllers."""


class Controller(Protocol):
    """Controller of a running switch until it is closed, by the keys of its name in `[control]`."""

    def __init__(self, running: RunningSwitch) -> None:
        """Start. Raises MeasureError."""

    def status(self) -> dict[str, Any]:
        """Return fields of SwitchStatus, in any thread."""

    def close(self) -> None:
        """End soon, without waiting for peers."""


def controller_type(name: str, user: str) -> Any:
    """Return the class of a controller for `user`, a key or a command; daqloom's own if several
    have the name. Raises MeasureError."""
    point = plugins.by_name(GROUP).get(name)
    if point is None:
        raise MeasureError(
            f"{user} needs the Python package {PACKAGE}, which is not installed; pip install "
            f"{PACKAGE}"
        )
    try:
        return plugins.load(point)
    except plugins.LoadError as error:
        package = printable(point.dist.name) if point.dist else PACKAGE
        raise MeasureError(
            f"{user}: the Python package {package} cannot be loaded: {printable(str(error))[:300]}"
            f"; pip install --force-reinstall {package}"
        ) from None
