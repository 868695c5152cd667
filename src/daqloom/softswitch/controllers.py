"""Controllers of a switch by their names: the entry points `daqloom.switch_controllers`."""

from importlib.metadata import entry_points
from typing import Any, Protocol

from daqloom.measure import MeasureError
from daqloom.softswitch.running import RunningSwitch
from daqloom.words import printable

GROUP = "daqloom.switch_controllers"
PACKAGE = "daqloom-sdn"
"""Package with daqloom's own controllers."""
OWN = "daqloom_"
"""Beginning of the modules of daqloom's own controllers."""


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
    points = sorted(
        entry_points(group=GROUP, name=name), key=lambda point: not point.value.startswith(OWN)
    )
    if not points:
        raise MeasureError(
            f"{user} needs the Python package {PACKAGE}, which is not installed; pip install "
            f"{PACKAGE}"
        )
    try:
        return points[0].load()
    except Exception as error:  # whatever a module raises while it is imported
        package = points[0].dist.name if points[0].dist else PACKAGE
        raise MeasureError(
            f"{user}: the Python package {package} cannot be loaded: {printable(str(error))[:300]}"
            f"; pip install --force-reinstall {package}"
        ) from None
