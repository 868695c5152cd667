"""What the closed forms of a fabric ask of a scenario; where it fails, they are bounds."""

from __future__ import annotations

from daqloom.analyse.condition import Condition
from daqloom.analyse.fabric_daqpipe import Pipe
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule


def of_phases(push: Push, plan: Schedule) -> list[Condition]:
    """Of phases that change by count."""
    shift, fabric = push.scenario.shift, push.scenario.fabric
    told = push.barrier not in ("none", "ideal")
    phases = shift.phases_per_barrier
    return [
        Condition(
            "a barrier after each phase",
            push.in_step,
            (
                "without a barrier"
                if push.barrier == "none"
                else f"with a barrier once in {phases} phases"
            )
            + " nodes fall out of step and meet on links, by how much no closed form says: these "
            "are bounds that a simulation stays below",
        ),
        *of_schedule(plan),
        Condition(
            "messages pass streams",
            not told or (fabric.crossbar_speedup > 1 and fabric.input_queue == "virtual-output"),
            f"a barrier's message can wait at a switch for the end of a stream (fabric."
            f"crossbar_speedup = {fabric.crossbar_speedup}, input_queue = {fabric.input_queue}), "
            "the more so the more nodes are released one after the other: phases last at least so "
            "long",
        ),
        Condition(
            "room for what is built",
            push.scenario.nodes.output_buffer >= 2 * push.meps * int(push.mfps.sum()),
            f"nodes.output_buffer holds less than the {2 * push.meps} multi-event packets that a "
            "builder unit has places for: it discards, and phases are shorter where nothing is "
            "sent",
        ),
        Condition(
            "credits for the line rate",
            bool((push.credits_s <= push.wire_s).all()),
            "fabric.buffer holds too few packets for the line rate; and a credit update can wait "
            "for a packet that goes its way, so that credits allow less than the formula says",
        ),
    ]


def of_schedule(plan: Schedule) -> list[Condition]:
    """Of any phases."""
    return [
        Condition(
            "no conflicts",
            not plan.conflicting,
            f"in {plan.conflicting} of {len(plan.flows)} phases flows share a link, up to "
            f"{int(plan.flows.max(initial=0))} of them: such a phase lasts at least as long as its "
            "fullest link (`daqloom topology check` suggests other orders)",
        )
    ]


def of_daqpipe(pipe: Pipe) -> list[Condition]:
    """Of DAQPIPE."""
    daqpipe = pipe.scenario.daqpipe
    return [
        Condition(
            "one builder unit, one at a time",
            len(pipe.builders) == daqpipe.credits == daqpipe.parallel_sends == 1,
            "builder units meet at readout units, and events at builder units, by how much no "
            "closed form says: these are bounds (that of fabric_link if all build as many events)",
        )
    ]
