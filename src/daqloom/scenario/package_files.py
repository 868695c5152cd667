"""Scenarios and studies that come with daqloom."""

from pathlib import Path


def package_files(kind: str) -> dict[str, Path]:
    """Return the TOML files of a kind (`scenarios`, `studies`), by name."""
    folder = shipped_folder(kind)
    return {path.stem: path for path in sorted(folder.glob("*.toml"), key=lambda path: path.stem)}


def shipped_folder(kind: str) -> Path:
    """Return the folder of the files of a kind."""
    package = Path(__file__).resolve().parent.parent
    installed = package / kind
    # In a source tree the folders are at the root; the build copies them into the package.
    return installed if installed.is_dir() else package.parents[1] / kind
