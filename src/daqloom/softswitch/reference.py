"""Reference page of a switch's file (docs/reference/software-switch.md): `python -m
daqloom.softswitch.reference`."""

from daqloom.scenario.file.reference import sections
from daqloom.softswitch.document import SwitchFile

HEAD = """\
# The file of a software switch

<!-- Written by `python -m daqloom.softswitch.reference`; edit src/daqloom/softswitch instead. -->

`daqloom switch run FILE` and `daqloom switch check FILE` use a TOML file with these keys. `--set
rings.dcm1.rate="0.5 Gb/s"` overrides any of them. Quantities are strings with a unit, as in
[scenarios](scenario.md).

A frame enters the ring that it matches; of several, the one with the highest `priority`. A frame
that matches no ring and no rule enters the ring of the port of its Ethernet address. While a switch
runs, `daqloom switch set` changes rates, capacities and matches of rings, rules and fixed
addresses; all other keys take effect at the next start.
"""


def reference() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *sections(SwitchFile), ""])


if __name__ == "__main__":
    print(reference(), end="")
