"""Keys of a scenario in words, as axes of figures have them."""

from __future__ import annotations


def key_in_words(key: str) -> str:
    """`event.rate` → "event rate"."""
    return key.replace(".", " ").replace("_", " ")
