"""Reference page of a switch's file (docs/reference/software-switch.md): `python -m
daqloom.softswitch.reference`."""

from daqloom.scenario.file.reference import sections
from daqloom.softswitch.document import SwitchFile

HEAD = """\
# The file of a software switch

<!-- Written by `python -m daqloom.softswitch.reference`; edit src/daqloom/softswitch instead. -->

`daqloom switch run FILE` takes a TOML file with these keys, and so does `daqloom switch check`.
`--set rings.dcm1.rate="0.5 Gb/s"` overrides any of them. Quantities are strings with a unit, as in
[scenarios](scenario.md).

A frame goes into the ring that it matches; of several, the one with the highest `priority` counts.
A frame that matches no ring and no rule goes where its Ethernet address is, by way of the ring of
that port. While a switch runs, `daqloom switch set` changes rates, sizes and matches of rings,
rules and fixed addresses; all else needs a new start.
"""


def reference() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *sections(SwitchFile), ""])


if __name__ == "__main__":
    print(reference(), end="")
