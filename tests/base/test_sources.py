"""The commit of the sources, as results and `daqloom --version` state it."""

from pathlib import Path

import pytest

from daqloom.base.sources import RECORD, commit
from support.git import committed


@pytest.mark.process
def test_the_commit_of_a_git_tree_marks_modified_files(tmp_path: Path, monkeypatch) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    assert commit(RECORD, tree) == ""
    (tree / "file").write_text("before")
    begun = committed(tree)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert commit(RECORD, tree) == begun
    (tree / "another").write_text("not part of the tree")
    assert commit(RECORD, tree) == begun
    (tree / "file").write_text("after")
    assert commit(RECORD, tree) == f"{begun} (modified)"
    monkeypatch.setenv("PATH", str(tmp_path))  # without git
    assert commit(RECORD, tree) == ""


@pytest.mark.parametrize("recorded", ["1234abcd", "1234abcd (modified)", ""])
def test_the_record_of_a_build_counts_more_than_a_tree_around_it(tmp_path, recorded) -> None:
    (tmp_path / "commit.txt").write_text(f"{recorded}\n")
    (tmp_path / ".git").mkdir()
    assert commit(tmp_path / "commit.txt", tmp_path) == recorded
