"""Libraries that the loader of this machine finds."""

import os
import sys
from pathlib import Path

LIBFABRIC = "libfabric.so.1"
CACHE = Path("/etc/ld.so.cache")
"""Names and paths of installed libraries; see ld.so(8)."""


def is_found(library: str, cache: Path = CACHE) -> bool:
    """Return whether the loader finds a library, without loading it: the constructors of libraries
    for network cards take 0.2 s. `daqloom doctor` loads them."""
    named = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    folders = [Path(sys.base_prefix, "lib"), *(Path(folder) for folder in named if folder)]
    if any((folder / library).exists() for folder in folders):
        return True
    try:
        return library.encode() + b"\0" in cache.read_bytes()
    except OSError:
        return False
