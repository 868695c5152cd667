"""Generator of docs/reference/study.md: `python -m daqloom.study.file.reference`."""

from collections.abc import Iterator

from pydantic import BaseModel

from daqloom.scenario.file.reference import default_of, sentence_of, values_of
from daqloom.scenario.schema.choices import keys_of
from daqloom.study.file.tables import TABLES, StudyFile

HEAD = """\
# Study files

<!-- Written by `python -m daqloom.study.file.reference`; edit
     src/daqloom/study/file/tables.py instead. -->

A study is a TOML file with a scenario, methods, and keys of the scenario that vary. `daqloom study
plan FILE` lists the results to compute, and `daqloom study run FILE` computes those that the store
lacks. Quantities are written as in a scenario. Keys that are not listed here or in
[scenario.md](scenario.md) are refused.
"""

VALUES = """
## `[set]`, `[grid]`, `[[zip]]`, `[variants]`

`[set]` changes keys of the scenario at all points. A key that does not apply at some points, such
as the buffer of a switch with `model = "infinite"`, is left out there; a key that applies at no
point is refused. `[grid]` gives keys several values: each key is an axis, and all axes are combined
with each other. Each table `[[zip]]` is one axis of several keys, whose lists advance together.
`[variants]` is an axis of named steps, which may set different keys or none:

```toml
[variants]
"as it is" = {}
"least busy builder" = { "building.assignment" = "least-busy" }
"LHC arrivals, 9000 B" = { "event.arrivals" = "lhc", "network.mtu" = "9000 B" }
```

Values are

- a list: `"event.size" = ["1 MB", "5 MB"]`, or a list of lists if the key itself has a list,
- a range by step: `{ from = "1 kHz", to = "20 kHz", step = "1 kHz" }`, the end included if a step
  falls on it,
- a range by count: `{ from = "1 MB", to = "8 MB", count = 4, spacing = "log" }`; spacing is
  `linear` if left out.

## `[quick]`

Keys for `--quick`, which replace the same keys above: `[quick.set]`, `[quick.grid]`,
`[quick.search]`, `[quick.repeat]`. `[quick.variants]` replaces all variants.
"""


SENTENCES = {
    "search": "Each point is searched by bisection, once per seed.",
    "equilibrium": "Runs of a saturated point, which are never stationary, are shortened instead.",
    "repeat": "A seed is one repetition; methods without random numbers run once.",
    "report": "The metrics that `daqloom report` shows; `--show METRIC` shows another.",
}


def reference() -> str:
    """Return the text of the reference page of study files."""
    lines = [HEAD, "## At the top of the file", "", *_rows(StudyFile, {"scenario", "methods"})]
    lines += [*_rows(StudyFile, {"title", "description", "figure"}, head=False), VALUES]
    for name, sentence in SENTENCES.items():
        model = TABLES[name]
        lines += [f"## `[{name}]`", "", sentence, "", *_rows(model, set(model.model_fields)), ""]
    return "\n".join(lines)


def _rows(model: type[BaseModel], keys: set[str], *, head: bool = True) -> Iterator[str]:
    if head:
        yield "| key | default | values | meaning |"
        yield "|---|---|---|---|"
    for name, key in keys_of(model).items():
        if name in keys:
            yield f"| `{name}` | {default_of(key)} | {values_of(key.field)} | {sentence_of(key)} |"


if __name__ == "__main__":
    print(reference(), end="")
