"""Reference page of a device's file (docs/reference/device.md): `python -m
daqloom.device.reference`."""

import sys
import textwrap
from collections.abc import Iterator

from daqloom.device.adapter import Adapter
from daqloom.device.desired_state import KEYS
from daqloom.device.document import DeviceFile
from daqloom.device.registry import adapter_type, names
from daqloom.scenario.file.reference import sections

HEAD = """\
# The file of a device under test

<!-- Written by `python -m daqloom.device.reference`; edit its folder instead. -->

`measure.device` in a scenario names a TOML file with these keys: a switch, its ports under test,
and the adapters that set and read them. Trust such a file like a program: `through` runs with the
rights of the user who measures, and secrets go to the address in the file. `daqloom measure
SCENARIO --dry-run` prints the commands of the file without running any, `daqloom lab show FILE`
prints the settings of the ports, and `daqloom lab plan SCENARIO` the changes that a measurement
would make
([measure on a site](../how-to/measure-on-a-site.md)).
"""
ADAPTERS = """\
## Adapters

`[configure]` and `[count]` each have the name of an adapter, such as `adapter = "linux"`, and the
keys of this adapter. The adapter sets the keys of `network.switch.LEVEL` that the scenario gives; a
key that it cannot set is refused. All but `linux` and `software-switch` come with the package
[daqloom-adapters](../../packages/daqloom-adapters/README.md); other packages add adapters by entry
points named `daqloom.adapters` ([how](../contributing/add-an-adapter.md)).
"""


def reference() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *sections(DeviceFile), ADAPTERS, *_adapters()])


def _adapters() -> Iterator[str]:
    for name in names():
        kind = adapter_type(name)
        about = (sys.modules[kind.__module__].__doc__ or "").partition("\n\n")[0]
        text = f"{' '.join(about.split())} {does(kind)}."
        yield f"### `{name}`\n\n{textwrap.fill(text, 100)}\n"
        yield from list(sections(kind.Options))[1:]


def does(kind: type[Adapter]) -> str:
    """Return the functions of an adapter as text."""
    keys = [KEYS[field] for field in KEYS if field in getattr(kind, "settable", ())]
    found = [f"sets {', '.join(keys)}"] if keys else []
    found += ["reads counters"] if hasattr(kind, "read") else []
    return " and ".join(found).capitalize()


if __name__ == "__main__":
    print(reference(), end="")
