"""The conditions of a fabric's closed forms; where one fails, they are bounds."""

from daqloom.analyse.condition import Condition
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule


def of_phases(push: Push, plan: Schedule) -> list[Condition]:
    """Return the conditions of phases that change by count."""
    building, switch = push.scenario.building, push.scenario.network.switch
    told = push.barrier not in ("none", "ideal")
    phases = building.phases_per_barrier
    return [
        Condition(
            "a barrier after each phase",
            push.in_step,
            (
                "without a barrier"
                if push.barrier == "none"
                else f"with a barrier once in {phases} phases"
            )
            + " nodes fall out of step and contend for links, for which there is no closed form: "
            "these are upper bounds of the simulated rate",
        ),
        *of_schedule(plan),
        Condition(
            "messages pass streams",
            not told or (switch.crossbar_speedup > 1 and switch.input_queue == "virtual-output"),
            f"a barrier message can wait at a switch for the end of a data stream (network.switch."
            f"crossbar_speedup = {switch.crossbar_speedup}, input_queue = {switch.input_queue}), "
            "the more so the more nodes are released one after the other: the length of a phase is "
            "a lower bound",
        ),
        Condition(
            "room for what is built",
            push.scenario.builders.buffer >= 2 * push.meps * int(push.mfps.sum()),
            f"builders.buffer is smaller than the {2 * push.meps} multi-event packets that a "
            "builder unit grants: it discards events, and phases in which nothing is sent are "
            "shorter",
        ),
        Condition(
            "credits for the line rate",
            bool((push.credits_s <= push.wire_s).all()),
            "network.switch.buffer holds too few packets for the line rate; a credit update can "
            "also wait for a packet in its direction, so that credits allow less than the formula "
            "says",
        ),
    ]


def of_schedule(plan: Schedule) -> list[Condition]:
    """Return the conditions of phases of any kind."""
    return [
        Condition(
            "no conflicts",
            not plan.conflicting,
            f"in {plan.conflicting} of {len(plan.flows)} phases transfers share a link, up to "
            f"{int(plan.flows.max(initial=0))} of them: such a phase lasts at least as long as its "
            "most loaded link (`daqloom topology check` suggests other node orders)",
        )
    ]
