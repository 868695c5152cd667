"""Addresses of networks, as files give them."""

import ipaddress
from contextlib import suppress
from typing import Annotated

from pydantic import BeforeValidator


def _network(value: object) -> str:
    with suppress(ValueError):
        if isinstance(value, str):
            return str(ipaddress.ip_network(value))
    raise ValueError('is not an IP address or network; expected one such as "10.0.0.0/24"')


IpNetwork = Annotated[str, BeforeValidator(_network)]
