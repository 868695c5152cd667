"""Third-party packages that only some jobs need, and the extra of daqloom that installs each."""

from collections.abc import Mapping
from importlib.util import find_spec

EXTRAS: Mapping[str, str] = {
    "MLRsearch": "switch",
    "caproto": "epics",
    "cryptography": "live",
    "daqloom_adapters": "adapters",
    "daqloom_sdn": "adapters",
    "dask": "cluster",
    "distributed": "cluster",
    "grpc": "live",
    "jinja2": "figures",
    "matplotlib": "figures",
    "mcp": "mcp",
    "pandas": "studies",
    "plotly": "figures",
    "prometheus_client": "live",
    "pyarrow": "studies",
    "scipy": "studies",
    "starlette": "console",
    "textual": "top",
    "uvicorn": "console",
    "weasyprint": "pdf",
    "xarray": "studies",
}
"""Module → extra. `daqloom[all]` has them all."""


class MissingExtraError(ModuleNotFoundError):
    """A module of an extra is not installed: one sentence with the command that installs it."""

    def __init__(self, module: str) -> None:
        super().__init__(
            f"the Python package {module} is not installed; "
            f"run: pip install 'daqloom[{EXTRAS[module]}]'",
            name=module,
        )


def error_for(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error to raise for a missing module: the one with its extra, if it has one."""
    module = (error.name or "").partition(".")[0]
    return MissingExtraError(module) if module in EXTRAS else error


def names() -> list[str]:
    """Return the names of all extras for users."""
    return sorted(set(EXTRAS.values()))


def is_installed(extra: str) -> bool:
    """Return whether all modules of an extra are installed."""
    return not _missing(extra)


def require(extra: str) -> None:
    """Raise MissingExtraError unless an extra is installed, before work that it would lose."""
    for module in _missing(extra):
        raise MissingExtraError(module)


def _missing(extra: str) -> list[str]:
    return [module for module, its in EXTRAS.items() if its == extra and find_spec(module) is None]
