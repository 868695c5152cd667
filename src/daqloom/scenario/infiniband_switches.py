"""Switches whose ports the shape of a fabric is made of, by name.

Sources: ports and rates by data sheet; 64 KiB for each port and virtual lane is what the flit-level
study measured on the SB7700, and is assumed of the other. Latencies are those of data sheets, from
port to port.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PRODUCTS: dict[str, dict[str, Any]] = {
    "sb7700": {"radix": 36, "rate": "EDR", "switch_latency": "90 ns", "buffer": "64 KiB"},
    "hdr-40": {"radix": 40, "rate": "HDR", "switch_latency": "130 ns", "buffer": "64 KiB"},
}

USUAL = "hdr-40"


def filled_in(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the switch of a table [fabric] fills in where they are not given.

    Imported cables have rates of their own. Of a switch that is not known, nothing.
    """
    switch = table.get("switch", USUAL)
    known = _PRODUCTS.get(switch, {}) if isinstance(switch, str) else {}
    own = ("rate",) if table.get("shape") == "imported" else ()
    return {key: value for key, value in known.items() if key not in own}
