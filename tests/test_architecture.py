"""The arrows of the architecture, checked from the include and import lines.

engine:  what engine/CMakeLists.txt says of each folder, and everything ← bindings
python:  scenario ← topology ← {analyse, simulate, measure, data} ← study ← report ← cli
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def engine_folders(text: str) -> dict[str, set[str]]:
    """What each folder of engine/ may include besides itself, as CMake links it: with the folders
    that those may include. Lowest first; the bindings stand above all."""
    folders: dict[str, set[str]] = {}
    for folder, known in re.findall(r"^daqloom_add_folder\((\w+)([\w ]*)\)", text, re.MULTILINE):
        folders[folder] = {name for k in known.split() for name in {k} | folders[k]}
    return folders | {"bindings": set(folders)}


ENGINE = engine_folders((ROOT / "engine" / "CMakeLists.txt").read_text())

# Outside headers that belong to one place only: pattern of the header, folders that may name it.
RESERVED: list[tuple[str, tuple[str, ...]]] = [
    (r"(Python\.h|nanobind/.*|pybind11/.*)", ("bindings",)),
    (r"rte_.*", ("softswitch/io",)),
    (r"rdma/.*", ("live/transport",)),
]

# protocol/ is sans I/O: no socket, no thread, no clock of its own.
WORLDLY = re.compile(
    r"(sys|netinet|arpa|linux|net)/.*|pthread\.h|unistd\.h|poll\.h|fcntl\.h|netdb\.h|c?time(\.h)?|"
    r"c?stdio(\.h)?|i?o?f?stream|filesystem|chrono|thread|stop_token|mutex|shared_mutex|future|"
    r"condition_variable|semaphore|latch|barrier|atomic|coroutine"
)

# What a part of src/daqloom may import, besides itself. `__init__` is the facade over all of it.
FOUNDATION = {"scenario", "result", "metrics", "output"}
TOPOLOGY = FOUNDATION | {"topology"}
DRAWN_IN_TIME = TOPOLOGY | {"timeline"}
METHODS = {"analyse", "simulate", "measure"}
COMMAND = (
    TOPOLOGY
    | METHODS
    | {"study", "report", "console", "columns"}
    | {"cli_app", "cli_complete", "cli_options", "cli_store"}
)
PYTHON: dict[str, set[str]] = {
    "scenario": set(),
    "metrics": set(),
    "output": set(),
    "result": {"metrics"},
    "topology": FOUNDATION,
    "analyse": TOPOLOGY,
    "timeline": TOPOLOGY,
    "enumerations": set(),
    "simulate": DRAWN_IN_TIME | {"_engine", "enumerations"},
    "measure": DRAWN_IN_TIME | {"_engine", "enumerations", "data"},
    "data": TOPOLOGY | {"_engine"},
    "buffers": {"_engine"},
    "study": TOPOLOGY | METHODS,
    "columns": set(),
    "result_rows": {"metrics", "result"},
    "notebook": FOUNDATION | {"result_rows"},
    "report": TOPOLOGY | METHODS | {"study", "columns"},
    "console": FOUNDATION | METHODS | {"study", "report", "columns", "result_rows"},
    "cli_app": set(),
    "cli_complete": FOUNDATION,
    "cli_options": FOUNDATION | {"cli_complete"},
    "cli_store": {"study", "report"},
    "cli_fabric_options": COMMAND,
    "cli_topology": COMMAND | {"cli_fabric_options"},
    "cli_data_check": COMMAND | {"data"},
    "cli_data_recover": COMMAND | {"data"},
    "cli_data": COMMAND | {"data", "cli_data_check", "cli_data_recover"},
    **dict.fromkeys(
        ("cli_study", "cli_compare", "cli_conclude", "cli_report", "cli_measure", "cli_doctor"),
        COMMAND,
    ),
    "cli": COMMAND
    | {
        "cli_study",
        "cli_topology",
        "cli_report",
        "cli_compare",
        "cli_conclude",
        "cli_measure",
        "cli_doctor",
        "cli_data",
    },
}

# The one way up: `load("atlas-lab").simulate()` hands the scenario to a method. Such an import must
# stand inside the function (or under TYPE_CHECKING), so that loading a scenario loads no method. A
# fabric tells how long a run of it lasts, where its file does not say.
FLUENT: dict[str, set[str]] = {
    **dict.fromkeys(("scenario/models.py",), METHODS | {"result", "topology", "notebook"}),
    "result.py": {"notebook"},
}


def includes(text: str) -> Iterator[str]:
    """Headers named by the include lines of a C++ source, comments aside."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for line in re.finditer(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', code, flags=re.MULTILINE):
        yield line.group(1)


