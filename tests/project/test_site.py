"""The site of the documentation, built and opened in a browser from a disk without a network."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from support.browser import opened, serious_findings
from support.repository import ROOT

PAGES = [
    "index.html",
    "explanation/incast.html",
    "reference/commands.html",
    "reference/headers.html",
    "reference/python.html",
    "reference/scenario.html",
    "repository/engine/index.html",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the site. A dead link, a dead anchor or a page without a place fails its build."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture
def page() -> Iterator[Page]:
    with opened(1300, 900) as page:
        yield page


@pytest.mark.process
def test_the_site_opens_from_a_disk_is_searched_and_is_accessible(site: Path, page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for name, scheme in (*((name, "light") for name in PAGES), ("reference/headers.html", "dark")):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"file://{site / name}")
        worst = serious_findings(page)
        assert not worst, f"{name} ({scheme}): {worst}"
    page.locator("input.md-search__input").click()
    page.keyboard.type("incast")
    first = page.locator(".md-search-result__item h1").first
    first.wait_for()
    assert first.inner_text() == "Incast, and what helps against it"
    assert {url.partition(":")[0] for url in requests} == {"file"}


@pytest.mark.process
def test_generated_pages_have_every_command_every_function_and_the_headers(site: Path) -> None:
    commands, functions, headers = (
        (site / f"reference/{name}.html").read_text() for name in ("commands", "python", "headers")
    )
    for command in ("daqloom simulate", "daqloom study run", "daqloom switch benchmark"):
        assert f"<code>{command}</code>" in commands
    for function in ("load", "sweep", "open_study", "write_report", "write_figure"):
        assert f".{function}" in functions
    assert "class" in headers
    assert "sink.hpp" in headers


@pytest.mark.process
def test_the_list_for_language_models_names_pages_of_the_site(site: Path) -> None:
    targets = re.findall(r"^- .*?\]\((.+?)\)", (site / "llms.txt").read_text(), re.MULTILINE)
    assert "start/atlas.html" in targets
    assert [each for each in targets if not (site / each).is_file()] == []
