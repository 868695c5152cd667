"""What an entry of the flow table does with frames: an output, a queue of its port, a meter."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyof.v0x04.asynchronous.error_msg import BadActionCode, BadInstructionCode
from pyof.v0x04.common.action import ActionOutput, ActionSetQueue
from pyof.v0x04.common.flow_instructions import (
    InstructionApplyAction,
    InstructionClearAction,
    InstructionGotoTable,
    InstructionMeter,
    InstructionWriteAction,
    InstructionWriteMetadata,
)
from pyof.v0x04.common.port import PortNo

from daqloom._switch import Action
from daqloom.softswitch.openflow.refused import RefusedError

EVERYWHERE = (PortNo.OFPP_FLOOD, PortNo.OFPP_ALL)


@dataclass(frozen=True)
class Done:
    """What is done with frames."""

    output: int | None
    """Number of a port or one that is reserved (OFPP_NORMAL, OFPP_FLOOD, OFPP_ALL); None: they are
    dropped."""
    queue: int = 0
    """Of that port; 0: the one of frames without a ring."""
    meter: int | None = None
    """Number of the meter that they pass before."""


def done_of(instructions: Iterable[Any]) -> Done:
    """Return what instructions do. Raises RefusedError."""
    applied: Iterable[Any] = ()
    written: Iterable[Any] = ()
    meter = None
    seen: set[type] = set()
    for instruction in instructions:
        if type(instruction) in seen:
            raise RefusedError(BadInstructionCode.OFPBIC_UNSUP_INST)
        seen.add(type(instruction))
        match instruction:
            case InstructionApplyAction():
                applied = instruction.actions
            case InstructionWriteAction():
                written = instruction.actions
            case InstructionClearAction():
                pass  # in the only table nothing has been written before
            case InstructionMeter():
                meter = instruction.meter_id.value
            case InstructionGotoTable():
                raise RefusedError(BadInstructionCode.OFPBIC_BAD_TABLE_ID)
            case InstructionWriteMetadata():
                raise RefusedError(BadInstructionCode.OFPBIC_UNSUP_METADATA)
            case _:
                raise RefusedError(BadInstructionCode.OFPBIC_UNKNOWN_INST)
    outputs = [*_outputs(applied), *_outputs(written)]
    if len(outputs) > 1:
        raise RefusedError(BadActionCode.OFPBAC_TOO_MANY)
    output, queue = outputs[0] if outputs else (None, 0)
    return Done(output, queue, meter)


def _outputs(actions: Iterable[Any]) -> list[tuple[int, int]]:
    """Return the outputs of a list of actions, each with the queue that was set before it."""
    found, queue = [], 0
    for action in actions:
        match action:
            case ActionSetQueue():
                queue = action.queue_id.value
            case ActionOutput():
                found.append((action.port.value, queue))
            case _:
                raise RefusedError(BadActionCode.OFPBAC_BAD_TYPE)
    return found


def for_engine(done: Done, ports: int, ring_of: Callable[[int, int], int | None]) -> Action:
    """Return it as the engine takes it, of a switch with so many ports. `ring_of`: number of the
    ring of a port's queue. Raises RefusedError."""
    if done.output is None:
        return Action.drop()
    if done.output == PortNo.OFPP_NORMAL:
        return Action.forward()
    if done.output in EVERYWHERE:
        return Action.flood()
    if not 1 <= done.output <= ports:
        raise RefusedError(BadActionCode.OFPBAC_BAD_OUT_PORT)
    port = done.output - 1
    if done.queue == 0:
        return Action.port(port)
    ring = ring_of(port, done.queue)
    if ring is None:
        raise RefusedError(BadActionCode.OFPBAC_BAD_QUEUE)
    return Action.queue(ring)
