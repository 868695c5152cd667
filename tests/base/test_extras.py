"""Extras: every third-party package belongs to the core or to one extra, and a command that lacks
an extra works without it, or ends with the sentence on how to install it."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from daqloom.base import extras
from support.repository import ROOT

SOURCES = ROOT / "src" / "daqloom"
FROM_DAQLOOM = """
import sys
for module in {missing}:
    sys.modules[module] = None
sys.argv = ["daqloom", *{words}]
from daqloom.__main__ import main
main()
"""
"""Runs a command in an interpreter that cannot import the missing modules."""


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _declared() -> dict[str, set[str]]:
    """Distributions by extra, "" for the core, without those that refer to daqloom's own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    names = {
        group: {_normal(re.split(r"[\[<>=~!]", each)[0]) for each in requirements}
        for group, requirements in groups.items()
    }
    return {group: {each for each in own if "daqloom" not in each} for group, own in names.items()}


def _third_party() -> set[str]:
    """Top-level modules that the package imports from elsewhere."""
    names = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add((node.module or "").partition(".")[0])
    return names - sys.stdlib_module_names - {"daqloom"}


def _without(missing: set[str], *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    code = FROM_DAQLOOM.format(missing=sorted(missing), words=list(map(str, words)))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )


def _modules(*names: str) -> set[str]:
    return {module for module, extra in extras.EXTRAS.items() if extra in names}


ALL = set(extras.EXTRAS)
PARTS = {
    "dask": {"distributed"},
    "click": {"typer"},
    "pydantic_core": {"pydantic"},
    "typing_extensions": {"pydantic"},
}
"""Distributions that install a module of which they are made."""


def test_every_imported_package_is_declared_by_the_core_or_by_the_extra_that_errors_name() -> None:
    declared = _declared()
    distributions = packages_distributions()
    for module in _third_party():
        group = extras.EXTRAS.get(module, "")
        own = {_normal(each) for each in distributions[module]}
        own |= PARTS.get(module, set())
        assert own & declared[group], f"{module} is not declared by the extra {group or 'core'!r}"


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("--cite",),
        ("show", "atlas-lab"),
        ("analyse", "lab-rack"),
        ("simulate", "laptop", "--duration", "20 ms", "--set", "run.warmup=5 ms"),
        ("study", "list"),
        ("study", "plan", "atlas-min-buffer", "--quick"),
        ("topology", "show", "lhcb"),
        ("data", "--help"),
    ],
    ids=" ".join,
)
def test_the_core_alone_describes_analyses_and_simulates(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = _without(ALL, *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not installed" not in done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("simulate", "lab-rack", "--figure", "rack.png"), "figures"),
        (("study", "run", "atlas-min-buffer", "--quick"), "studies"),
        (("measure", "laptop", "--duration", "1 s"), "live"),
        (("report", "atlas-min-buffer", "--quick", "--pdf", "rack.pdf"), "pdf"),
        (("control", "up", "laptop"), "live"),
        (("unit", "--control", "127.0.0.1:1"), "live"),
    ],
    ids=lambda words: words if isinstance(words, str) else " ".join(words),
)
def test_a_command_without_its_extra_is_one_sentence_with_the_line_that_installs_it(
    words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    done = _without(ALL, *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    [sentence] = done.stderr.splitlines()
    assert re.fullmatch(
        rf"daqloom: the Python package \w+ is not installed; "
        rf"run: pip install 'daqloom\[{extra}\]'",
        sentence,
    )
    assert not any(tmp_path.iterdir())


@pytest.mark.process
def test_a_study_without_dask_is_computed_by_one_process(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        'title = "Small"\nscenario = "lab-rack"\nmethods = ["analyse"]\n'
        '[grid]\n"event.size" = ["1 MB", "2 MB"]\n'
    )
    done = _without(_modules("cluster"), "study", "run", "small.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "one core computes, as the Python package distributed is not installed" in done.stderr
