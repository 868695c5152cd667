"""Instructions of a flow entry: an output port, a queue of this port, a meter."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daqloom._switch import Action
from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Layout, Record
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.messages import PortNo


@dataclass(frozen=True)
class Treatment:
    """Treatment of frames that match a flow entry."""

    output: int | None
    """Number of a port, or PortNo.NORMAL, FLOOD or ALL; None: drop the frames."""
    queue: int = 0
    """Queue number at that port; 0: the port's ring for frames without a separate ring."""
    meter: int | None = None
    """Number of the meter that frames pass before the output."""


def treatment_of(instructions: Iterable[Record]) -> Treatment:
    """Return how a frame is treated by the given instructions. Raises RefusedError."""
    by_layout: dict[Layout, Record] = {}
    for instruction in instructions:
        if instruction.layout in by_layout:
            raise RefusedError(Error.OFPBIC_UNSUP_INST)
        by_layout[instruction.layout] = instruction
    outputs = [  # CLEAR_ACTIONS does nothing: before the only table no action has been written
        output
        for layout in (messages.APPLY_ACTIONS, messages.WRITE_ACTIONS)
        if layout in by_layout
        for output in _outputs(by_layout[layout].actions)
    ]
    if len(outputs) > 1:
        raise RefusedError(Error.OFPBAC_TOO_MANY)
    output, queue = outputs[0] if outputs else (None, 0)
    meter = by_layout.get(messages.METER)
    return Treatment(output, queue, None if meter is None else meter.meter_id)


def _outputs(actions: Iterable[Record]) -> list[tuple[int, int]]:
    """Return the outputs in a list of actions, each with the queue that precedes it."""
    found, queue = [], 0
    for action in actions:
        if action.layout is messages.SET_QUEUE:
            queue = action.queue_id
        else:
            found.append((action.port, queue))
    return found


def engine_action(
    treatment: Treatment, ports: int, ring_of: Callable[[int, int], int | None]
) -> Action:
    """Return the engine's action for a switch with `ports` ports. `ring_of`: function from port and
    queue to the number of a ring. Raises RefusedError."""
    match treatment.output:
        case None:
            return Action.drop()
        case PortNo.NORMAL:
            return Action.forward()
        case PortNo.FLOOD | PortNo.ALL:
            return Action.flood()
        case output if not 1 <= output <= ports:
            raise RefusedError(Error.OFPBAC_BAD_OUT_PORT)
        case output if treatment.queue == 0:
            return Action.port(output - 1)
        case output if (ring := ring_of(output - 1, treatment.queue)) is not None:
            return Action.queue(ring)
    raise RefusedError(Error.OFPBAC_BAD_QUEUE)
