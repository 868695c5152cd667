"""Keys that scenarios once had, and where they are now.

A key that is not listed has its old name in the first new table of its old one that has such a key.
"""

from collections.abc import Callable

from daqloom.words import listed

TABLES = {
    "fragments": ("event",),
    "nodes": ("building", "readout", "builders", "hosts", "transport"),
    "nodes.card": ("readout.card",),
    "shift": ("building",),
    "daqpipe": ("building",),
    "fabric": ("network", "transport"),
    "fabric.lanes": ("network.lanes",),
    "sources": ("readout",),
    "links": ("network.links",),
    "switch": ("network.switch",),
    "links.source": ("network.links.source",),
    "links.uplink": ("network.links.uplink",),
    "links.access": ("network.links.access",),
    "switch.core": ("network.switch.core",),
    "switch.tor": ("network.switch.tor",),
}

KEYS = {
    "network.links.access.rate_limit": "network.switch.tor.pace of a software switch",
    "links.access.rate_limit": "network.switch.tor.pace of a software switch",
    "sources.count": "readout.units",
    "sources.response": "readout.response.kind",
    "sources.response_mean": "readout.response.mean",
    "sources.response_spread": "readout.response.spread",
    "sources.cost_per_message": "readout.message_cost",
    "builders.count": "builders.units",
    "builders.assignment": "building.assignment",
    "builders.concurrent_events": "building.concurrent_events",
    "builders.outstanding_fragments": "building.outstanding_fragments",
    "builders.request_size": "building.request_size",
    "builders.cost_per_message": "builders.message_cost",
    "fragments.size": "event.fragment_size",
    "fragments.sizes": "event.fragment_sizes",
    "nodes.count": "readout.units, or hosts.count without building",
    "nodes.message_cost": "hosts.message_cost",
    "nodes.latency": "hosts.latency.kind",
    "nodes.latency_file": "hosts.latency.file",
    "nodes.latency_less": "hosts.latency.less",
    "nodes.latency_mean": "hosts.latency.mean",
    "nodes.latency_spread": "hosts.latency.spread",
    "nodes.source_buffer": "readout.buffer",
    "nodes.output_buffer": "builders.buffer",
    "nodes.processing_mean": "builders.processing",
    "nodes.card.kind": "readout.card.acknowledge.kind",
    "nodes.card.mean": "readout.card.acknowledge.mean",
    "nodes.card.spread": "readout.card.acknowledge.spread",
    "nodes.card.spike_kind": "readout.card.spike.kind",
    "nodes.card.spike_mean": "readout.card.spike.mean",
    "nodes.card.spike_spread": "readout.card.spike.spread",
    "shift.jitter": "building.jitter.kind",
    "shift.jitter_mean": "building.jitter.mean",
    "shift.jitter_spread": "building.jitter.spread",
    "fabric.links": "network.spine_links",
    "fabric.switch": "network.switch.model",
    "fabric.radix": "network.switch.radix",
    "fabric.rate": "network.links.rate",
    "fabric.delay": "network.links.delay",
    "fabric.switch_latency": "network.switch.latency",
    "fabric.mtu": "transport.mtu",
    "fabric.buffer": "network.switch.buffer",
    "fabric.input_queue": "network.switch.input_queue",
    "fabric.crossbar_speedup": "network.switch.crossbar_speedup",
    "fabric.credit_release": "network.switch.credit_release",
    "fabric.credit_update_interval": "network.switch.credit_update_interval",
    "fabric.credit_update_size": "network.switch.credit_update_size",
    "fabric.head_of_queue_lifetime": "network.switch.head_of_queue_lifetime",
}


def moved(path: str, knows: Callable[[str], bool]) -> str:
    """Return where a key, or a table, is now; of an unknown key of such a table the place where a
    key of that name would be; empty if there has never been such a table."""
    if path in KEYS:
        return KEYS[path]
    if path in TABLES:
        return listed(TABLES[path])
    table, _, key = path.rpartition(".")
    places = [f"{now}.{key}" for now in TABLES.get(table, ())]
    return next(filter(knows, places), (*places, "")[0])
