"""llms.txt lists every page of the navigation, and is up to date."""

import re
import subprocess
import sys

import pytest

from support.repository import ROOT

TEXT = (ROOT / "llms.txt").read_text()


@pytest.mark.process
def test_the_file_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/llms.py"], capture_output=True, text=True, check=True
    )
    assert made.stdout == TEXT, "run `make docs`"


def test_the_form_is_that_of_the_convention() -> None:
    title, summary, _, *sections = re.split(r"\n\n", TEXT.strip())
    assert title == "# daqloom"
    assert summary.startswith("> ")
    for heading, entries in zip(sections[::2], sections[1::2], strict=True):
        assert re.fullmatch(r"## [\w-]+", heading)
        for line in entries.splitlines():
            assert re.fullmatch(r"- \[[^\]]+\]\([^)\s]+\)(: .+)?", line)


def test_every_page_has_a_link_with_a_phrase_to_an_existing_file() -> None:
    phrases = dict(re.findall(r"^- \[[^\]]+\]\(([^)]+)\): (.+)$", TEXT, re.MULTILINE))
    assert all((ROOT / target).is_file() for target in phrases)
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - phrases.keys() == {"docs/README.md"}
