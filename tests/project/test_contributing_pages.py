"""The pages on additions quote the code as it stands, and name all files that an addition costs."""

import ast
import functools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.repository import ROOT, make_targets

PAGES = sorted((ROOT / "docs" / "contributing").glob("add-*.md"))
LEFT_OUT = "…"
"""A line of an excerpt that stands for others."""


class Excerpt(NamedTuple):
    file: str
    """Named last before it; empty where none is."""
    code: str


def excerpts(page: str) -> Iterator[Excerpt]:
    """Code that is quoted, and where from; commands are not quoted."""
    file = ""
    for part in re.split(r"(```.*?```)", page, flags=re.DOTALL):
        if not part.startswith("```"):
            named = [name for name in re.findall(r"`([\w./-]+)`", part) if (ROOT / name).is_file()]
            file = named[-1] if named else file
        elif not part.startswith("```console"):
            yield Excerpt(file, part.strip("`").partition("\n")[2])


def plain(code: str) -> str:
    return " ".join(code.split())


def missing(code: str, text: str) -> str:
    """Return the first piece of an excerpt that does not follow in a text; empty if all do."""
    rest = plain(text)
    for piece in re.split(rf"^\s*{LEFT_OUT}\s*$", code, flags=re.MULTILINE):
        _, found, rest = rest.partition(plain(piece))
        if not found:
            return piece
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_code_of_a_page_is_in_the_named_file(page: Path) -> None:
    quoted = list(excerpts(page.read_text()))
    assert len(quoted) >= 2
    for file, code in quoted:
        assert file, f"{page.name} quotes without naming a file:\n{code}"
        piece = missing(code, (ROOT / file).read_text())
        assert not piece, f"{page.name} quotes what is not in {file}:\n{piece}"


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("int a;\n  int b;\n", True),
        ("int a;\n…\nint c;\n", True),
        ("int c;\n…\nint a;\n", False),
        ("int d;\n", False),
        ("int a;\nint c;\n", False),
    ],
)
def test_a_stale_excerpt_is_found(code: str, is_found: bool) -> None:
    assert (missing(code, "  int a;\n  int b;\n\n  int c;\n") == "") == is_found


def test_an_excerpt_is_of_the_file_named_last_and_every_page_has_an_example() -> None:
    page = (
        "`README.md`, `none.md` and `Makefile`:\n```make\na\n```\nand\n```make\nb\n```\n"
        "```console\n$ c\n```\n"
    )
    assert list(excerpts(page)) == [("Makefile", "a\n"), ("Makefile", "b\n")]
    assert EXAMPLES.keys() == {page.stem for page in PAGES}


# ---- costs --------------------------------------------------------------------------------------

EXAMPLES = {
    "add-a-building-protocol": r"(?i:daqpipe)",
    "add-a-congestion-control": r'\bCubic\b|cubic\.hpp|"newreno", "cubic"',
    "add-a-failure": r'"card"|CardStop|card_stop',
    "add-a-live-transport": (
        r'[!=]= "shm"|\{"shm"|r"shm|ShmTransport final|ShmTransport::Unit|ShmPeer|MessageRing'
    ),
    "add-a-metric": r"\b(writes_)?overran\b",
    "add-a-scenario-key": r"quick_acks",
    "add-an-adapter": r"class Junos\b|adapters\.junos",
    "add-a-switch-model": r'BufferModel::drop_tail|"drop-tail"|queue_packets',
}
"""Pattern of the example that a page walks through, in code."""


@functools.cache
def without_prose(file: Path) -> str:
    """The code of a file without comments and docstrings."""
    text = file.read_text()
    if file.suffix != ".py":
        return re.sub(r"//.*$", "", text, flags=re.MULTILINE)
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def naming(pattern: str) -> set[str]:
    """Files of production whose code has what the pattern says."""
    return {
        str(file.relative_to(ROOT))
        for folder in ("engine", "src", "packages")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".hpp", ".cpp", ".py", ".toml")
        and not re.search(r"_(test|bench|fuzz)\.|/tests/", str(file.relative_to(ROOT)))
        and re.search(pattern, without_prose(file))
    }


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_costs_are_the_files_that_name_the_example(page: str) -> None:
    text = (ROOT / "docs" / "contributing" / f"{page}.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \|", text.partition("## What it costs")[2], re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == naming(EXAMPLES[page])
    new = len(re.findall(r"^\| `[^`]+` \| new", text, re.MULTILINE))
    heads = re.findall(r"costs (\d+)\snew\sfiles?\sand\s(\d+)\sedited\sones?", text)
    assert heads == [(str(new), str(len(rows) - new))]


WALKS = re.findall(
    r"^\| `([^`]+)` \| (.*?) \| .*\|$",
    (ROOT / "docs" / "contributing" / "read-the-code.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("file", "subjects"), WALKS, ids=[file for file, _ in WALKS])
def test_names_in_the_walk_through_the_code_are_in_its_files(file: str, subjects: str) -> None:
    words = set(re.findall(r"\w+", (ROOT / file).read_text()))
    assert (
        set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", subjects)))) - words - {"daqloom"}
        == set()
    )


COMMANDS = [
    (page.stem, line)
    for page in sorted((ROOT / "docs" / "contributing").glob("*.md"))
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)
]


def problem(line: str) -> str:
    """Return what keeps a command from working in a fresh clone; empty if nothing does."""
    words = shlex.split(line)
    match words:
        case ["make", *rest]:
            unknown = {word for word in rest if "=" not in word} - make_targets()
            folders = [word.removeprefix("IN=") for word in rest if word.startswith("IN=")]
            without = [f for f in folders if not [*(ROOT / f).rglob("*_test.cpp")]]
            return f"no target {unknown}" if unknown else f"no tests in {without}" * bool(without)
        case ["cmake", "--preset", name]:
            return "" if name in PRESETS else f"no preset {name}"
        case ["cmake", "--build", folder, "--target", target]:
            tests = ROOT / "engine" / target.removesuffix("_test").replace("_", "/")
            is_known = folder.removeprefix("build/") in PRESETS and [*tests.glob("*_test.cpp")]
            return "" if is_known else f"no test {target}"
        case [program, *_] if program.startswith("scripts/"):
            return "" if (ROOT / program).is_file() else f"no script {program}"
        case [".venv/bin/python", "-m", "pytest", *paths]:
            return "".join(f"no {path}" for path in paths if not (ROOT / path).exists())
    return ""


PRESETS = {
    preset["name"]
    for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
}


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_of_a_page_works_in_a_fresh_clone(page: str, line: str) -> None:
    assert problem(line) == ""


@pytest.mark.parametrize(
    "line",
    [
        "make test-slow",
        "make test-fast IN=engine/none",
        "cmake --preset none",
        "cmake --build build/none --target base_test",
        "cmake --build build/debug --target none_test",
        "scripts/none.sh",
        ".venv/bin/python -m pytest tests/none.py",
    ],
)
def test_a_command_that_does_not_work_is_found(line: str) -> None:
    assert problem(line)
