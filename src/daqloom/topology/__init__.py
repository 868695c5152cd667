"""Networks as they are cabled: fat trees, imported fabrics, routes, schedules."""

from daqloom.scenario.errors import ScenarioError


class TopologyError(ScenarioError):
    """A description of a fabric that cannot be used; one sentence that says where and why. Where is
    the file and its line, the switch and its port, as far as there are any."""
