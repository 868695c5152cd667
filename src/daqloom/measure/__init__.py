"""Real event building: a run control, and units that are processes."""


class MeasureError(RuntimeError):
    """A run could not be started, or failed. The message is one sentence."""
