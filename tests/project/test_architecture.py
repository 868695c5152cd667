"""The arrows of the architecture, checked from the include and import lines.

engine:  the folders below each folder in engine/CMakeLists.txt, and everything ← bindings
python:  the folders of ORDER, of which each is above those in the lines before its own
packages: the modules of OFFERED, and others of the same package; the core imports no package
"""

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec

import pytest

from support.engine_sources import includes, is_test
from support.repository import ROOT


def engine_folders(text: str) -> dict[str, set[str]]:
    """Return the folders that each folder of engine/ may include besides itself, as CMake links it:
    with the folders that those may include. Lowest first; the bindings stand above all."""
    folders: dict[str, set[str]] = {}
    for folder, known in re.findall(r"^daqloom_add_folder\((\w+)([\w ]*)\)", text, re.MULTILINE):
        folders[folder] = {name for k in known.split() for name in {k} | folders[k]}
    return folders | {"bindings": set(folders)}


ENGINE = engine_folders((ROOT / "engine" / "CMakeLists.txt").read_text())

OWN_FILES = ""
# Subfolders of its folder that a subfolder, or the folder's own files, may include, besides the
# subfolder itself and the folder's own files.
SUBFOLDERS: dict[str, dict[str, set[str]]] = {
    "protocol": {
        "data": set(),
        "schedule": {"data"},
        "machines": {"data", "schedule"},
        "units": {"data", "schedule", "machines"},
        "run": {"data"},
    },
    "live": {
        "memory": set(),
        "ends": {"memory"},
        "transport": {"memory"},
        "node": {"memory", "ends", "transport"},
    },
    "systems": {
        "run": set(),
        "requested": {"run"},
        "shift": {"run"},
        "ring": set(),
        "recording": {"requested"},
    },
    "live/transport": {
        OWN_FILES: {"shm", "tcp", "libfabric", "mpi", "mixture"},
        "shm": set(),
        "tcp": set(),
        "libfabric": {"tcp"},
        "mpi": set(),
        "mixture": {"shm"},
    },
}

# Outside headers that belong to one place only: pattern of the header, folders that may name it.
RESERVED: list[tuple[str, tuple[str, ...]]] = [
    (r"(Python\.h|nanobind/.*|pybind11/.*)", ("bindings",)),
    (r"rte_.*", ("softswitch/io",)),
    (r"rdma/.*", ("live/transport/libfabric",)),
    (r"mpi\.h", ("live/transport/mpi",)),
]

# protocol/ is sans I/O: no socket, no thread, no clock of its own.
WORLDLY = re.compile(
    r"(sys|netinet|arpa|linux|net)/.*|pthread\.h|unistd\.h|poll\.h|fcntl\.h|netdb\.h|c?time(\.h)?|"
    r"c?stdio(\.h)?|i?o?f?stream|filesystem|chrono|thread|stop_token|mutex|shared_mutex|future|"
    r"condition_variable|semaphore|latch|barrier|atomic|coroutine"
)

# The folders of src/daqloom from below: the files of each may import those of the lines above its
# own, and no other folder. The package itself is the facade over all but the command line.
ORDER: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("scenario",),
    ("scenario/schema", "faults", "study", "topology"),
    ("scenario/file", "results/metrics", "configuration", "study/statistics", "topology/fabric"),
    ("topology/routing",),
    ("topology/schedule",),
    ("topology/formats",),
    ("topology/shapes",),
    ("topology/failures",),
    ("deployment",),
    ("data", "faults/logs"),
    ("results", "faults/statistics"),
    ("analyse", "faults/costs", "machine", "simulate"),
    ("analyse/fabric", "control/protocol", "device"),
    ("control/calls", "control/counters", "control/hooks"),
    ("control/record",),
    ("control/persistence",),
    ("control",),
    ("lab",),
    ("measure", "softswitch"),
    ("study/methods", "report"),
    ("study/file", "report/faults", "report/system", ""),
    ("study/store",),
    ("study/run",),
    ("study/conclusions",),
    ("study/reproduction",),
    ("report/study", "terms"),
    ("tasks",),
    ("cli/console", "console"),
    ("cli/assistant",),
    ("cli",),
)
HEIGHT = {folder: height for height, folders in enumerate(ORDER) for folder in folders}
PUBLIC = {"buffers.py", "system.py"}
"""Files of the package itself, beside its two entrances."""
MOST_FILES = 25
"""Production files of one folder, engine and Python."""

# The rooms that know the engine.
ENGINES = {"_engine", "_switch"}
ENGINE_USERS = {
    "analyse",
    "simulate",
    "configuration",
    "control",
    "data",
    "device",
    "lab",
    "machine",
    "measure",
    "softswitch",
    "buffers.py",
}

