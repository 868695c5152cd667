"""For tests: runs of a few processes that end after some events."""

from collections.abc import Mapping

from test_measure_control import HUNG_S

from daqloom.scenario.models import Scenario
from daqloom.topology.loaded import override

MEASURED = {
    "warmup": "50 ms",
    "duration": f"{HUNG_S} s",
    "stream_buffer": "1 MB",
    "output_buffer": "1 MB",
    "waiting": "blocking",
}


def changed(tiny: Mapping[str, object], changes: Mapping[str, object]) -> Scenario:
    """The scenario with some keys changed; `__` stands for a dot."""
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return override(Scenario.model_validate(tiny), keys)
