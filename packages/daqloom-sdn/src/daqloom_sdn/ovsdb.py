"""Client of an `ovsdb-server` that replaces `ovs-vswitchd`: a running switch takes the paces of its
rings from the database, and writes ports and statistics to it.

It serves one bridge of the schema Open_vSwitch (ovs-vswitchd.conf.db(5)). A port of the bridge is
the switch's port of the same name. The queues 1, 2, … of its QoS are the port's rings in the order
of the switch's file; `other_config:max-rate` is a ring's pace, which the database then owns.

The client runs in a supervised thread, with a limit on every wait for the server."""

import errno
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ovs imports eventlet if it is there, which is deprecated
    import ovs.jsonrpc
    import ovs.poller
    import ovs.stream
    from ovs.db import error, idl, schema

from daqloom.base.words import printable
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import RATE
from daqloom.softswitch.running import RunningSwitch
from daqloom.softswitch.status import OvsdbStatus, PortStatus
from daqloom_sdn.supervision import Supervision

SCHEMA = "Open_vSwitch"
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "Open_vSwitch": {"bridges": ("uuid",), "next_cfg": ("integer",), "cur_cfg": ("integer",)},
    "Bridge": {"name": ("string",), "ports": ("uuid",)},
    "Port": {"name": ("string",), "interfaces": ("uuid",), "qos": ("uuid",)},
    "Interface": {
        "name": ("string",),
        "ofport": ("integer",),
        "link_state": ("string",),
        "statistics": ("string", "integer"),
        "error": ("string",),
    },
    "QoS": {"queues": ("integer", "uuid")},
    "Queue": {"other_config": ("string", "string")},
}
"""Used columns by table, with the type of their values, or of their keys and values."""
LOCK = "ovs_vswitchd"
"""Database lock of the process that serves the switch: this one, or `ovs-vswitchd`."""
ANSWER_S = 5.0
"""Time limit for each answer from the server (s)."""
ANSWERS = (ovs.jsonrpc.Message.T_REPLY, ovs.jsonrpc.Message.T_ERROR)
TURN_S = 0.1
STATISTICS_EVERY_S = 5.0
LOCAL_PORT = 65_534
"""OpenFlow number of a bridge's local port."""
LONGEST_RATE = 15
"""Limit on the digits of a rate in the database."""
MOST_REFUSALS = 20
"""Limit on refusals that the status shows."""


class OvsdbClient:
    """Client that follows the database in `control.ovsdb` until closed."""

    def __init__(self, running: RunningSwitch) -> None:
        """Connect and start. Raises MeasureError if there is no such database."""
        self._running, self._remote = running, running.file.control.ovsdb
        self._follower: _Follower | None = None
        self._thread = Supervision(f"control.ovsdb = {self._remote}", self._follow)

    def close(self) -> None:
        """End the connection."""
        self._thread.close()

    def status(self) -> dict[str, Any]:
        """Return fields of SwitchStatus; may be called from any thread."""
        failure, follower = self._thread.failure, self._follower
        state = follower.state if follower else "connecting"
        refusals = list(follower.refused.values())[:MOST_REFUSALS] if follower else []
        found = OvsdbStatus(
            state="failed" if failure else state,
            failure=failure,
            restarts=self._thread.restarts,
            refusals=tuple(refusals),
        )
        return {"ovsdb": found}

    def _follow(self, thread: Supervision) -> None:
        helper = idl.SchemaHelper(None, _schema(self._remote))
        for table, columns in COLUMNS.items():
            helper.register_columns(table, list(columns))
        database = idl.Idl(self._remote, helper, probe_interval=round(1000 * ANSWER_S))
        try:
            database.set_lock(LOCK)
            self._follower = _Follower(self._running, database)
            thread.report_start()
            self._follower.run(thread, f"control.ovsdb = {self._remote}")
        finally:
            database.close()


