"""Which choices the methods can combine so far."""

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.tables import Tables


def check_possible(scenario: Tables) -> None:
    """Raise ScenarioError for choices that no method can combine yet."""
    if choices := impossible(scenario):
        raise ScenarioError(f"{scenario.name}: {choices}")


def impossible(scenario: Tables) -> str:
    """Return a sentence on choices that cannot be combined yet; empty where all can."""
    network = scenario.network
    if network.technology == "infiniband":
        if network.is_racks:
            return (
                f'network.shape = "{network.shape}" with network.technology = "infiniband" is not '
                "possible yet; expected fat-tree, imported or cables"
            )
        if scenario.transport.kind == "tcp":
            return (
                'transport.kind = "tcp" over network.technology = "infiniband" is not possible '
                "yet; expected rdma"
            )
    return ""
