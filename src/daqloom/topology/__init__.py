"""Cabled networks: fat trees and fabrics imported from dumps, with their routes and schedules."""

from daqloom.scenario.errors import ScenarioError


class TopologyError(ScenarioError):
    """Error for an unusable description of a fabric. Its message is one sentence with the reason
    and the place: file and line, switch and port, as far as they are known."""
