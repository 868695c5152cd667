"""Real event building: a run control, and units that are processes."""

from daqloom.measure.errors import MeasureError

__all__ = ["MeasureError"]
