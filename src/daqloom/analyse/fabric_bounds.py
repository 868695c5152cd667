"""What no barrier and no schedule can change: how long each part of linear shifting is busy."""

from __future__ import annotations

from daqloom.analyse.fabric_barrier import Barrier
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule


def busy_s(push: Push, gate: Barrier, plan: Schedule) -> dict[str, float]:
    """Time of each part that a round takes; the longest bounds the rate.

    A round brings each of N nodes to each other: so a node's link, its PCIe, its memory and the
    credits of its link have N − 1 flows of it. Of all cables the fullest one counts, whatever the
    order of flows. A processor has the messages of its node, those of the barriers included; the
    master of a centralised one has most. The output buffer holds so many multi-event packets, each
    for as long as its processing takes at least (Little), and nothing that is larger than itself.
    """
    scenario, nodes, others = push.scenario, push.scenario.nodes, push.nodes - 1
    told_s = push.barriers * int(gate.messages.max()) * nodes.message_cost
    busy = {
        "host_link": others * float(push.wire_s.max()),
        "fabric_link": plan.busiest_s,
        "link_credits": others * float(push.credits_s.max()),
        "pcie": others * float(push.pcie_s.max()),
        "memory": others * float(push.memory_s.max()),
        "local_copy": float(push.copy_s.max()),
        "processor": push.processor_s + told_s,
    }
    if scenario.fragments.rate:
        busy["source"] = push.events / scenario.fragments.rate
    room = nodes.output_buffer // int(push.mfps.sum())
    if nodes.processing_mean or not room:
        processing_s = push.meps * nodes.processing_mean
        busy["output_buffer"] = processing_s / room if room else float("inf")
    return busy