# Modules of daqloom that a distribution in packages/ may import.
OFFERED = {
    "_switch",
    "base.words",
    "control.calls.connection",
    "device.adapter",
    "device.credentials",
    "machine.addresses",
    "results.errors",
    "scenario.errors",
    "scenario.files",
    "scenario.quantities",
    "softswitch.configure",
    "softswitch.devices",
    "softswitch.document",
    "softswitch.running",
    "softswitch.status",
}


def subfolder(path: str, room: str) -> str | None:
    """The subfolder of `room` that has the file at `path`, OWN_FILES if `room` itself has it."""
    names = path.removeprefix(f"{room}/").split("/")
    return (names[0] if len(names) > 1 else OWN_FILES) if path.startswith(f"{room}/") else None


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
        elif target == folder and not is_test(path):
            found += [
                f"{path} includes {header}: {f'{room}/{here}'.rstrip('/')} may not know {there}"
                for room, arrows in SUBFOLDERS.items()
                for here in [subfolder(path, room)]
                for there in [subfolder(header, room)]
                if here is not None and there and there not in arrows.get(here, set()) | {here}
            ]
        elif folder == "protocol" and not is_test(path) and WORLDLY.fullmatch(header):
            found.append(f"{path} includes <{header}>: protocol is sans I/O")
        for pattern, homes in RESERVED:
            if re.fullmatch(pattern, header) and not path.startswith(tuple(f"{h}/" for h in homes)):
                found.append(f"{path} includes <{header}>: only {', '.join(homes)} may")
    return found


@functools.cache
def imported(path: str, text: str) -> list[list[str]]:
    """Modules that the file at `path` (relative to src/daqloom/) imports, at its top, in a function
    or for a type checker, each with the name that it takes from there."""
    package, found = path.split("/")[:-1], []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = ["daqloom", *package][: len(package) + 2 - node.level] if node.level else []
            there = node.module.split(".") if node.module else []
            found += [[*here, *there, alias.name] for alias in node.names]
    return found


def imports(path: str, text: str) -> Iterator[tuple[str, ...]]:
    """The modules and names of `imported` that are daqloom's, without that name."""
    yield from (tuple(name[1:]) for name in imported(path, text) if name[0] == "daqloom")


def python_violations(path: str, text: str) -> list[str]:
    """Why the file at `path` (relative to src/daqloom/) may not import what it imports.

    `from daqloom import load` names no folder: only the command line may, above the facade. The
    `__init__` of a package may offer names of its own folders.
    """
    folder, _, file = path.rpartition("/")
    room = path.split("/")[0]
    if not folder and file in ("__init__.py", "__main__.py"):
        return []
    if folder not in HEIGHT or (not folder and file not in PUBLIC):
        return [f"{path} has no place in the architecture: see ORDER and PUBLIC"]
    found = []
    for name in imports(path, text):
        module = next((m for m in (name, name[:-1]) if m in FOLDERS), ())
        other = FOLDERS[module] if module else None
        if name and name[0] in ENGINES:
            other = name[0]
            allowed = room in (ENGINE_USERS if other == "_engine" else {"softswitch"})
        elif other is None:
            allowed = room == "cli"
        else:
            offers = file == "__init__.py" and other.startswith(f"{folder}/")
            allowed = other == folder or offers or HEIGHT[other] < HEIGHT[folder]
        if not allowed:
            found.append(f"{path} imports {'.'.join(name)}: {folder} may not know {other}")
    for top, *_ in imported(path, text):
        if top.startswith("daqloom_"):
            found.append(f"{path} imports {top}: find it by its entry point")
    return found


def package_violations(path: str, text: str) -> list[str]:
    """Why the file at `path` (relative to packages/) may not import what it imports."""
    own = path.split("/")[2]
    return [
        f"{path} imports {'.'.join(name)}: it is not among what daqloom offers to packages"
        for name in imported("", text)
        if name[0].startswith("daqloom")
        and name[0] != own
        and (name[0] != "daqloom" or ".".join(name[1:-1]) not in OFFERED)
    ]


