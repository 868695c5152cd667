"""Counters of a run of daqloom, which a real Prometheus has scraped."""

import asyncio

from daqloom.control.publication import Publication
from daqloom.device.adapter import PortCount
from daqloom.device.document import build
from daqloom.scenario.schema.measure import Measure
from daqloom_adapters.prometheus import Prometheus
from support.measure.controlled_runs import controlled, status_after_events
from support.prometheus_server import NEEDS, prometheus, until, value
from support.slurm_cluster import free_ports

pytestmark = NEEDS

OF_RUNS = {
    "label": "run",
    "sent": "daqloom_run_events_total",
    "sent_bytes": "daqloom_run_bytes_total",
    "dropped": "daqloom_run_lost_events_total",
}


async def test_the_adapter_reads_the_counters_of_a_run_from_prometheus(tmp_path) -> None:
    (port,) = free_ports(1)
    publication = Publication(Measure(prometheus_run_port=port))
    with prometheus(tmp_path, port) as url:
        async with controlled(tmp_path, publication=publication) as control:
            status = await status_after_events(control, {0, 1, 2})
            await until(
                lambda: value(url, "daqloom_run_events_total"),
                lambda events: events == status.built_events,
            )
            address = f'{url}/federate?match[]={{__name__=~"daqloom_run_.*"}}'
            options = build(Prometheus.Options, {"address": address, **OF_RUNS}, "here")
            with Prometheus(options, ["test"]) as adapter:
                found = await asyncio.to_thread(adapter.read)
    lost = sum(status.lost.values())
    assert found == {"test": PortCount(status.built_events, status.built_bytes, lost)}
    assert status.built_events > 10
