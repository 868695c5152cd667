"""The documentation holds together: a reader who starts at README.md finds every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_sources import names_of_tests
from support.repository import ROOT

PAGES = sorted(
    page
    for folder in ("docs", "engine", "packages", "benchmarks")
    for page in (ROOT / folder).rglob("*.md")
    if not any(part.startswith((".", "build")) for part in page.relative_to(ROOT).parts)
) + sorted(ROOT.glob("*.md"))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """File and anchor of every relative link outside of code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield (page.parent / file).resolve() if file else page, anchor


FOLDERS = ("engine", "src", "packages", "tests", "docs", "benchmarks", "scripts", "examples")
SOURCES = frozenset(
    "/".join(file.relative_to(ROOT).parts[start:])
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*.*")
    for start in range(len(file.relative_to(ROOT).parts))
)
"""Files, by all ends of their paths: a page on engine/ omits the folder."""
_FOLDER = r"(?:engine|src|packages|tests|docs|benchmarks|scripts)/[\w./-]*"
_FILE = r"[\w./-]+/[\w.-]+\.(?:cpp|hpp|py|md|sh)|(?!x[._])\w+\.(?:cpp|hpp|py)"


ENGINE_TESTS = frozenset(
    f"{suite}.{name}"
    for file in (ROOT / "engine").rglob("*_test.?pp")
    for _, suite, name in names_of_tests(file.read_text("utf-8"))
)


def files(page: Path) -> set[str]:
    """Names of files and folders of the project that a page has in backticks."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(rf"`({_FOLDER}|{_FILE})`", text))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a forge makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        named.add(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"))
    return named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for file, anchor in links(page):
        assert file.exists(), f"{page.name} links {file.name}, which is not there"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links {file.name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    missing = {
        name
        for name in files(page)
        if name not in SOURCES and not any((top / name).exists() for top in (ROOT, page.parent))
    }
    assert missing == set()
    assert run_together(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_of_the_engine_that_a_page_names_is_there(page: Path) -> None:
    form = r"`([A-Z]\w+\.(?:[A-Z]\w*[a-z]\w*)?)(…|\*)?`"
    missing = [
        name
        for name, has_more in re.findall(form, page.read_text(encoding="utf-8"))
        if not any(test == name or (has_more and test.startswith(name)) for test in ENGINE_TESTS)
    ]
    assert missing == []


def test_every_file_that_a_comment_of_cpp_names_is_there() -> None:
    missing = [
        f"{source.relative_to(ROOT)}: {name}"
        for folder in ("engine", "packages", "benchmarks")
        for source in sorted((ROOT / folder).rglob("*.?pp"))
        for comment in re.findall(r"//.*", source.read_text(encoding="utf-8"))
        for name in re.findall(rf"(?<![\w./<-])(?:{_FILE})\b", comment)
        if name not in SOURCES
    ]
    assert missing == []


def test_every_page_can_be_reached_from_the_readme_and_no_line_is_there_twice() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [file for file, _ in links(page)]
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()
    for page in (ROOT / "engine").rglob("README.md"):
        lines = [line for line in page.read_text().splitlines() if line.startswith("- ")]
        assert len(lines) == len(set(lines)), page


def run_together(text: str) -> list[str]:
    """Where an item of a list goes on in the line of the one before, after its full stop."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.findall(r".*[.;:)`] -(?: |\n +)(?=[A-Z`*]).*", prose)


def test_items_in_one_line_are_found() -> None:
    assert run_together("- One item. - `key`: another. -\n  `last`: of all.") != []
    assert run_together("- A range, 1 - 2.\n- `a - b`, a difference.") == []


WIDTH = 104
"""Characters of a line of prose."""


def wide_lines(page: str) -> list[str]:
    """Return the lines of prose that are wider than `WIDTH` without the targets of links."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", page, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not re.match(r" *\||!\[| {4}", line)]
    return [line for line in lines if len(re.sub(r"\]\([^)]*\)", "]", line)) > WIDTH]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_a_page_fit_the_width(page: Path) -> None:
    assert wide_lines(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("page", "is_wide"),
    [
        ("word " * 21, True),
        ("- " + "word " * 21, True),
        ("```\n" + "word " * 21 + "\n```\n", False),
        ("| " + "word " * 21 + "|", False),
        (f"[name]({'x' * 100}) word", False),
    ],
)
def test_tables_code_and_links_may_be_wide(page: str, is_wide: bool) -> None:
    assert (wide_lines(page) != []) == is_wide