class _Follower:
    """Client for the lifetime of one connection."""

    def __init__(self, running: RunningSwitch, database: Any) -> None:
        self.state = "connecting"
        self.refused: dict[str, str] = {}
        """Sentences about refused rates, by port name."""
        self._running, self._idl, self._bridge = running, database, running.file.control.bridge
        self._last_change: int | None = None
        self._writing: Any = None
        """Transaction in progress; None without one."""
        self._begun_s = float("-inf")
        """Time at which the last transaction began (s)."""
        self._is_due = True

    def run(self, thread: Supervision, where: str) -> None:
        """Follow until the thread ends. Raises MeasureError if the server does not answer."""
        answered_s = time.monotonic()
        while not thread.ends.is_set():
            self._idl.run()
            now_s = time.monotonic()
            if self._idl.has_lock:
                self.state, answered_s = "following", now_s
                self._serve(now_s, where)
                thread.goes_on()
            elif self._idl.is_lock_contended:
                self.state = f"waiting for the lock {LOCK}, which another client holds"
                answered_s = now_s
                thread.goes_on()
            elif now_s - answered_s > ANSWER_S:
                raise MeasureError(f"{where}: the server has not answered within {ANSWER_S:g} s")
            poller = ovs.poller.Poller()
            self._idl.wait(poller)
            poller.timer_wait(round(1000 * TURN_S))
            poller.block()

    def _serve(self, now_s: float, where: str) -> None:
        if self._idl.change_seqno != self._last_change:
            self._last_change = self._idl.change_seqno
            self._is_due |= self._set_rates()
        if self._writing is None and (self._is_due or now_s - self._begun_s >= STATISTICS_EVERY_S):
            self._writing, self._begun_s, self._is_due = self._transaction(), now_s, False
        if self._writing is None:
            return
        if (status := self._writing.commit()) != idl.Transaction.INCOMPLETE:
            self._is_due |= status == idl.Transaction.TRY_AGAIN
            self._writing = None
        elif now_s - self._begun_s > ANSWER_S:
            raise MeasureError(
                f"{where}: the server has not answered a transaction within {ANSWER_S:g} s"
            )

    def _ports(self) -> Mapping[str, Any]:
        """Return the ports of the bridge, by name."""
        for bridge in self._idl.tables["Bridge"].rows.values():
            if bridge.name == self._bridge:
                return {port.name: port for port in bridge.ports}
        return {}

    def _set_rates(self) -> bool:
        """Set the paces of rings from the database; return whether the database must be updated."""
        rates: dict[str, int] = {}
        owners: dict[str, str] = {}
        refused: dict[str, str] = {}
        for name, port in self._ports().items():
            try:
                for number, ring, rate in self._queue_paces(name, port):
                    owners[ring] = f"queue {number} of port {name} in control.ovsdb"
                    try:
                        rates[ring] = _rate(rate)
                    except ValueError as wrong:
                        sentence = f"port {name}, queue {number}: other_config:max-rate {wrong}"
                        refused.setdefault(name, sentence)
            except Exception as wrong:  # a malformed row must not affect the others
                refused[name] = f"port {name}: {wrong}"
        try:
            self._running.set_owned_rates(rates, owners)
        except ScenarioError as wrong:
            refused[""] = str(wrong)
        refused = {name: printable(sentence)[:300] for name, sentence in refused.items()}
        for sentence in set(refused.values()) - set(self.refused.values()):
            print(f"daqloom: {sentence}", file=sys.stderr, flush=True)
        has_changed, self.refused = refused != self.refused, refused
        return has_changed or any(
            root.cur_cfg != root.next_cfg for root in self._idl.tables["Open_vSwitch"].rows.values()
        )

    def _queue_paces(self, name: str, port: Any) -> Iterator[tuple[int, str, str]]:
        """Yield number, ring and pace of the queues at a port that have a pace."""
        queues = port.qos[0].queues if port.qos else {}
        for number, ring in self._running.file.queues(name).items():
            rate = queues[number].other_config.get("max-rate") if number in queues else None
            if rate is not None:
                yield number, ring, rate

    def _transaction(self) -> Any:
        """Return a transaction that writes the statistics of ports, and the number of the applied
        configuration."""
        by_name = {port.name: port for port in self._running.status().ports}
        numbers = {name: number for number, name in enumerate(by_name, 1)}
        transaction = idl.Transaction(self._idl)
        try:
            for name, port in self._ports().items():
                for interface in port.interfaces:
                    status = by_name.get(name)
                    if status is not None:
                        interface.ofport = numbers[name]
                        interface.link_state = "up" if status.is_up else "down"
                        interface.statistics = statistics_of(status)
                        interface.error = self.refused.get(name, [])
                    elif name == self._bridge:
                        interface.ofport = LOCAL_PORT
                    else:
                        interface.ofport = -1
                        interface.error = f"the switch has no port {name}"[:200]
            for root in self._idl.tables["Open_vSwitch"].rows.values():
                root.cur_cfg = root.next_cfg
        except BaseException:
            transaction.abort()
            raise
        return transaction