def engine_violations(path: str, text: str) -> list[str]:
    """Why the file at `path` (relative to engine/) may not include what it includes."""
    folder = path.split("/")[0]
    if folder not in ENGINE:
        return [
            f"engine/{folder} has no place in the architecture: add it to engine/CMakeLists.txt"
        ]
    found = []
    for header in includes(text):
        target = header.split("/")[0]
        if header.startswith(".") or "/../" in header:
            found.append(f"{path} includes {header}: name headers from engine/ on")
        elif "/" in header and target in ENGINE and target not in ENGINE[folder] | {folder}:
            found.append(f"{path} includes {header}: {folder} may not know {target}")
        elif folder == "protocol" and not is_test(path) and WORLDLY.fullmatch(header):
            found.append(f"{path} includes <{header}>: protocol is sans I/O")
        for pattern, homes in RESERVED:
            if re.fullmatch(pattern, header) and not path.startswith(tuple(f"{h}/" for h in homes)):
                found.append(f"{path} includes <{header}>: only {', '.join(homes)} may")
    return found


def is_test(path: str) -> bool:
    return path.endswith(("_test.cpp", "_bench.cpp", "_fuzz.cpp"))


def imports(module: tuple[str, ...], text: str) -> Iterator[tuple[str, bool]]:
    """Parts of daqloom that a module imports, relative ones resolved, and whether at its top level.

    `module` is the module's package path inside daqloom, `("scenario",)` for
    `daqloom/scenario/models.py`.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = ["daqloom", *module][: len(module) + 2 - node.level] if node.level else []
            there = node.module.split(".") if node.module else []
            names = [[*here, *there, alias.name] for alias in node.names]
        else:
            continue
        at_top = node in tree.body
        yield from ((name[1], at_top) for name in names if name[0] == "daqloom" and len(name) > 1)


def python_violations(path: str, text: str, parts: set[str]) -> list[str]:
    """Why the file at `path` (relative to src/daqloom/) may not import what it imports.

    `parts` are the names that exist as modules of daqloom: `from daqloom import load` names none.
    """
    *package, file = path.split("/")
    part = package[0] if package else file.removesuffix(".py")
    if part == "__init__" or part == "__main__":
        return []
    if part not in PYTHON:
        return [f"daqloom.{part} has no place in the architecture: add it to {Path(__file__).name}"]
    allowed = PYTHON[part] | {part}
    return [
        f"{path} imports daqloom.{name}: {part} may not know {name}"
        for name, at_top in imports(tuple(package), text)
        if name in parts - allowed and (at_top or name not in FLUENT.get(path, set()))
    ]


def python_parts(folder: Path) -> set[str]:
    return {"_engine"} | {
        entry.name.removesuffix(".py")
        for entry in folder.iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    }


def test_engine_includes_point_down_only():
    files = [p for p in (ROOT / "engine").rglob("*") if p.suffix in {".cpp", ".hpp", ".h"}]
    assert files
    violations = [
        v
        for p in files
        for v in engine_violations(p.relative_to(ROOT / "engine").as_posix(), p.read_text())
    ]
    assert not violations, "\n".join(violations)


def test_python_imports_point_down_only():
    package = ROOT / "src" / "daqloom"
    files = list(package.rglob("*.py"))
    assert files
    parts = python_parts(package)
    violations = [
        v
        for p in files
        for v in python_violations(p.relative_to(package).as_posix(), p.read_text(), parts)
    ]
    assert not violations, "\n".join(violations)


def test_folders_know_what_the_folders_below_know():
    folders = engine_folders(
        "# daqloom_add_folder(not this)\ndaqloom_add_folder(base)\n"
        "daqloom_add_folder(sim base)\ndaqloom_add_folder(ethernet sim)\n"
    )
    assert folders == {
        "base": set(),
        "sim": {"base"},
        "ethernet": {"sim", "base"},
        "bindings": {"base", "sim", "ethernet"},
    }


def test_each_folder_of_the_engine_is_a_target():
    sources = {p.relative_to(ROOT / "engine").parts[0] for p in (ROOT / "engine").rglob("*.cpp")}
    assert sources == set(ENGINE)


@pytest.mark.parametrize(
    ("path", "line", "reason"),
    [
        ("sim/queue.hpp", '#include "protocol/message.hpp"', "sim may not know protocol"),
        ("base/units.hpp", '#include "sim/clock.hpp"', "base may not know sim"),
        ("protocol/builder.cpp", "#include <chrono>", "sans I/O"),
        ("protocol/builder.cpp", "  #  include <sys/socket.h>", "sans I/O"),
        ("protocol/builder.cpp", '#include "sim/clock.hpp"', "protocol may not know sim"),
        ("ethernet/tcp.cpp", "#include <nanobind/nanobind.h>", "only bindings may"),
        ("ethernet/tcp.cpp", '#include "../base/units.hpp"', "from engine/ on"),
        ("ethernet/switch.cpp", "#include <rte_ethdev.h>", "only softswitch/io may"),
        ("live/shm.cpp", "#include <rdma/fabric.h>", "only live/transport may"),
        ("utils/misc.hpp", "", "no place in the architecture"),
    ],
)
def test_checker_reports_a_forbidden_include(path, line, reason):
    [violation] = engine_violations(path, f"#pragma once\n{line}\n")
    assert reason in violation


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ethernet/tcp.cpp", '#include "sim/clock.hpp"\n#include "ethernet/tcp.hpp"\n'),
        ("protocol/builder.cpp", '#include <vector>\n#include "base/units.hpp"\n'),
        ("protocol/builder_test.cpp", "#include <iostream>\n#include <gtest/gtest.h>\n"),
        ("sim/queue.cpp", '/*\n#include "protocol/message.hpp"\n*/\n// #include <chrono>\n'),
        ("live/transport/libfabric.cpp", "#include <rdma/fabric.h>\n"),
    ],
)
def test_checker_accepts_an_allowed_include(path, text):
    assert engine_violations(path, text) == []


PARTS = {*PYTHON, "_engine"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scenario/models.py", "import daqloom.simulate"),
        ("scenario/models.py", "from daqloom import simulate"),
        ("scenario/models.py", "from daqloom.simulate import run"),
        ("scenario/models.py", "from ..simulate import run"),
        ("scenario/models.py", "from .. import simulate"),
        ("scenario/load.py", "def late():\n    from daqloom.simulate import run"),
        ("scenario/models.py", "def late():\n    from daqloom.report import figure"),
        ("analyse/triangles.py", "from daqloom._engine import Rack"),
        ("analyse/triangles.py", "from daqloom.simulate import run"),
        ("simulate/run.py", "from daqloom.report import figure"),
        ("report/figure.py", "import daqloom.cli"),
        ("misc.py", ""),
    ],
)
def test_checker_reports_a_forbidden_import(path, text):
    assert len(python_violations(path, text, PARTS)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cli.py", "from daqloom.report import figure\nfrom .simulate import run"),
        ("simulate/run.py", "from daqloom import _engine\nfrom ..scenario import Scenario"),
        ("simulate/run.py", "from .results import record\nfrom . import results\nimport numpy"),
        ("scenario/models.py", "def late():\n    from daqloom.simulate import run"),
        ("__init__.py", "from daqloom.cli import main"),
    ],
)
def test_checker_accepts_an_allowed_import(path, text):
    assert python_violations(path, text, PARTS) == []
