"""A unit: the process that runs a node, obeys the run control and reports to it."""

import os
import queue
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar, cast

import grpc

from daqloom._engine import ConnectionCounts, Counters, LiveNode, Moved, UnitLease, next_state
from daqloom.base.version import installed
from daqloom.control.admission import greeted
from daqloom.control.connection import JOIN, Certificates, channel, refusals
from daqloom.control.exporter import Exporter, exporter
from daqloom.control.messages import (
    ROWS_AT_ONCE,
    Answer,
    AnyOrder,
    ArrivalRows,
    Configure,
    Connect,
    ConnectionRow,
    Exit,
    Halt,
    Heartbeat,
    Hello,
    MalformedError,
    Message,
    Prepare,
    Pulse,
    Renew,
    Reset,
    StageName,
    StageRow,
    Start,
    Trace,
    read_order,
)
from daqloom.control.states import State, Step
from daqloom.results.errors import MeasureError

OCCUPIED = "it has a process already"
RETRY_S = 0.2
"""Pause between attempts to reach the run control (s)."""


@dataclass(frozen=True)
class RunInfo:
    """The run of a unit: what it knows besides the scenario."""

    name: str
    """Name of the run, part of the names of its files and shared memory."""
    token: bytes
    """Secret of the run (16 bytes), without which a connection is refused."""
    units: int
    control: str = "127.0.0.1:0"
    """Address of the run control, host:port."""
    trace_stages: int = 0
    """How many of its last stages the unit keeps for a timeline."""
    trace_arrivals: int = 0
    """How many arrivals of events its event manager keeps, if it has one."""


MakeNode = Callable[[Mapping[str, Any], int, RunInfo], LiveNode]
"""Makes a node from a scenario's document, the unit's number and the run. Raises ValueError,
MeasureError. One thread calls the node, except `lease`, `counters` and `suspects`, which another
may call at any time, during a call and after `shut`. `prepare` may follow `prepare` or `connect`,
when the members have changed before a start."""
R = TypeVar("R", bound=Message)


