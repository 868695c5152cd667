"""A packet that is worked out by hand, and a small scenario with generated packets."""

from daqloom.deployment.scenarios import load

EXAMPLE = bytes.fromhex(
    "ce40 0300 34000000 0010000000000000 0128 02 03"
    "010203 00 0500 0800 0400 0000"
    "4142434445 000000 464748494a4b4c4d 4e4f5051"
)
SMALL = ("readout.units=4", "readout.streams=2", "event.packing=50", "event.groups=[]")
"""Eight sources of 50 fragments."""


def small(*overrides):
    return load("lhcb-10-percent", [*SMALL, *overrides])
