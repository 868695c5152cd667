"""The shipped scenarios and studies give what they gave: see support/snapshot.py."""

import math
from typing import Any

import pytest

from daqloom.scenario.package_files import package_files
from support import snapshot

pytest.importorskip("daqloom._engine")

RECORDED = snapshot.read()

LIBM = 1e-12
"""By how much closed forms may differ between machines, relative."""


def differences(found: dict[str, Any], recorded: dict[str, Any], tolerance: float) -> list[str]:
    return [
        f"{name}: {recorded.get(name, 'absent')} on record, now {found.get(name, 'absent')}"
        for name in sorted({*found, *recorded})
        if not same(found.get(name), recorded.get(name), tolerance)
    ]


def same(found: Any, recorded: Any, tolerance: float) -> bool:
    if isinstance(found, float) and isinstance(recorded, int | float):
        return math.isclose(found, recorded, rel_tol=tolerance)
    return type(found) is type(recorded) and bool(found == recorded)


@pytest.mark.parametrize("name", package_files("scenarios"))
def test_a_scenario_gives_the_metrics_on_record(name: str) -> None:
    found, recorded = snapshot.of_scenario(name), RECORDED["scenarios"][name]
    assert found.keys() == recorded.keys()
    changed = {
        method: differences(found[method], recorded[method], LIBM if method == "analyse" else 0)
        for method in found
    }
    assert not any(changed.values()), changed


@pytest.mark.parametrize("name", package_files("studies"))
def test_a_study_plans_the_points_on_record(name: str) -> None:
    assert snapshot.of_study(name) == RECORDED["studies"][name]


def test_everything_on_record_is_shipped() -> None:
    assert list(RECORDED["scenarios"]) == list(package_files("scenarios"))
    assert list(RECORDED["studies"]) == list(package_files("studies"))


def test_a_change_of_a_metric_is_reported() -> None:
    recorded = {"rate": 1.0, "built": 3, "gone": 1, "valid": True}
    found = {"rate": 1.0 + 1e-15, "built": 4, "new": 0.0, "valid": True}
    assert differences(found, recorded, LIBM) == [
        "built: 3 on record, now 4",
        "gone: 1 on record, now absent",
        "new: absent on record, now 0.0",
    ]
    assert differences({"rate": math.nextafter(1, 2)}, {"rate": 1.0}, 0) != []
