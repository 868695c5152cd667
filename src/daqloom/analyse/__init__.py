"""Closed-form analysis of a scenario, one formula per file."""

from daqloom.analyse.analyse import analyse

__all__ = ["analyse"]
