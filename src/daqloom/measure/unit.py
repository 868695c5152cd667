"""A unit: the process that holds a node, obeys the run control and tells it how the node is."""

from __future__ import annotations

import os
import queue
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from daqloom.measure.connection import JOIN, TOKEN_KEY, Certificates, channel, refusals
from daqloom.measure.errors import MeasureError
from daqloom.measure.exporter import Exporter, exporter
from daqloom.measure.messages import (
    ROWS_AT_ONCE,
    Answer,
    AnyOrder,
    Configure,
    Connect,
    Exit,
    Halt,
    Heartbeat,
    Hello,
    Prepare,
    Pulse,
    Reset,
    Start,
    Trace,
    read_order,
)
from daqloom.measure.node import (
    BEATS,
    BROKEN,
    CPU,
    ELAPSED,
    NEXT_MEP,
    STEPS,
    WAITS,
    MakeNode,
    Node,
    RunInfo,
)
from daqloom.measure.states import State, Step, after

OCCUPIED = "it has a process already"
RETRY_S = 0.2
"""Until it tries to reach the run control again."""


class Unit:
    """Obeys orders one after the other; another thread may ask for heartbeats meanwhile."""

    def __init__(self, token: bytes, make_node: MakeNode, control: str = "127.0.0.1:0") -> None:
        self.state = State.NOT_READY
        self.epoch = 0
        self.heartbeat_s = 0.2
        self.token = token
        self._make_node = make_node
        self._control = control
        self._node: Node | None = None
        self._configuration: Configure | None = None
        self._exporter: Exporter | None = None
        self._next_mep = 0
        self._made_s = 0.0

    def obey(self, order: AnyOrder) -> Answer:
        """Does what the order says; a failure is an answer too, and the unit is in error."""
        told: dict[str, Any] = {}
        try:
            told = self._do(order)
        except Exception as error:  # whatever a node raises is the run control's to know
            self.state = after(self.state, Step.FAILED)
            told = {"failure": (str(error) or type(error).__name__)[:1000]}
        return Answer(order=order.order, state=self.state, **told)

    def with_counters(self, answer: Answer) -> Answer:
        """As it is sent: reports are read by one thread, so that no counter seems to go back."""
        return answer.model_copy(update={"counters": self._counters()})

    def traces(self) -> Iterator[Trace]:
        """What it did when, as far as that is kept; each stage once."""
        if self._node is None or not (self._configuration and self._configuration.trace_stages):
            return
        stages = self._node.take_stages()
        for first in range(0, len(stages), ROWS_AT_ONCE):
            yield Trace(stages=tuple(stages[first : first + ROWS_AT_ONCE]))

    def heartbeat(self) -> Heartbeat:
        """How the node is."""
        counters, node = self._counters(), self._node
        suspects = tuple(sorted(node.suspects())) if node and self.state is State.RUNNING else ()
        broken = _whole(counters.get(BROKEN)) if self.state is State.RUNNING else None
        pulse = Pulse(
            epoch=self.epoch,
            state=State.ERROR if broken else self.state,
            beats=_whole(counters.get(BEATS)) if self.state is State.RUNNING else None,
            steps=_whole(counters.get(STEPS)) if self.state is State.RUNNING else None,
            waits=bool(counters.get(WAITS)),
            next_mep=_whole(counters.get(NEXT_MEP)) or 0,
            suspects=suspects,
            failure=_of_streams(broken) if broken else "",
        )
        return Heartbeat(pulse=pulse, counters=counters)

    def shut(self) -> None:
        """Frees the node."""
        node, self._node = self._node, None
        if node is not None:
            node.shut()
        self.state, self.epoch = State.NOT_READY, 0

    def close(self) -> None:
        """For good."""
        self.shut()
        if self._exporter:
            self._exporter.close()
            self._exporter = None

    def _do(self, order: AnyOrder) -> dict[str, Any]:
        match order:
            case Configure():
                self.shut()
                self._configuration, self.heartbeat_s = order, order.heartbeat_s
                self._make()
                self._export(order)
            case Reset():
                self.shut()
                self._make()
                self.state = after(self.state, Step.RESET)
            case Prepare(epoch=epoch, members=members):
                if self.state is State.READY:  # regrouped before it was started
                    self.state = after(self.state, Step.HALTED)
                address = self._made().prepare(epoch, list(members))
                self.epoch = epoch
                return {"address": address}
            case Connect(addresses=addresses, timeout_s=timeout_s):
                unanswered = self._made().connect(list(addresses), timeout_s)
                self.state = after(self.state, Step.CONNECTED)
                return {"missing": tuple(unanswered)}
            case Start(first_mep=first_mep):
                state = after(self.state, Step.STARTED)
                self._made().start(first_mep)
                self.state, self._next_mep = state, first_mep
            case Halt(lost=lost, timeout_s=timeout_s):
                missing = self._halt(list(lost), timeout_s)
                self.state = after(self.state, Step.HALTED)
                return {"missing": missing, "next_mep": self._next_mep}
            case Exit():
                self.shut()
        return {}

    def _halt(self, lost: list[int], timeout_s: float) -> tuple[int, ...]:
        if self.state is not State.RUNNING:
            return ()
        halted = self._made().halt(lost, timeout_s)
        self._next_mep = max(self._next_mep, int(halted["next_mep"]))
        return tuple(halted.get("missing", ()))

    def _make(self) -> None:
        given = self._configuration
        if given is None:
            raise ValueError("it has not been configured")
        run = RunInfo(
            name=given.run,
            token=self.token,
            units=given.units,
            control=self._control,
            trace_stages=given.trace_stages,
        )
        self._made_s = time.monotonic()
        self._node = self._make_node(given.scenario, given.unit, run)

    def _export(self, order: Configure) -> None:
        if self._exporter:
            self._exporter.close()
        self._exporter = exporter(
            order.scenario, order.unit, order.run, self._control, self._counters
        )

    def _made(self) -> Node:
        if self._node is None:
            raise ValueError("it has not been configured")
        return self._node

    def _counters(self) -> dict[str, int | float]:
        node = self._node
        if node is None:
            return {}
        elapsed_s = time.monotonic() - self._made_s
        return {**node.counters(), ELAPSED: elapsed_s, CPU: time.process_time()}


