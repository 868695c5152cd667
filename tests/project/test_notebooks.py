"""The notebooks among the examples run cell by cell."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from support.repository import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_example_notebook_runs(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell by cell, as a kernel does it; what a cell ends with can be shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(notebook.read_text())["cells"]
    namespace: dict[str, Any] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, notebook.name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), namespace)
            shown.append(getattr(value, "_repr_html_", value.__repr__)())
    assert len(shown) > 4
    assert all(shown)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
