"""Metrics of a run of real processes without an engine, as they are published."""

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from daqloom.control import publication as publication_module
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.publication import Publication
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.measure import Measure
from support.measure.controlled_runs import controlled, running
from support.slurm_cluster import free_ports

pytestmark = pytest.mark.process


def page(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as opened:
        families = text_string_to_metric_families(opened.read().decode())
        samples = [sample for family in families for sample in family.samples]
    own = [{*sample.labels} - {"run", "scenario"} for sample in samples]
    return {
        sample.name: sample.value for sample, labels in zip(samples, own, strict=True) if not labels
    }


async def test_the_page_has_the_counters_of_the_status_each_second(tmp_path) -> None:
    (port,) = free_ports(1)
    publication = Publication(Measure(prometheus_run_port=port))
    async with controlled(tmp_path, publication=publication) as control:
        control.want(Goal.RUNNING)
        await running(control, {0, 1, 2})
        tally = control.run.units[1].tally
        await control.until(lambda: (tally.totals.meps_built or 0) > 10)
        control.want(Goal.READY)
        await control.until(lambda: control.run.phase is Phase.READY)
        status = control.status()
        assert status.built_events > 30
        # A node without an engine has 1,000 bytes in an event.
        assert status.built_bytes == 1000 * status.built_events
        await control.until(
            lambda: page(port).get("daqloom_run_events_total") == status.built_events
        )
        found = page(port)
        assert found["daqloom_run_bytes_total"] == status.built_bytes
        assert found["daqloom_run_epoch"] == control.run.epoch
    with socket.socket() as free:  # the port is free again
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))


async def test_a_port_in_use_is_one_sentence(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        publication = Publication(Measure(prometheus_run_port=port))
        with pytest.raises(
            MeasureError, match=rf"{port}; set measure.prometheus_run_port to a free"
        ):
            async with controlled(tmp_path, publication=publication):
                pass


async def test_the_log_has_the_begin_and_the_end_of_a_failure_of_influxdb(
    tmp_path, monkeypatch
) -> None:
    failures = iter(["connection refused", "connection refused", ""])

    class Writer:
        """A server that takes points from the third time on."""

        def __init__(self, url, token) -> None:
            assert (url, token) == ("http://127.0.0.1:8086/write?db=x", "t")
            self.where, self.failure, self.unsent = "http://127.0.0.1:8086/write", "", 3

        def add(self, points) -> None:
            self.failure = next(failures, "")

        def close(self) -> None:
            """Close nothing."""

    monkeypatch.setattr(publication_module, "Writer", Writer)
    monkeypatch.setenv("DAQLOOM_INFLUXDB_TOKEN", "t")
    publication = Publication(Measure(influxdb="http://127.0.0.1:8086/write?db=x"))

    def logged() -> list[str]:
        return [event.text for event in control.events if "accept" in event.text]

    async with controlled(tmp_path, publication=publication) as control:
        await control.until(lambda: len(logged()) == 2)
        assert control.status().counts["unsent_points"] == 3
    assert logged() == [
        "http://127.0.0.1:8086/write does not accept points: connection refused; check "
        "measure.influxdb",
        "http://127.0.0.1:8086/write accepts points again",
    ]
