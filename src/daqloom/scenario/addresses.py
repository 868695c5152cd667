"""Addresses of networks."""

from ipaddress import ip_network
from typing import Annotated

from daqloom.scenario.validation import text

IpNetwork = Annotated[
    str, text(ip_network, 'is not an IP address or network; expected one such as "10.0.0.0/24"')
]
