"""Closed-form analysis of a scenario, one file for each quantity."""

from daqloom.analyse.analyse import analyse

__all__ = ["analyse"]