def module_of(path: str) -> tuple[str, ...]:
    """The module in the file at `path` (relative to src/daqloom/)."""
    parts = path.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(texts: Mapping[str, str]) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Which module imports which, of files by path, imports that are deferred among them."""
    paths = {module_of(path): path for path in texts}
    graph = {}
    for module, path in paths.items():
        found = {
            name if name in paths else name[:-1]
            for name in imports(path, texts[path])
            if name and name[0] not in ENGINES
        }
        graph[module] = {name for name in found if name in paths} - {module}
    return graph


def circles(texts: Mapping[str, str]) -> list[str]:
    """The modules that import one another in a circle, if any do."""
    try:
        tuple(TopologicalSorter(import_graph(texts)).static_order())
    except CycleError as error:
        return [".".join(("daqloom", *module)) for module in error.args[1]]
    return []


@functools.cache
def python_texts() -> dict[str, str]:
    """The modules of daqloom, by their paths from src/daqloom/ on."""
    package = ROOT / "src" / "daqloom"
    return {p.relative_to(package).as_posix(): p.read_text() for p in package.rglob("*.py")}


FOLDERS = {module_of(path): path.rpartition("/")[0] for path in python_texts()}
"""The folder of each module."""


def test_no_folder_has_too_many_files():
    files = [
        p
        for suffix in ("py", "cpp", "hpp")
        for top in ("engine", "src")
        for p in (ROOT / top).rglob(f"*.{suffix}")
        if not is_test(p.name)
    ]
    counts = Counter(str(p.parent.relative_to(ROOT)) for p in files)
    assert len(files) > 400
    assert not {folder: n for folder, n in counts.items() if n > MOST_FILES}


def test_engine_includes_point_down_only():
    files = [p for p in (ROOT / "engine").rglob("*") if p.suffix in {".cpp", ".hpp", ".h"}]
    assert files
    violations = [
        v
        for p in files
        for v in engine_violations(p.relative_to(ROOT / "engine").as_posix(), p.read_text())
    ]
    assert not violations, "\n".join(violations)


def test_python_imports_point_down_only_and_in_no_circle():
    texts = python_texts()
    assert len(texts) > 100
    violations = [v for path, text in texts.items() for v in python_violations(path, text)]
    assert not violations, "\n".join(violations)
    assert circles(texts) == []


def pictured(room: str) -> int:
    """The line of a room of Python in the picture of docs/contributing/architecture.md."""
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    lines = page.split("```")[1].split("\n---")[0].splitlines()
    found = [n for n, line in enumerate(lines) if room in re.findall(r"\w+", line[:48])]
    assert len(found) == 1, f"the picture has {room} in {len(found)} lines"
    return found[0]


def test_the_arrows_of_the_picture_point_down():
    modules = {m: m[0] for m in FOLDERS if len(m) > 1}
    arrows = {
        (modules[a], modules[b])
        for a, targets in import_graph(python_texts()).items()
        for b in targets
        if a in modules and b in modules and modules[a] != modules[b]
    }
    assert len(arrows) > 50
    assert [(a, b) for a, b in sorted(arrows) if pictured(a) >= pictured(b)] == []


def test_packages_import_only_offered_modules():
    folder = ROOT / "packages"
    texts = {p.relative_to(folder).as_posix(): p.read_text() for p in folder.glob("*/src/**/*.py")}
    assert texts
    violations = [v for path, text in texts.items() for v in package_violations(path, text)]
    assert not violations, "\n".join(violations)
    used = {".".join(n[:-1]) for path, text in texts.items() for n in imports("", text)}
    assert used >= OFFERED


@pytest.mark.parametrize(
    ("line", "is_allowed"),
    [
        ("from daqloom.base.words import printable", True),
        ("from daqloom_one.session import Session", True),
        ("import os", True),
        ("from daqloom_two.session import Session", False),
        ("from daqloom.cli.app import app", False),
        ("from daqloom import words", False),
        ("import daqloom.base.words", False),
        ("from daqloom import _engine", False),
    ],
)
def test_checker_reports_forbidden_imports_of_packages(line, is_allowed):
    assert bool(package_violations("daqloom-one/src/daqloom_one/x.py", line)) != is_allowed


def test_each_folder_of_the_engine_is_a_target_that_links_those_below():
    sources = {p.relative_to(ROOT / "engine").parts[0] for p in (ROOT / "engine").rglob("*.cpp")}
    assert sources == set(ENGINE)
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


def test_only_the_scenario_asks_for_classes_of_its_tables():
    """Methods ask for the choice made, not for the class that describes it."""
    classes = "|".join(
        name
        for path, text in python_texts().items()
        if path.startswith("scenario/")
        for name in re.findall(r"^class (\w+)\((?:Part|Tables)\)", text, flags=re.MULTILINE)
    )
    asked = re.compile(rf"isinstance\([^()]*,[^()]*\b({classes})\b")
    assert asked.search("isinstance(system, Scenario)")
    found = [
        path
        for path, text in python_texts().items()
        if not path.startswith("scenario/") and asked.search(text)
    ]
    assert found == []


def test_methods_ask_for_properties_of_a_building_protocol_and_not_for_its_name():
    compared = re.compile(r"\.protocol (==|!=|in|not in) ")
    assert compared.search('if scenario.building.protocol == "none":')
    assert [path for path, text in python_texts().items() if compared.search(text)] == []


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
        (
            "live/memory/buffer.cpp",
            '#include "live/ends/sink.hpp"',
            "live/memory may not know ends",
        ),
        ("live/new/misc.cpp", '#include "live/ends/sink.hpp"', "live/new may not know ends"),
        (
            "systems/system.hpp",
            '#include "systems/run/run_driver.hpp"',
            "systems may not know run",
        ),
        (
            "live/transport/shm/shm.cpp",
            '#include "live/transport/tcp/socket.hpp"',
            "live/transport/shm may not know tcp",
        ),
        ("ethernet/switch.cpp", "#include <rte_ethdev.h>", "only softswitch/io may"),
        ("live/shm.cpp", "#include <rdma/fabric.h>", "only live/transport/libfabric may"),
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
        ("live/transport/libfabric/libfabric.cpp", "#include <rdma/fabric.h>\n"),
    ],
)
def test_checker_accepts_an_allowed_include(path, text):
    assert engine_violations(path, text) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scenario/schema/models.py", "import daqloom.simulate"),
        ("scenario/schema/models.py", "from daqloom import simulate"),
        ("scenario/schema/models.py", "from daqloom.simulate import run"),
        ("scenario/schema/models.py", "from ...simulate import run"),
        ("scenario/schema/models.py", "from ... import simulate"),
        (
            "scenario/file/load.py",
            "def late():\n    from daqloom.deployment.scenarios import load",
        ),
        ("scenario/file/load.py", "if TYPE_CHECKING:\n    from daqloom.system import System"),
        ("report/figure.py", "from daqloom._engine import Rack"),
        ("analyse/triangles.py", "from daqloom.simulate import run"),
        ("simulate/run.py", "from daqloom.report import figure"),
        ("study/run/sweep.py", "from daqloom import load"),
        ("report/figure.py", "import daqloom.cli"),
        ("measure/run.py", "from daqloom_adapters.snmp import Snmp"),
        ("misc.py", ""),
    ],
)
def test_checker_reports_a_forbidden_import(path, text):
    assert len(python_violations(path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cli/main.py", "from daqloom.report import figure\nfrom daqloom import load"),
        ("simulate/run.py", "from daqloom import _engine\nfrom ..scenario import Scenario"),
        ("simulate/run.py", "from .shift import metrics\nfrom . import pull\nimport numpy"),
        ("system.py", "def late():\n    from daqloom.study.methods.all_methods import run_methods"),
        ("__init__.py", "from daqloom.cli.main import main"),
    ],
)
def test_checker_accepts_an_allowed_import(path, text):
    assert python_violations(path, text) == []


@pytest.mark.parametrize(
    "back",
    [
        "from daqloom.control.node import Node",
        "from daqloom.control import node",
        "from . import node",
        "def late():\n    import daqloom.control.node",
        "if TYPE_CHECKING:\n    from daqloom.control.node import Node",
    ],
)
def test_checker_finds_a_circle(back):
    texts = {"control/node.py": "from daqloom.control.unit import Unit", "control/unit.py": back}
    assert set(circles(texts)) == {"daqloom.control.node", "daqloom.control.unit"}
    assert circles(texts | {"control/unit.py": "import numpy"}) == []


def deferred(path: str, text: str) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports in a block `with lazy.imports()`, each with whether it can
    wait there: names of other kinds cannot."""
    for block in ast.walk(ast.parse(text)):
        if isinstance(block, ast.With) and ast.unparse(block.items[0]) == "lazy.imports()":
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        name = f"{node.module}.{alias.name}"
                        yield name, find_spec(name) is not None
                elif isinstance(node, ast.Import):
                    yield from ((a.name, "." not in a.name) for a in node.names)
                else:
                    yield f"{path}:{node.lineno}", False


