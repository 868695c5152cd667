"""A unit: the process that runs a node, obeys the run control and reports to it."""

import os
import queue
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from logging import ERROR, INFO
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import grpc

from daqloom._engine import Counters, LiveNode, UnitAnswer, UnitProcess
from daqloom.base.claims import share
from daqloom.base.log import LOG, identify
from daqloom.base.version import installed_version
from daqloom.control.calls.admission import greeting
from daqloom.control.calls.connection import JOIN, REFUSALS, Certificates, channel
from daqloom.control.counters.exporter import Exporter, exporter
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import (
    ROWS_AT_ONCE,
    AnyOrder,
    ArrivalRows,
    Configure,
    ConnectionRow,
    Exit,
    Halt,
    Hello,
    MalformedError,
    Message,
    Rejoin,
    Renew,
    Reset,
    Start,
    Trace,
    read_order,
)
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import read_text

OCCUPIED = "it has a process already"
Row = TypeVar("Row")
CONNECTIONS_S = 1.0
"""Time between two reports of connections (s)."""
MOST_SLOW = 32
"""Connections in such a report, the slowest ones."""
LONGEST_ADDRESS = 300
RETRY_S = 0.2
"""Pause between attempts to reach the run control (s)."""


MakeNode = Callable[[Configure, bytes, str], LiveNode]
"""Makes a node from its configuration, the run's token of 16 bytes and the address of the run
control (host:port). Raises ValueError, MeasureError. One thread calls the node, except `lease`,
`counters` and `suspects`, which another may call at any time, during a call and after `shut`.
`prepare` may follow `prepare` or `connect`, when the members have changed before a start."""


