"""Print `docs/reference/metrics.md`."""

from daqloom.metrics.reference import reference

print(reference(), end="")
