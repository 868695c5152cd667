"""Closed forms: what can be said of a scenario without running it, one formula a file."""

from daqloom.analyse.analyse import analyse

__all__ = ["analyse"]
