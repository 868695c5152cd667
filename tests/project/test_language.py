"""Comments begin with their subject; names are nouns and verbs of the subject.

A comment begins with none of `OPENINGS`, no participle names a file, nor alone a function or class
of Python outside of tests, and no name that we define has a part of `HEARSAY`: a program records,
reports and receives; it does not tell or hear. The name of a test also avoids `what` and `who`: it
states the behaviour of a subject. No variable is called `of`, and no function of Python by a
preposition alone. A time of Python has its unit in its name.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import pytest

from support.engine_sources import is_test, names_of_tests
from support.repository import ROOT

FOLDERS = ("engine", "src", "packages", "benchmarks", "tests")
"""Folders of C++ and Python sources to which the rules apply."""

OPENINGS = re.compile(
    r"(Of|None|Those|What|Who|So|It|As|The same|Whoever|Nobody|For whoever)(?![\w'’-])"
)
HEARSAY = frozenset(
    re.findall(
        r"\w+",
        """told untold tell tells telling hear hears heard unheard say says said speak speaks asked
        wanted seen nobody somebody anybody whoever seat seats outlet desk""",
    )
)
VAGUE_IN_TESTS = HEARSAY | {"what", "who"}
"""Words that the names of tests avoid."""
PREPOSITIONS = frozenset(re.findall(r"\w+", "of at on in by to from for with within without over"))
TIMES = {"now", "begin", "end", "time", "until", "timeout", "delay", "duration", "interval"}
PARTICIPLE = re.compile(
    r"(?:.*_)?(?:(?!expected)\w*(?<!e)ed"  # base/expected.hpp is named after std::expected
    r"|told|held|seen|given|broken|known|made|found|sent|met|meant|drawn|beside)"
)
VAGUE = re.compile(
    r"\bwhat (?:is no|is not|it was|it is|they are|there is)\b|\bdaqloom knows\b|\bnot told\b"
    r"|\b(?:tells?|says|hears?|besides|nobody|whoever)\b",
    re.IGNORECASE,
)
"""Words without a subject in meanings of keys and metrics, docstrings and messages of Python."""
FRAGMENT = re.compile(r"(?:By|Over|Since|With|Between|In|On|To|From|At|How|What|When)\b.{0,24}\.")
"""Docstrings of some words that lack the noun."""
STATES = {"applied", "dropped", "missed", "shared"}
"""Functions that a participle alone may name: settings of a device, and counters and sizes."""

_CPP = re.compile(
    r"//(?P<comment>[^\n]*)|R\"(?P<end>[^(\n]*)\(.*?\)(?P=end)\"|\"(?:\\.|[^\"\\\n])*\""
    r"|'(?:\\.|[^'\\\n])'|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)


def parts(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def cpp_comments(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of the first line of every comment."""
    last = -1
    for match in _CPP.finditer(text):
        if match["comment"] is None:
            continue
        line = text.count("\n", 0, match.start()) + 1
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if not (alone and last == line - 1):
            yield line, match["comment"].lstrip("/<!- ")
        last = line if alone else -1


def cpp_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every name outside of comments and literals; `of` only as a variable."""
    for match in _CPP.finditer(text):
        is_function = match["name"] == "of" and text[match.end() : match.end() + 1] in ("(", "<")
        if match["name"] and not is_function:
            yield text.count("\n", 0, match.start()) + 1, match["name"]


def definitions(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of every function and class of a module."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def python_comments(nodes: Sequence[ast.AST], text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, and of every string that documents an attribute."""
    for node in nodes:
        match node:
            case ast.Expr(ast.Constant(str(document))):
                yield node.lineno, document.lstrip()
    last = -1
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"\s*#:?\s+(.*)", line):
            if last != number - 1:
                yield number, match[1]
            last = number


def python_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of the names that a module defines; `of` for a function that a preposition
    names."""
    for line, name in definitions(nodes):
        yield line, "of" if name.strip("_") in PREPOSITIONS else name
    for node in nodes:
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def python_prose(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of the lines of strings that are vague, and of docstrings without a noun."""
    for node in nodes:
        match node:
            case ast.Constant(str(prose)):
                for number, line in enumerate(prose.split("\n"), node.lineno):
                    if VAGUE.search(line):
                        yield number, line.strip()
            case ast.Expr(ast.Constant(str(document))) if FRAGMENT.fullmatch(document):
                yield node.lineno, document


