"""A new setup for the processes of a run: the scenario with other values, as far as these need no
new processes."""

from daqloom.control.plan import Plan
from daqloom.deployment.scenarios import override, settle
from daqloom.measure.check import check_measurable
from daqloom.measure.plan import plan_of
from daqloom.scenario.document import keys, look
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

FIXED = (
    "faults.",
    "flows.",
    "hosts.",
    "measure.bind",
    "measure.bucket_frames",
    "measure.certificates",
    "measure.cores",
    "measure.device",
    "measure.hosts",
    "measure.influxdb",
    "measure.lab",
    "measure.launch",
    "measure.namespaces",
    "measure.port",
    "measure.prometheus_run_port",
    "storage.",
)
"""Keys, and beginnings of keys, that take effect when processes start."""


def new_setup(plan: Plan, settings: tuple[str, ...]) -> Plan:
    """Return the plan of the same run with some keys changed, `("event.rate=20 kHz",)`. Raises
    ScenarioError for values that are not possible, or that need new processes."""
    before = settle(Scenario.model_validate(plan.scenario))
    after = check_measurable(override(before, settings))
    check_changeable(before, after)
    outlives = plan.rules.control_grace_s > 0
    found = plan_of(
        after,
        launches=plan.rules.launches,
        outlives=outlives,
        counters=plan.counters,
        trace_stages=plan.trace_stages,
        trace_arrivals=plan.trace_arrivals,
    )
    units, now = plan.rules.units, found.rules.units
    if now != units:
        raise ScenarioError(
            f"the new setup has {now} units, and the run has processes for {units}; exclude units, "
            "or start a new run"
        )
    return found.model_copy(update={"run": plan.run})


def check_changeable(before: Scenario, after: Scenario) -> None:
    """Raise ScenarioError for a changed key that needs new processes."""
    old, new = (scenario.model_dump(mode="json") for scenario in (before, after))
    changed = [key for key in {*keys(old), *keys(new)} if look(old, key) != look(new, key)]
    if fixed := [key for key in changed if key.startswith(FIXED)]:
        raise ScenarioError(
            f"{min(fixed)} cannot change while the processes of the run exist; end the run, and "
            "start a new one with this value"
        )
