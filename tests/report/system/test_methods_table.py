"""Rows of the table that lays methods side by side."""

from daqloom.deployment.scenarios import load
from daqloom.report.system.methods_table import rows
from daqloom.results.result import Result
from daqloom.study.methods.all_methods import MethodResults


def test_each_flow_has_its_rows() -> None:
    scenario = load("lab-pair", ["flows.copy.source=0", "flows.copy.destination=1"])
    flows = {"flow_throughput_bps": {"copy": 8e6}, "flow_messages": {"copy": 5}}
    results = tuple(
        Result(
            scenario=scenario.name,
            scenario_hash=scenario.hash(),
            method=method,
            metrics=flows,
            engine={"simulated_s": 1.0, "measured_s": 1.0},
        )
        for method in ("simulate", "measure")
    )
    shown = {name: cells for name, *cells in rows(MethodResults(scenario, results))}
    assert shown["throughput of the flow, copy"] == ["8 Mb/s", "8 Mb/s"]
    assert shown["messages of the flow, copy"] == ["5", "5"]
