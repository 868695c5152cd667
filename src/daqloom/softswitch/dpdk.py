"""The module of the software switch, which needs the DPDK that it was built with."""

from importlib import import_module
from importlib.util import find_spec

from daqloom.base.words import printable
from daqloom.machine.packages import packages_with
from daqloom.results.errors import MeasureError

_MODULE = "daqloom._switch"


def require() -> None:
    """Raise MeasureError, with the package to install, unless the switch can run."""
    if find_spec(_MODULE) is None:
        raise MeasureError(
            f"daqloom was built without DPDK; install it ({packages_with('DPDK')}) and build "
            "daqloom from its sources: pip install --no-binary daqloom daqloom"
        )
    try:
        import_module(_MODULE)
    except ImportError as error:
        raise MeasureError(
            f"DPDK's library cannot be loaded: {printable(str(error))[:300]}; install the version "
            f"that daqloom was built with ({packages_with('DPDK')})"
        ) from None
