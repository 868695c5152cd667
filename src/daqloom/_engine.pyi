# The compiled module of engine/bindings, which check their arguments themselves.
from typing import Any

def __getattr__(name: str) -> Any: ...
