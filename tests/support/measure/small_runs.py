"""The scenario of a small measurement, and the command line in a process of its own."""

import subprocess
import sys

from daqloom.deployment.scenarios import override
from daqloom.scenario.schema.models import Scenario
from support.measure.controlled_runs import HUNG_S

SMALL = {
    "name": "small",
    "event": {"packing": 10},
    "readout": {"units": 3, "streams": 1},
    "network": {"technology": "infiniband", "leaves": 1, "spines": 1, "hosts_per_leaf": 4},
    "measure": {
        "heartbeat": "50 ms",
        "fault_timeout": "2 s",
        "warmup": "100 ms",
        "duration": "600 ms",
    },
}
DAQLOOM = (sys.executable, "-c", "from daqloom.__main__ import main; main()")


def small(**changes) -> Scenario:
    return override(
        Scenario.model_validate(SMALL), {f"measure.{key}": value for key, value in changes.items()}
    )


def daqloom(*arguments, **more):
    return subprocess.run(
        [*DAQLOOM, *arguments], capture_output=True, text=True, timeout=HUNG_S, **more
    )
