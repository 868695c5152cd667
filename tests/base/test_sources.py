"""Commit and version of the sources, as results and `daqloom --version` state them."""

from pathlib import Path

import pytest

from daqloom.base.sources import FIRST, RECORD, commit, version
from support.git import committed, git


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


@pytest.mark.process
def test_the_version_is_that_of_the_last_tag_and_of_the_commits_since(tmp_path: Path) -> None:
    assert version(RECORD, tmp_path) == f"{FIRST}.dev0"
    (tmp_path / "file").write_text("first")
    committed(tmp_path)
    assert version(RECORD, tmp_path) == f"{FIRST}.dev1"
    for tag in ("1.2.0rc1", "1.2.0"):
        git(tmp_path, "tag", f"v{tag}")
        git(tmp_path, "tag", f"nightly-{tag}")
        assert version(RECORD, tmp_path) == tag
        for _ in range(2):
            git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "More")
        assert version(RECORD, tmp_path) == f"{tag}.post2"


def test_a_recorded_version_counts_more_than_a_tree_around_it(tmp_path: Path) -> None:
    record = tmp_path / "commit.txt"
    (tmp_path / ".git").mkdir()
    for line, expected in [
        ("1.2.0.post3", "1.2.0.post3"),
        ("v1.2.0-3-g1234abcd", "1.2.0.post3"),  # an archive of git
        ("v1.2.0", "1.2.0"),
        ("", f"{FIRST}.dev0"),  # an archive of a tree without tags
    ]:
        record.write_text(f"1234abcd\n{line}\n")
        assert version(record, tmp_path) == expected