class Unit:
    """The process of a unit, with its node and its exporter. One thread passes the orders, another
    asks for reports meanwhile, and a third renews the lease. `clock`: seconds of
    CLOCK_MONOTONIC."""

    def __init__(
        self,
        token: bytes,
        make_node: MakeNode,
        control: str = "127.0.0.1:0",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.process = UnitProcess()
        self.heartbeat_s = 0.2
        self.grace_s = 0.0
        self.number: int | None = None
        self._claim = -1
        """Descriptor that holds the folder of the run's counters."""
        self.token = token
        self._make_node = make_node
        self.control = control
        self._node: LiveNode | None = None
        self._configuration: Configure | None = None
        self._exporter: Exporter | None = None
        self._run_number = 0
        self._clock = clock

    def obey(self, order: AnyOrder) -> UnitAnswer:
        """Carry out an order; a failure is answered too, and leaves the unit in error."""
        process = self.process
        try:
            if isinstance(order, Configure | Reset | Exit):
                self.shut()
            if isinstance(order, Start):
                self._run_number = order.run_number
            answer = process.on_order(self._clock(), order.order, wire.record(order), self._node)
            while answer is None:
                answer = process.on_drain(self._clock(), self._node)
            if isinstance(order, Configure):
                self._configuration, self.heartbeat_s = order, order.heartbeat_s
                self.grace_s, self.number = order.grace_s, order.unit
                self._hold(order.counters)
                self._make()
                self._export(order)
            elif isinstance(order, Reset):
                self._make()
            return answer
        except Exception as error:  # any error of a node is answered
            return process.on_failure(order.order, (str(error) or type(error).__name__)[:1000])

    def renew(self, order: Renew) -> None:
        """Renew the lease, after a report that the run control has received."""
        self.process.on_order(self._clock(), 0, wire.record(order), self._node)

    @property
    def keeps_node(self) -> bool:
        """Whether the unit goes on without a run control for some time."""
        return self._node is not None and self.grace_s > 0

    def hello(self, number: int | None) -> list[Message]:
        """Return the first reports over a new connection."""
        state = self.process.rejoin()
        rejoin = Rejoin(epoch=state.epoch, started=state.started, state=state.state)
        hello = Hello(
            unit=number,
            host=socket.gethostname()[:200],
            pid=os.getpid(),
            version=installed_version(),
            rejoin=rejoin if self.keeps_node else None,
        )
        return [hello, *(wire.message(record) for record in self.process.unconfirmed())]

    def reports(self, answer: UnitAnswer | None = None) -> list[Message]:
        """Return the reports to send now, from which the leases that they bring count: see
        `UnitProcess`. One thread sends, so that no counter falls."""
        records = self.process.reports(self._clock(), answer, self._node)
        return [wire.message(record) for record in records]

    def connections(self) -> list[ConnectionRow]:
        """Return the counters of the connections to other units, slowest first."""
        node = self._node
        rows = map(ConnectionRow.model_validate, node.connections() if node else ())
        return sorted(rows, key=lambda row: row.round_trip_us, reverse=True)

    def traces(self) -> Iterator[Trace]:
        """Return the recorded stages and arrivals, each once, and the rows of connections."""
        if self._node is None:
            return
        for connections in _batches(self.connections()):
            yield Trace(connections=connections)
        given = self._configuration
        if given and given.trace_stages:
            stages = [(*row, stage.name) for *row, stage in self._node.take_stages()]
            for rows in _batches(stages):
                yield Trace.model_validate({"stages": rows})
        if given and given.trace_arrivals:
            begin_ns, times_ns, beyond = self._node.take_arrivals()
            for times in _batches(times_ns):
                yield Trace(arrivals=ArrivalRows(begin_ns=begin_ns, times_ns=times, beyond=beyond))
                beyond = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the node on its place on the machine; a node need not have any."""
        return tuple(getattr(self._node, "warnings", ()))

    def shut(self) -> None:
        """Free the node."""
        node, self._node = self._node, None
        self.process.shut(node)

    def close(self) -> None:
        """Close the unit for good."""
        self.shut()
        if self._exporter:
            self._exporter.close()
            self._exporter = None

    def _hold(self, folder: str) -> None:
        """Hold the folder of counters, if it is on this machine, until the end of the process."""
        if folder and self._claim < 0:
            with suppress(OSError):
                self._claim = share(Path(folder))

    def _make(self) -> None:
        if self._configuration is None:
            raise ValueError("it has not been configured")
        self._node = self._make_node(self._configuration, self.token, self.control)

    def _export(self, order: Configure) -> None:
        if self._exporter:
            self._exporter.close()
        self._exporter = exporter(
            order.scenario,
            order.unit,
            order.run,
            self.control,
            self._counters,
            lambda: self._run_number,
        )

    def _counters(self) -> Counters:
        return here.counters() if (here := self._node) else Counters()


# ---- the process ------------------------------------------------------------------------------


def serve(
    control: str,
    *,
    token: bytes,
    make_node: MakeNode,
    number: int | None = None,
    certificates: Certificates | None = None,
    patience_s: float = 10.0,
    address_file: Path | None = None,
    stays: bool = False,
) -> None:
    """Serve the run control at `control` (host:port) until it orders to exit, or, if `stays`, also
    the run controls that follow it. Ends by itself when none can be reached for `patience_s`, and
    the grace of the run before. A new run control is found at the same address or at that in
    `address_file`. Raises MeasureError where the run control refuses this unit or does not
    answer."""
    unit = Unit(token, make_node, control)
    answered_s, joined = time.monotonic(), False
    with closing(unit):
        while True:
            unit.control = control = _address(address_file, control)
            with channel(control, certificates, patience_s) as connection:
                end = _session(connection, unit, number, patience_s)
            if end.over and not stays:
                return
            if end.over or not unit.keeps_node:
                unit.shut()
            if end.over:
                unit.process = UnitProcess()  # the next run has accounts of its own
            elif number is None:
                number = unit.number
            if end.refusal and not (joined and end.refusal == OCCUPIED):
                raise MeasureError(f"the run control at {control} refuses this unit: {end.refusal}")
            if end.joined:
                answered_s, joined = time.monotonic(), True
            if time.monotonic() - answered_s > patience_s + unit.grace_s:
                raise MeasureError(
                    f"the run control at {control} has not answered for {patience_s:g} s; the "
                    f"unit ends; {_advice(certificates)}"
                )
            time.sleep(RETRY_S)


def _address(file: Path | None, known: str) -> str:
    """Return the address of the run control now, the `known` one without a file."""
    if file is not None:
        with suppress(OSError, ValueError):
            return read_text(file, LONGEST_ADDRESS).strip() or known
    return known


def _advice(certificates: Certificates | None) -> str:
    """Return what to check if the run control does not answer."""
    if certificates is None:
        return "check the address, and give --certificates if the run control has certificates"
    return (
        f"check the address, and that {certificates.folder} is of the run control's authority and "
        "its certificate is for this address"
    )


@dataclass
class _End:
    """End of a connection to the run control."""

    over: bool = False
    joined: bool = False
    refusal: str = ""


def _batches(rows: Sequence[Row]) -> Iterator[tuple[Row, ...]]:
    """Yield the rows in messages' worth."""
    for first in range(0, len(rows), ROWS_AT_ONCE):
        yield tuple(rows[first : first + ROWS_AT_ONCE])


def _session(connection: Any, unit: Unit, number: int | None, patience_s: float) -> _End:
    """Serve one connection: a gRPC thread takes reports, a second thread receives orders, and this
    one carries them out."""
    answers: queue.SimpleQueue[UnitAnswer | Trace | None] = queue.SimpleQueue()
    try:
        admission = greeting(connection, unit.control, JOIN, unit.token, patience_s)
    except grpc.RpcError as error:
        return _End(refusal=_refusal(error))
    except MeasureError:  # another program has the port of the run control that has ended
        if unit.keeps_node:
            return _End()
        raise
    call = connection.stream_stream(JOIN)(_reports(unit, number, answers), metadata=admission)
    end = _End()
    orders: queue.SimpleQueue[AnyOrder | None] = queue.SimpleQueue()
    listener = Thread(target=_listen, args=(call, unit, orders, end), daemon=True)
    listener.start()
    try:
        while (order := orders.get()) is not None:
            answer = unit.obey(order)
            _report(order, answer)
            if isinstance(order, Configure) and unit.warnings:
                answers.put(Trace(warnings=unit.warnings))
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


def _report(order: AnyOrder, answer: UnitAnswer) -> None:
    if isinstance(order, Configure):
        identify(run=order.run, unit=order.unit)
    name = type(order).__name__.lower()
    level = ERROR if answer.failure else INFO
    LOG.log(level, "%s", f"{name}: {answer.failure or answer.state}", extra={"event": name})


def _listen(call: Any, unit: Unit, orders: queue.SimpleQueue[AnyOrder | None], end: _End) -> None:
    """Receive orders: renew the lease immediately, whatever the unit does; queue other orders."""
    try:
        for body in call:
            end.joined = True
            order = read_order(body)
            if isinstance(order, Renew):
                unit.renew(order)
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
    if error.code() not in REFUSALS:
        return ""
    if error.code() is grpc.StatusCode.ALREADY_EXISTS:
        return OCCUPIED
    return str(error.details() or "no reason given")


def _reports(
    unit: Unit, number: int | None, answers: queue.SimpleQueue[UnitAnswer | Trace | None]
) -> Iterator[bytes]:
    """Yield a hello, answers as they come, and a heartbeat whenever none came for that long."""
    yield from (report.encode() for report in unit.hello(number))
    shown_s = time.monotonic()
    while True:
        answer = None
        with suppress(queue.Empty):
            if (answer := answers.get(timeout=unit.heartbeat_s)) is None:
                return
        reports = [answer] if isinstance(answer, Trace) else unit.reports(answer)
        yield from (report.encode() for report in reports)
        if time.monotonic() - shown_s > CONNECTIONS_S:
            shown_s = time.monotonic()
            if rows := unit.connections()[:MOST_SLOW]:
                yield Trace(connections=tuple(rows)).encode()
