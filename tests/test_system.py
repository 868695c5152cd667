"""A system from Python: what it shows, and how its methods are compared."""

import daqloom
from daqloom.system import System
from support.command import invoke
from support.small_fabrics import small as small_fabric


def test_a_system_shows_the_text_of_the_command_line() -> None:
    shown = invoke("show", "atlas-lab", "--set", "event.size=2 MB")
    assert daqloom.load("atlas-lab", ["event.size=2 MB"]).show() == shown.stdout


def test_a_rack_is_compared_on_the_same_events_and_a_fabric_by_its_methods() -> None:
    rack = daqloom.load("small-rack").on_same_events(0.05, seed=1)
    assert rack.formula_peak > rack.regular_peak > 0
    assert rack.simulated.seed == 1
    found = System(small_fabric()).run_methods(["analyse", "simulate"])
    assert [result.method for result in found.results] == ["analyse", "simulate"]
    assert found.results[1].metrics == System(small_fabric()).simulate().metrics
