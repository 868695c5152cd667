"""Studies of less than a second, for tests of their run and store."""

from pathlib import Path

from xarray import Dataset

from daqloom.study.file.load import load_study
from daqloom.study.file.study import Study
from daqloom.study.run.dataset import to_dataset
from daqloom.study.run.executor import InProcess
from daqloom.study.run.runner import Progress, replay, run
from daqloom.study.store.store import Store

BRIEF = """
scenario = "small-rack"
methods = ["analyse", "simulate"]
[set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
"""
"""One point, a formula and a simulation of it."""

POINTS = (
    BRIEF
    + """
[grid]
"event.rate" = ["0.2 kHz", "0.4 kHz"]
"event.size" = ["500 kB", "1 MB"]
"""
)
"""4 formulas and 4 simulations."""

GRID = (
    POINTS.replace('"0.4 kHz"]', '"0.4 kHz", "0.6 kHz"]')
    + """
[repeat]
seeds = 2
"""
)
"""6 formulas and 12 simulations."""


def search(low: str, high: str, tolerance: str) -> str:
    """The smallest ring of a drop-tail switch that drops nothing; one search."""
    return f"""
scenario = "small-rack"
[set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
"network.switch.tor.model" = "drop-tail"
[search]
key = "network.switch.tor.buffer"
find = "smallest"
where = "packets_dropped == 0"
bounds = ["{low}", "{high}"]
tolerance = "{tolerance}"
"""


def written(folder: Path, text: str, *, quick: bool = False) -> Study:
    """Return the study of a text, which is written to mine.toml in a folder."""
    path = folder / "mine.toml"
    path.write_text(text)
    return load_study(path, quick=quick)


def complete(study: Study, folder: Path) -> Progress:
    """Compute what a store lacks of a study."""
    with Store.open(folder, create=True) as store:
        return run(study, store, InProcess(store))


def computed(study: Study, folder: Path) -> Dataset:
    """Compute what a store lacks of a study, and return its dataset."""
    assert complete(study, folder).failures == []
    with Store.open(folder, create=False) as store:
        return to_dataset(study, replay(study, store))
