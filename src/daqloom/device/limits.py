"""Limits that protect a shared network: total rate of a measurement, and its addresses."""

import ipaddress

from daqloom.device.document import Limits
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import RATE
from daqloom.scenario.schema.models import Scenario


def check_limits(scenario: Scenario, limits: Limits) -> None:
    """Raise ScenarioError if a scenario exceeds the limits in a device file."""
    measure = scenario.measure
    if limits.rate:
        connections = scenario.readout.units * scenario.builders.units
        most = limits.rate // connections
        if not 0 < measure.pacing <= most:
            rate, pacing = RATE.format(limits.rate), RATE.format(most)
            raise ScenarioError(
                f"limits.rate = {rate} leaves each of {connections} connections {pacing}; give "
                f'measure.pacing = "{pacing}" or less'
            )
    if limits.addresses:
        allowed = [ipaddress.ip_network(each) for each in limits.addresses]
        network = ipaddress.ip_network(measure.network) if measure.network else None
        if network is None or not any(_is_subnet(network, each) for each in allowed):
            raise ScenarioError(
                f'measure.network = "{measure.network}" is not within limits.addresses '
                f"({', '.join(limits.addresses)[:200]}); give a network of theirs, of which units "
                "take their addresses"
            )


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _is_subnet(inner: _Network, outer: _Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network):
        return isinstance(outer, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, ipaddress.IPv6Network) and inner.subnet_of(outer)
