"""The page on stability quotes the sentences with which other versions are refused."""

import json
import re
from pathlib import Path

import pytest

from daqloom.control.calls.service import _SENTENCES
from daqloom.control.protocol.states import Refusal
from daqloom.results.result import Result, ResultError
from daqloom.study import StudyError
from daqloom.study.store.store import Store
from support.repository import ROOT

PAGE = (ROOT / "docs" / "reference" / "stability.md").read_text()


def quoted() -> set[str]:
    """Sentences of the table of mixed versions."""
    rows = re.findall(r"^\| .*? \| (.*) \|$", PAGE.partition("## Mixed versions")[2], re.MULTILINE)
    spans = re.findall(r"``(.+?)``|`([^`]+)`", "\n".join(rows))
    return {text for span in spans for text in span if text.count(" ") > 2}


def raised() -> set[str]:
    """Texts of sources, with neighbouring strings joined."""
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "engine" / "live").rglob("*.cpp")]
    return {re.sub(r'"\s+f?"', "", path.read_text()) for path in paths}


def of_store(path: Path, number: int) -> str:
    path.mkdir()
    Store.open(path / "now", create=True).sync()
    [mark] = [each for each in (path / "now").iterdir() if each.is_file()]
    [name] = json.loads(mark.read_text())
    mark.write_text(json.dumps({name: number}))
    with pytest.raises(StudyError) as error:
        Store.open(path / "now", create=False)
    return str(error.value).replace(str(path / "now"), "STORE")


def test_every_sentence_of_the_page_is_one_of_the_code(tmp_path: Path) -> None:
    with pytest.raises(ResultError) as result:
        Result.from_dict({"schema": 2})
    shown = {
        re.sub(r"has [\w.+]+;", "has VERSION;", _SENTENCES[Refusal.VERSION]),
        of_store(tmp_path / "newer", 4),
        of_store(tmp_path / "older", 2),
        str(result.value),
    }
    assert shown <= quoted()
    others = quoted() - shown
    assert len(others) == 4
    sources = raised()
    for sentence in others:
        assert any(sentence in text for text in sources), sentence
