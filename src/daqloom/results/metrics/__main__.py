"""Print `docs/reference/metrics.md`."""

from daqloom.results.metrics.reference import reference

print(reference(), end="")