def imported_in_functions(text: str) -> list[int]:
    """The lines of imports in functions, but for those whose failure the function handles."""
    tree = ast.parse(text)
    handled = {n for node in ast.walk(tree) if isinstance(node, ast.Try) for n in node.body}
    return [
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in handled
    ]


AT_ONCE = ("__init__.py", "__main__.py")
"""The entries of the package and of the program, which import as little as can be."""


def test_imports_that_wait_stand_in_one_block_at_the_top() -> None:
    texts = {path: text for path, text in python_texts().items() if path not in AT_ONCE}
    found = [name for path, text in texts.items() for name in deferred(path, text)]
    assert len(found) > 100
    assert not [name for name, can_wait in found if not can_wait]
    assert not {
        path: lines for path, text in texts.items() if (lines := imported_in_functions(text))
    }


def test_checker_reports_imports_that_cannot_wait_or_are_in_a_function() -> None:
    text = "with lazy.imports():\n    from xml.dom import minidom, Node\n    import xml.dom\n"
    assert list(deferred("x.py", text)) == [
        ("xml.dom.minidom", True),
        ("xml.dom.Node", False),
        ("xml.dom", False),
    ]
    handled = "    try:\n        import b\n    except ImportError:\n        b = None\n"
    assert imported_in_functions(f"import c\ndef f():\n    import a\n{handled}") == [3]
