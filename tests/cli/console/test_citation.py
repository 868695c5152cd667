"""`daqloom --cite` and the file that it reads."""

import re

import pytest
import yaml

import daqloom
from daqloom.base.version import commit
from daqloom.cli.console import citation
from support.command import invoke
from support.repository import ROOT

KEYS = {"abstract", "authors", "cff-version", "keywords", "license", "message", "title", "type"}
"""Keys of the Citation File Format 1.2.0 that this file has."""


def test_the_file_has_the_keys_that_the_format_requires() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert set(found) == KEYS
    assert (found["cff-version"], found["type"]) == ("1.2.0", "software")
    assert found["authors"] == [{"name": "The daqloom developers"}]
    assert all(isinstance(found[key], str) and found[key] for key in KEYS - {"authors", "keywords"})
    assert len(set(found["keywords"])) == len(found["keywords"]) > 0
    assert found["license"] in (ROOT / "pyproject.toml").read_text()


def test_an_entry_and_a_sentence_have_version_and_commit() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    entry, sentence = invoke("--cite").stdout.split("\n\n")
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", entry, re.MULTILINE))
    assert entry.startswith("@misc{daqloom,\n")
    assert entry.endswith("\n}")
    assert fields["author"] == f"{{{found['authors'][0]['name']}}}"
    assert fields["title"] == f"{{{found['title']}}}"
    assert fields["note"].startswith(f"version {daqloom.__version__}")
    assert daqloom.__version__ in sentence
    assert commit() in fields["note"]
    assert commit() in sentence


def test_an_unknown_commit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(citation, "commit", lambda: "")
    assert "commit" not in citation.citation()
    assert f"{{version {daqloom.__version__}}}," in citation.citation()
