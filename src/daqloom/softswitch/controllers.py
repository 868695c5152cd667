"""Registry of switch controllers, from entry points of the group `daqloom.switch_controllers`."""

from typing import Any, Protocol

from daqloom.base import plugins
from daqloom.base.words import printable
from daqloom.results.errors import MeasureError
from daqloom.softswitch.running import RunningSwitch

GROUP = "daqloom.switch_controllers"
PACKAGE = "daqloom-sdn"
"""Package with daqloom's own controllers."""


class Controller(Protocol):
    """Controller of a running switch until `close`; its keys are in `[control]` under its name."""

    def __init__(self, running: RunningSwitch) -> None:
        """Connect to the switch and start. Raises MeasureError."""

    def status(self) -> dict[str, Any]:
        """Return the controller's fields of SwitchStatus; callable from any thread."""

    def close(self) -> None:
        """End soon, without waiting for peers."""


def controller_type(name: str, user: str) -> Any:
    """Return the class of the controller `name` for `user`, the key or command that needs it; if
    several packages have the name, daqloom's own. Raises MeasureError."""
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