class Unit:
    """Carries out orders one after the other; another thread may ask for heartbeats meanwhile, and
    a third renew the lease. `clock`: seconds of CLOCK_MONOTONIC."""

    def __init__(
        self,
        token: bytes,
        make_node: MakeNode,
        control: str = "127.0.0.1:0",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = State.NOT_READY
        self.epoch = 0
        self.heartbeat_s = 0.2
        self.token = token
        self._make_node = make_node
        self.control = control
        self._node: LiveNode | None = None
        self._configuration: Configure | None = None
        self._exporter: Exporter | None = None
        self._shut_nodes: list[LiveNode] = []
        self._next_mep = 0
        self._started = 0
        self._clock = clock
        self._lease = UnitLease()

    def obey(self, order: AnyOrder) -> Answer:
        """Carry out an order; a failure is answered too, and leaves the unit in error."""
        result: dict[str, Any] = {}
        try:
            result = self._do(order)
        except Exception as error:  # whatever a node raises is the run control's to know
            self.state = next_state(self.state, Step.FAILED)
            result = {"failure": (str(error) or type(error).__name__)[:1000]}
        return Answer(order=order.order, state=self.state, **result)

    def with_counters(self, answer: Answer) -> Answer:
        """Add the counters to a report as it is sent; one thread does, so that no counter falls."""
        return answer.model_copy(update={"counters": self._counters().by_name})

    def sending(self, report: R) -> R:
        """Number a report, from whose sending the lease that it brings counts."""
        return report.model_copy(update={"number": self._lease.sending(self._clock())})

    def renew(self, epoch: int, last_report: int, mep_end: int) -> None:
        """Take in that the run control has received a report: see `Renew`."""
        leased = self._lease.renew(epoch, last_report, mep_end)
        if here := self._node:
            here.lease(*leased)

    def last_words(self) -> Iterator[Heartbeat]:
        """Return the final counters of each node that has been shut, once."""
        while self._shut_nodes:
            counters = self._shut_nodes.pop(0).counters().by_name
            pulse = Pulse(epoch=0, state=State.NOT_READY)
            yield Heartbeat(pulse=pulse, counters=counters, ended=self._started)

    def traces(self) -> Iterator[Trace]:
        """Return the stages and arrivals that are kept, each once, and what there is of
        connections."""
        if self._node is None:
            return
        connections = [_connection(each) for each in self._node.connections()]
        for first in range(0, len(connections), ROWS_AT_ONCE):
            yield Trace(connections=tuple(connections[first : first + ROWS_AT_ONCE]))
        given = self._configuration
        if given and given.trace_stages:
            stages: list[StageRow] = [
                (begin_ns, epoch, step, to, cast(StageName, stage.name))
                for begin_ns, epoch, step, to, stage in self._node.take_stages()
            ]
            for first in range(0, len(stages), ROWS_AT_ONCE):
                yield Trace(stages=tuple(stages[first : first + ROWS_AT_ONCE]))
        if given and given.trace_arrivals:
            begin_ns, times_ns, beyond = self._node.take_arrivals()
            for first in range(0, len(times_ns), ROWS_AT_ONCE):
                rows = tuple(times_ns[first : first + ROWS_AT_ONCE])
                yield Trace(arrivals=ArrivalRows(begin_ns=begin_ns, times_ns=rows, beyond=beyond))
                beyond = 0

    def heartbeat(self) -> Heartbeat:
        """Return the node's state as a report."""
        here = self._node
        counted = self._counters()
        running = self.state is State.RUNNING
        broken = counted.streams_broken if running else None
        pulse = Pulse(
            epoch=self.epoch,
            state=State.ERROR if broken else self.state,
            beats=counted.beats if running else None,
            steps=counted.steps if running else None,
            waits=bool(counted.waits),
            next_mep=counted.next_mep or 0,
            suspects=tuple(sorted(here.suspects())) if here and running else (),
            failure=_of_streams(broken) if broken else "",
        )
        return Heartbeat(pulse=pulse, counters=counted.by_name)

    def shut(self) -> None:
        """Free the node."""
        here, self._node = self._node, None
        if here:
            here.shut()
            self._shut_nodes.append(here)
        self.state, self.epoch = State.NOT_READY, 0

    def close(self) -> None:
        """Close the unit for good."""
        self.shut()
        if self._exporter:
            self._exporter.close()
            self._exporter = None

    def _do(self, order: AnyOrder) -> dict[str, Any]:
        match order:
            case Configure():
                self.shut()
                self._configuration, self.heartbeat_s = order, order.heartbeat_s
                self._lease.set_length(order.lease_s)
                self._make()
                self._export(order)
            case Reset():
                self.shut()
                self._make()
                self.state = next_state(self.state, Step.RESET)
            case Prepare(epoch=epoch, members=members, moved=moved):
                if self.state is State.READY:  # regrouped before it was started
                    self.state = next_state(self.state, Step.HALTED)
                address = self._made().prepare(
                    epoch,
                    list(members),
                    [Moved(unit=of, readout=reads, builder=builds) for of, reads, builds in moved],
                )
                self._lease.begin(epoch)
                self.epoch = epoch
                return {"address": address}
            case Connect(addresses=addresses, timeout_s=timeout_s):
                unanswered = self._made().connect(list(addresses), timeout_s)
                self.state = next_state(self.state, Step.CONNECTED)
                return {"missing": tuple(unanswered)}
            case Start(first_mep=first_mep, mep_end=mep_end, last_report=last_report):
                state = next_state(self.state, Step.STARTED)
                self.renew(self.epoch, last_report, mep_end)
                self._made().start(first_mep)
                self.state, self._next_mep, self._started = state, first_mep, self.epoch
            case Halt(lost=lost, timeout_s=timeout_s):
                missing = self._halt(list(lost), timeout_s)
                self.state = next_state(self.state, Step.HALTED)
                return {"missing": missing, "next_mep": self._next_mep}
            case Exit():
                self.shut()
        return {}

    def _halt(self, lost: list[int], timeout_s: float) -> tuple[int, ...]:
        if self.state is not State.RUNNING:
            return ()
        halted = self._made().halt(lost, timeout_s)
        self._next_mep = max(self._next_mep, halted.next_mep)
        return tuple(halted.missing)

    def _make(self) -> None:
        given = self._configuration
        if given is None:
            raise ValueError("it has not been configured")
        run = RunInfo(
            name=given.run,
            token=self.token,
            units=given.units,
            control=self.control,
            trace_stages=given.trace_stages,
            trace_arrivals=given.trace_arrivals,
        )
        self._node = self._make_node(given.scenario, given.unit, run)

    def _export(self, order: Configure) -> None:
        if self._exporter:
            self._exporter.close()
        self._exporter = exporter(
            order.scenario, order.unit, order.run, self.control, self._counters
        )

    def _made(self) -> LiveNode:
        if self._node is None:
            raise ValueError("it has not been configured")
        return self._node

    def _counters(self) -> Counters:
        return here.counters() if (here := self._node) else Counters()


def _of_streams(broken: int) -> str:
    streams = "1 stream has" if broken == 1 else f"{broken} streams have"
    return f"{streams} invalid descriptors; correct the program that writes to the buffer"


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
    """Serve the run control at `control` (host:port) until it orders to exit. Ends by itself when
    the run control cannot be reached for `patience_s`. Raises MeasureError where the run control
    refuses this unit or does not answer."""
    unit = Unit(token, make_node, control)
    answered_s, joined = time.monotonic(), False
    with closing(unit):
        while True:
            try:
                with channel(control, certificates, patience_s) as connection:
                    end = _session(connection, unit, number, patience_s)
            finally:
                unit.shut()
            if end.over:
                return
            if end.refusal and not (joined and end.refusal == OCCUPIED):
                raise MeasureError(f"the run control at {control} refuses this unit: {end.refusal}")
            if end.joined:
                answered_s, joined = time.monotonic(), True
            if time.monotonic() - answered_s > patience_s:
                raise MeasureError(
                    f"the run control at {control} has not answered for {patience_s:g} s; the "
                    "unit ends"
                )
            time.sleep(RETRY_S)


@dataclass
class _End:
    """How a connection to the run control has ended."""

    over: bool = False
    joined: bool = False
    refusal: str = ""


def _connection(counted: ConnectionCounts) -> ConnectionRow:
    fields = [name for name in ConnectionRow.model_fields if name != "to"]
    return ConnectionRow(to=counted.unit, **{name: getattr(counted, name) for name in fields})


def _session(connection: Any, unit: Unit, number: int | None, patience_s: float) -> _End:
    """Serve one connection: a gRPC thread takes reports, a second thread receives orders, and this
    one carries them out."""
    answers: queue.SimpleQueue[Answer | Trace | None] = queue.SimpleQueue()
    try:
        admission = greeted(connection, unit.control, JOIN, unit.token, patience_s)
    except grpc.RpcError as error:
        return _End(refusal=_refusal(error))
    call = connection.stream_stream(JOIN)(_reports(unit, number, answers), metadata=admission)
    end = _End()
    orders: queue.SimpleQueue[AnyOrder | None] = queue.SimpleQueue()
    listener = Thread(target=_listen, args=(call, unit, orders, end), daemon=True)
    listener.start()
    try:
        while (order := orders.get()) is not None:
            answer = unit.obey(order)
            if isinstance(order, Halt):
                for trace in unit.traces():
                    answers.put(trace)
            answers.put(answer)
            if isinstance(order, Exit):
                end.over = True
                answers.put(None)
    finally:
        answers.put(None)
        call.cancel()
        listener.join()
    return end


def _listen(call: Any, unit: Unit, orders: queue.SimpleQueue[AnyOrder | None], end: _End) -> None:
    """Receive orders: renew the lease at once, whatever the unit is doing; queue all others."""
    try:
        for body in call:
            end.joined = True
            order = read_order(body)
            if isinstance(order, Renew):
                unit.renew(order.epoch, order.last_report, order.mep_end)
            else:
                orders.put(order)
    except MalformedError as error:
        end.refusal = f"its order is not a message that a unit knows ({error})"
    except grpc.RpcError as error:
        end.refusal = _refusal(error)
    finally:
        orders.put(None)


def _refusal(error: Any) -> str:
    """Return why the run control refuses for good; empty: another attempt may succeed."""
    if error.code() not in refusals():
        return ""
    if error.code() is grpc.StatusCode.ALREADY_EXISTS:
        return OCCUPIED
    return str(error.details() or "no reason given")


def _reports(
    unit: Unit, number: int | None, answers: queue.SimpleQueue[Answer | Trace | None]
) -> Iterator[bytes]:
    """Yield a hello, answers as they come, and a heartbeat whenever none came for that long."""
    yield Hello(
        unit=number, host=socket.gethostname()[:200], pid=os.getpid(), version=installed()
    ).encode()
    while True:
        try:
            answer = answers.get(timeout=unit.heartbeat_s)
        except queue.Empty:
            yield from _encoded(unit, unit.heartbeat())
            continue
        if answer is None:
            return
        yield from _encoded(unit, answer)


def _encoded(unit: Unit, report: Heartbeat | Answer | Trace) -> Iterator[bytes]:
    """Yield a report as it is sent, behind the final counters of a node that has been shut."""
    for words in unit.last_words():
        yield unit.sending(words).encode()
    if isinstance(report, Answer):
        report = unit.with_counters(report)
    yield (report if isinstance(report, Trace) else unit.sending(report)).encode()
