"""Studies: sweep, search, repeat, store, fit, compare."""

from daqloom.study.errors import StudyError

__all__ = ["StudyError"]
