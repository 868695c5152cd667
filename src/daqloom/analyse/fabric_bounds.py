"""Bounds of linear shifting for any barrier and schedule: how long each part is busy."""

from __future__ import annotations

from daqloom.analyse.fabric_barrier import Barrier
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule


def busy_s(push: Push, gate: Barrier, plan: Schedule) -> dict[str, float]:
    """Return the busy time of each part in a round; the longest bounds the rate.

    A round brings each of N nodes to each other: so a node's link, its PCIe, its memory and the
    credits of its link have N − 1 flows of it. Of all cables the fullest one counts, whatever the
    order of flows. A processor has the messages of its node, those of the barriers included; the
    master of a centralised one has most. The output buffer holds so many multi-event packets, each
    for as long as its processing takes at least (Little), and nothing that is larger than itself.
    """
    scenario, others = push.scenario, push.nodes - 1
    told_s = push.barriers * int(gate.messages.max()) * scenario.hosts.message_cost
    busy = {
        "host_link": others * float(push.wire_s.max()),
        "fabric_link": plan.busiest_s,
        "link_credits": others * float(push.credits_s.max()),
        "pcie": others * float(push.pcie_s.max()),
        "memory": others * float(push.memory_s.max()),
        "local_copy": float(push.copy_s.max()),
        "processor": push.processor_s + told_s,
    }
    if scenario.event.rate:
        busy["source"] = push.events / scenario.event.rate
    room = scenario.builders.buffer // int(push.mfps.sum())
    each_s = scenario.builders.processing_mean
    if each_s or not room:
        processing_s = push.meps * each_s
        busy["output_buffer"] = processing_s / room if room else float("inf")
    return busy
