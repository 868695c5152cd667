"""Build backend (PEP 517): scikit-build-core, with the version of the tree. The sdist and the wheel
contain version and commit."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from runpy import run_path
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "dynamic_metadata",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


# The sources of this tree, because an installed daqloom may have others.
_SOURCES = run_path(str(Path(__file__).parents[2] / "src" / "daqloom" / "base" / "sources.py"))


@contextmanager
def _recorded() -> Iterator[None]:
    """Replace the placeholders of a git tree by its commit and version during a build."""
    record: Path = _SOURCES["RECORD"]
    placeholder = record.read_text()
    recorded = f"{_SOURCES['commit']()}\n{_SOURCES['version']()}\n"
    if placeholder == recorded:
        yield
        return
    with suppress(OSError):  # sources without permission to write; the commit stays unknown
        record.write_text(recorded)
    try:
        yield
    finally:
        with suppress(OSError):
            record.write_text(placeholder)


def build_sdist(*arguments: Any, **options: Any) -> str:
    """See PEP 517."""
    with _recorded():
        return build.build_sdist(*arguments, **options)


def build_wheel(*arguments: Any, **options: Any) -> str:
    """See PEP 517."""
    with _recorded():
        return build.build_wheel(*arguments, **options)


def dynamic_metadata(_settings: Mapping[str, Any], _project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the version, for `tool.dynamic-metadata` of pyproject.toml."""
    return {"version": _SOURCES["version"]()}