def _of_streams(broken: int) -> str:
    streams = "1 stream has" if broken == 1 else f"{broken} streams have"
    return f"{streams} descriptors that make no sense; mend what writes to the buffer"


def _whole(value: int | float | None) -> int | None:
    return None if value is None else int(value)


# ---- the process ------------------------------------------------------------------------------


def serve(
    control: str,
    *,
    token: bytes,
    make_node: MakeNode,
    number: int | None = None,
    certificates: Certificates | None = None,
    patience_s: float = 10.0,
) -> None:
    """Serves the run control at `control` (host:port) until that says exit.

    Ends by itself when the run control cannot be reached for `patience_s`. Raises MeasureError
    where the run control refuses this unit or is gone.
    """
    unit = Unit(token, make_node, control)
    heard_s, joined = time.monotonic(), False
    with closing(unit):
        while True:
            try:
                with channel(control, certificates, patience_s) as connection:
                    end = _session(connection, unit, number)
            finally:
                unit.shut()
            if end.over:
                return
            if end.refusal and not (joined and end.refusal == OCCUPIED):
                raise MeasureError(f"the run control at {control} refuses this unit: {end.refusal}")
            if end.joined:
                heard_s, joined = time.monotonic(), True
            if time.monotonic() - heard_s > patience_s:
                raise MeasureError(
                    f"the run control at {control} has not answered for {patience_s:g} s; the "
                    "unit ends"
                )
            time.sleep(RETRY_S)


@dataclass
class _End:
    """How a connection to the run control ended."""

    over: bool = False
    joined: bool = False
    refusal: str = ""


def _session(connection: Any, unit: Unit, number: int | None) -> _End:
    """One connection: a thread of gRPC asks for reports, this one obeys."""
    import grpc

    answers: queue.SimpleQueue[Answer | Trace | None] = queue.SimpleQueue()
    call = connection.stream_stream(JOIN)(
        _reports(unit, number, answers), metadata=((TOKEN_KEY, unit.token.hex()),)
    )
    end = _End()
    try:
        for body in call:
            end.joined = True
            order = read_order(body)
            answer = unit.obey(order)
            if isinstance(order, Halt):
                for trace in unit.traces():
                    answers.put(trace)
            answers.put(answer)
            if isinstance(order, Exit):
                end.over = True
                answers.put(None)
    except grpc.RpcError as error:
        if error.code() in refusals():
            end.refusal = (
                OCCUPIED
                if error.code() is grpc.StatusCode.ALREADY_EXISTS
                else (error.details() or "no reason given")
            )
    finally:
        answers.put(None)
        call.cancel()
    return end


def _reports(
    unit: Unit, number: int | None, answers: queue.SimpleQueue[Answer | Trace | None]
) -> Iterator[bytes]:
    """Hello, answers as they come, and a heartbeat whenever none came for that long."""
    import daqloom

    yield Hello(
        unit=number, host=socket.gethostname()[:200], pid=os.getpid(), version=daqloom.__version__
    ).encode()
    while True:
        try:
            answer = answers.get(timeout=unit.heartbeat_s)
        except queue.Empty:
            yield unit.heartbeat().encode()
            continue
        if answer is None:
            return
        yield (unit.with_counters(answer) if isinstance(answer, Answer) else answer).encode()