def statistics_of(port: PortStatus) -> dict[str, int]:
    """Return the counters of a port with the names of ovs-vswitchd.conf.db(5)."""
    counts = port.device_counts
    return {
        "rx_packets": counts["received"],
        "rx_bytes": counts["received_bytes"],
        "rx_dropped": port.missed,
        "rx_errors": counts["errors"],
        "tx_packets": counts["sent"],
        "tx_bytes": counts["sent_bytes"],
    }


def _rate(text: str) -> int:
    """Return a rate (b/s). Raises ValueError, whose text continues a sentence about the rate."""
    shown = text if len(text) <= LONGEST_RATE else f"{text[:LONGEST_RATE]}… of {len(text)} digits"
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_RATE):
        raise ValueError(f"= {shown} is not a rate; expected whole bits a second")
    if int(text) == 0:
        raise ValueError("= 0 would be no limit at all; set a rate, or remove the key")
    try:
        return int(RATE.parse(f"{text} b/s"))
    except ValueError as wrong:
        raise ValueError(f"= {shown} {wrong}") from None


def _schema(remote: str) -> Any:
    """Return the schema of the database. Raises MeasureError if it lacks a column."""
    where = f"control.ovsdb = {remote}"
    failed, stream = ovs.stream.Stream.open_block(
        ovs.stream.Stream.open(remote), round(1000 * ANSWER_S)
    )
    if failed:
        raise MeasureError(
            f"{where}: no ovsdb-server answers there; start it, or leave the key out"
        )
    rpc = ovs.jsonrpc.Connection(stream)
    try:
        reply = _answer(rpc, ovs.jsonrpc.Message.create_request("get_schema", [SCHEMA]))
    finally:
        rpc.close()
    if reply is None:
        raise MeasureError(
            f"{where}: the server has not answered within {ANSWER_S:g} s; expected an ovsdb-server"
        )
    if reply.error or reply.result is None:
        raise MeasureError(f"{where}: the database has no {SCHEMA}")
    try:
        tables = schema.DbSchema.from_json(reply.result).tables
    except (error.Error, AttributeError, TypeError, ValueError) as wrong:
        raise MeasureError(
            f"{where}: the schema {SCHEMA} is malformed: {printable(str(wrong))[:200]}"
        ) from None
    for table, columns in COLUMNS.items():
        for column, expected in columns.items():
            found = _type_of(tables, table, column)
            if found != expected:
                raise MeasureError(
                    f"{where}: column {column} of table {table} is {' to '.join(found) or 'absent'}"
                    f"; expected {' to '.join(expected)}, as in ovs-vswitchd.conf.db(5)"
                )
    return reply.result


def _type_of(tables: Mapping[str, Any], table: str, column: str) -> tuple[str, ...]:
    """Return the type names of a column; empty if the column does not exist."""
    columns = tables[table].columns if table in tables else {}
    if column not in columns:
        return ()
    kinds = (columns[column].type.key, columns[column].type.value)
    return tuple(str(kind.type.to_string()) for kind in kinds if kind is not None)


def _answer(rpc: Any, request: Any) -> Any:
    """Return the reply to a request; None after the time limit, or if the connection ended."""
    deadline_s = time.monotonic() + ANSWER_S
    failed = rpc.send(request)
    while not failed and (left_s := deadline_s - time.monotonic()) > 0:
        failed, reply = rpc.recv()
        if reply is not None and reply.id == request.id and reply.type in ANSWERS:
            return reply
        if failed == errno.EAGAIN:
            failed = 0
            rpc.run()
            poller = ovs.poller.Poller()
            rpc.wait(poller)
            rpc.recv_wait(poller)
            poller.timer_wait(round(1000 * left_s) + 1)
            poller.block()
    return None
