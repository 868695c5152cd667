"""Controllers of a switch by their names: the entry points `daqloom.switch_controllers`."""

from typing import Any, Protocol

from daqloom.base import plugins
from daqloom.base.words import printable
from daqloom.results.errors import MeasureError
from daqloom.softswitch.running import RunningSwitch

GROUP = "daqloom.switch_controllers"
PACKAGE = "daqloom-sdn"
"""Package with daqloom's own controllers."""


class Controller(Protocol):
    """Steers a running switch, as the keys of the same name in `[control]` describe it, until it is
    closed."""

    def __init__(self, running: RunningSwitch) -> None:
        """Raises MeasureError where it cannot start."""

    def status(self) -> dict[str, Any]:
        """Return fields of SwitchStatus; from any thread."""

    def close(self) -> None:
        """End it soon, whatever its peers do."""


def controller_type(name: str, user: str) -> Any:
    """Return the class of a controller that `user`, a key or a command, needs; daqloom's own if
    several have the name. Raises MeasureError."""
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