def python_participles(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of the functions and classes that a participle of one word names."""
    for line, name in definitions(nodes):
        word = name.strip("_").lower()
        if len(parts(name)) == 1 and PARTICIPLE.fullmatch(word) and word not in STATES:
            yield line, name


def python_times(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of parameters and fields that are times without a unit."""
    for node in nodes:
        match node:
            case (
                ast.arg(arg=name, annotation=kind)
                | ast.AnnAssign(
                    target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=kind
                )
            ) if kind is not None:
                if name.strip("_") in TIMES and ast.unparse(kind) in ("float", "float | None"):
                    yield node.lineno, name


def violations(path: str, text: str) -> list[str]:
    """Return the violations of the rules in the file at `path`."""
    python, folders = path.endswith(".py"), PurePosixPath(path).parts
    nodes = [*ast.walk(ast.parse(text))] if python else []
    comments = python_comments(nodes, text) if python else cpp_comments(text)
    found = [
        f"{path}:{line}: begin the comment with its subject: {comment[:40]}"
        for line, comment in comments
        if OPENINGS.match(comment)
    ]
    if is_test(path) or folders[-1].startswith("test_"):
        tests = ((line, name) for line, _, name in names_of_tests(text))
        return found + [
            f"{path}:{line}: name the behaviour of a subject: {name}"
            for line, name in (definitions(nodes) if python else tests)
            if parts(name) & VAGUE_IN_TESTS
        ]
    stem = PurePosixPath(path).stem
    if PARTICIPLE.fullmatch(stem):
        found.append(f"{path}: name the file by a noun: {stem}")
    names = python_names(nodes) if python else cpp_names(text)
    found += [
        f"{path}:{line}: name it by the subject: {name}"
        for line, name in names
        if parts(name) & HEARSAY or name == "of"
    ]
    if "tests" not in folders:
        found += [
            f"{path}:{line}: name it by a noun or verb: {name}"
            for line, name in python_participles(nodes)
        ]
    if "src" in folders:
        found += [
            f"{path}:{line}: name the subject: {prose}" for line, prose in python_prose(nodes)
        ]
    return found + [f"{path}:{line}: add the unit: {name}" for line, name in python_times(nodes)]


def test_sources_name_their_subjects():
    found = [
        violation
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".cpp", ".hpp", ".py"}
        for violation in violations(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/a/b.hpp", "/// Of the transport.\nint a;\n"),
        ("engine/a/b.hpp", "int a;  ///< None: unknown.\n"),
        ("engine/a/b_test.cpp", "// It is late.\n"),
        ("engine/a/b.hpp", "int told_ = 0;\n"),
        ("engine/a/b.hpp", "struct SeatOf {};\n"),
        ("engine/a/b.hpp", "int of = 0;\n"),
        ("engine/a/checked.hpp", ""),
        ("src/daqloom/a/told.py", ""),
        ("src/daqloom/a/b.py", '"""So many of them."""\n'),
        ("src/daqloom/a/b.py", "#: Those of a set.\nA = 1\n"),
        ("src/daqloom/a/b.py", "def tell(a: int) -> None: ...\n"),
        ("src/daqloom/a/b.py", "def a(is_wanted: int) -> None: ...\n"),
        ("src/daqloom/a/b.py", "of = 1\n"),
        ("src/daqloom/a/b.py", "def a(now: float) -> None: ...\n"),
        ("src/daqloom/a/b.py", "class A:\n    end: float | None = None\n"),
        ("src/daqloom/a/b.py", "def _with(a: int) -> None: ...\n"),
        ("tests/a/test_b.py", "def test_what_is_lost_is_absent(): ...\n"),
        ("tests/a/test_b.py", "def test_a_unit_says_why(): ...\n"),
        ("engine/a/b_test.cpp", "TEST(Unit, WhatIsLostIsAbsent) {}\n"),
        ("src/daqloom/a/b.py", "def _counted(a: int) -> None: ...\n"),
        ("src/daqloom/a/b.py", "class A:\n    def given(self) -> int: ...\n"),
        ("src/daqloom/a/b.py", "class Checked: ...\n"),
        ("src/daqloom/a/b.py", 'class A:\n    a: int\n    """By name."""\n'),
        ("src/daqloom/a/b.py", "METRICS = 'a | B |\\n until it is again what it was'\n"),
        ("src/daqloom/a/b.py", "a = 'answers with what is not JSON'\n"),
    ],
)
def test_checker_reports_fragments_and_hearsay(path, text):
    assert len(violations(path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/a/b.hpp", "/// Counters of a transport,\n/// So the line goes on.\nint seed;\n"),
        ("engine/a/b.hpp", 'const char* a = "told";  // a word of the file format\n'),
        ("engine/a/b_test.cpp", "void say(int);\nTEST(Unit, ReportsLosses) {}\n"),
        ("engine/a/recorded_checksums.hpp", "int as_of = Line::of(1);\n"),
        ("engine/a/feed.hpp", "// None-blocking descriptors.\n"),
        ("src/daqloom/a/b.py", '"""Sums of rates."""\n\nimport told\n\na = told.tell()\n'),
        ("tests/a/test_b.py", "def test_lost_units_are_absent():\n    told = 1\n"),
        ("src/daqloom/a/b.py", "def speed() -> int: ...\ndef given_by() -> int: ...\n"),
    ],
)
def test_checker_accepts_subjects(path, text):
    assert violations(path, text) == []
