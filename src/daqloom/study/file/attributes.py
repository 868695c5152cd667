"""Attributes of a dataset that hold several values: JSON texts, since NetCDF has no tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xarray import Dataset


def as_text(value: Any) -> str:
    """Return the text of a list or a table."""
    return json.dumps(value)


def attribute(dataset: Dataset, name: str, default: Any) -> Any:
    """Return the list or table of an attribute, `default` without it. An attribute that a user set
    to a list or a table, not a text, is returned as it is."""
    value = dataset.attrs.get(name, default)
    return json.loads(value) if isinstance(value, str) else value
