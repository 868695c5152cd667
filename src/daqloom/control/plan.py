"""Plan of a run, for its run control and its units."""

from daqloom._engine import RunPlan
from daqloom.control.protocol.messages import Setup


class Plan(Setup, arbitrary_types_allowed=True):
    """Setup of the units of a run, and the parameters of its run control."""

    rules: RunPlan
    packing: int = 1
    """Events of a MEP."""
    run_number: int = 0
    """Number of the last run that was started; 0: none."""
