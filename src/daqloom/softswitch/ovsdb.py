"""A running switch as a client of an `ovsdb-server`, as `ovs-vswitchd` is: what `ovs-vsctl` sets
there is the pace of rings, and it shows ports and their statistics.

Of the schema Open_vSwitch (ovs-vswitchd.conf.db(5)) it serves one bridge. A port of the bridge is
the switch's port of the same name; the queues 1, 2, … of its QoS are the rings of that port in the
order of the switch's file, and `other_config:max-rate` is their pace.
"""

import threading
from collections.abc import Mapping
from typing import Any

import ovs.jsonrpc
import ovs.poller
import ovs.stream
from ovs.db import idl

from daqloom.measure import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.running import RunningSwitch
from daqloom.softswitch.status import PortStatus

SCHEMA = "Open_vSwitch"
COLUMNS = {
    "Open_vSwitch": ["bridges", "next_cfg", "cur_cfg"],
    "Bridge": ["name", "ports"],
    "Port": ["name", "interfaces", "qos"],
    "Interface": ["name", "ofport", "link_state", "statistics", "error"],
    "QoS": ["queues"],
    "Queue": ["other_config"],
}
LOCK = "ovs_vswitchd"
"""Held by whoever serves a database, so that an `ovs-vswitchd` beside this switch does not."""
STATISTICS_EVERY_S = 5.0
LOCAL_PORT = 65_534
"""Number of a bridge's own port in OpenFlow."""


class OvsdbClient:
    """Follows the database at `remote`, such as unix:/run/openvswitch/db.sock, until closed."""

    def __init__(self, running: RunningSwitch, remote: str, bridge: str) -> None:
        """Raises MeasureError where there is no such database."""
        self._running, self._bridge = running, bridge
        schema = _schema(remote)
        helper = idl.SchemaHelper(None, schema)
        for table, columns in COLUMNS.items():
            helper.register_columns(table, columns)
        self._idl = idl.Idl(remote, helper)
        self._idl.set_lock(LOCK)
        self._refused: dict[str, str] = {}
        """Why the rates of a port were refused, by its name."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._ends.set()
        self._thread.join()
        self._idl.close()

    def _follow(self) -> None:
        seen, waited_s = None, STATISTICS_EVERY_S
        while not self._ends.is_set():
            self._idl.run()
            if self._idl.has_lock:
                changed = self._idl.change_seqno != seen
                if changed:
                    seen = self._idl.change_seqno
                    self._set_rates()
                if changed or waited_s >= STATISTICS_EVERY_S:
                    self._tell()
                    waited_s = 0.0
            poller = ovs.poller.Poller()
            self._idl.wait(poller)
            poller.timer_wait(100)
            poller.block()
            waited_s += 0.1

    def _ports(self) -> Mapping[str, Any]:
        """Return the ports of the bridge by their names."""
        for bridge in self._idl.tables["Bridge"].rows.values():
            if bridge.name == self._bridge:
                return {port.name: port for port in bridge.ports}
        return {}

    def _set_rates(self) -> None:
        file = self._running.file
        self._refused = {}
        for name, port in self._ports().items():
            rings = file.queues(name)
            queues = port.qos[0].queues if port.qos else {}
            keys = {}
            for number, queue in queues.items():
                rate = queue.other_config.get("max-rate", "0")
                if number in rings and rate.isascii() and rate.isdigit():
                    given = f"{rate} b/s"
                    if file.rings[rings[number]].rate != int(rate):
                        keys[f"rings.{rings[number]}.rate"] = given
            try:
                if keys:
                    self._running.change(keys)
            except ScenarioError as error:
                self._refused[name] = str(error)

    def _tell(self) -> None:
        """Write what ports count, and that all that was asked for has been done."""
        by_name = {port.name: port for port in self._running.status().ports}
        numbers = {name: number for number, name in enumerate(by_name, 1)}
        transaction = idl.Transaction(self._idl)
        for name, port in self._ports().items():
            for interface in port.interfaces:
                status = by_name.get(name)
                if status is not None:
                    interface.ofport = numbers[name]
                    interface.link_state = "up" if status.is_up else "down"
                    interface.statistics = statistics_of(status)
                    interface.error = self._refused.get(name, [])
                elif name == self._bridge:
                    interface.ofport = LOCAL_PORT
                else:
                    interface.ofport = -1
                    interface.error = f"the switch has no port {name}"[:200]
        for root in self._idl.tables["Open_vSwitch"].rows.values():
            root.cur_cfg = root.next_cfg
        transaction.commit_block()


def statistics_of(port: PortStatus) -> dict[str, int]:
    """Return what a port counts by the names of ovs-vswitchd.conf.db(5)."""
    counts = port.device_counts
    return {
        "rx_packets": counts["received"],
        "rx_bytes": counts["received_bytes"],
        "rx_dropped": port.missed,
        "rx_errors": counts["errors"],
        "tx_packets": counts["sent"],
        "tx_bytes": counts["sent_bytes"],
    }


def _schema(remote: str) -> Any:
    """Return the database's own schema. Raises MeasureError."""
    error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open(remote), 5000)
    if error:
        raise MeasureError(
            f"control.ovsdb = {remote}: no ovsdb-server answers there; start it, or leave the key "
            "out"
        )
    rpc = ovs.jsonrpc.Connection(stream)
    request = ovs.jsonrpc.Message.create_request("get_schema", [SCHEMA])
    error, reply = rpc.transact_block(request)
    rpc.close()
    if error or reply.error:
        raise MeasureError(f"control.ovsdb = {remote}: the database has no {SCHEMA}")
    return reply.result
