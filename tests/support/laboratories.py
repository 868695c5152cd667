"""A rack in a laboratory of network namespaces."""

from daqloom.deployment.scenarios import load
from daqloom.scenario.schema.models import Scenario

FRAMES = 20
"""That the builder's port holds."""


def rack(**changes: object) -> Scenario:
    small = {"readout__units": 2, "builders__units": 1, "measure__duration": "4 s"}
    small |= {"network__switch__tor__model": "drop-tail", "event__size": "20 kB"}
    if "network__switch__tor__model" not in changes:
        small["network__switch__tor__queue_packets"] = FRAMES
    keys = {key.replace("__", "."): value for key, value in (small | changes).items()}
    return load("lab-rack", keys)
