"""Open vSwitch: the QoS of each port, through its database (ovs-vswitchd.conf.db(5))."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from daqloom.base.words import printable
from daqloom.device.adapter import AdapterError, PortBuffer, PortCount
from daqloom.device.credentials import Credentials
from daqloom_adapters.ovsdb import SCHEMA, Ovsdb, OvsdbOptions

MARK = "daqloom-port"
"""Key in external_ids of each QoS that this adapter created; its value is the port."""
NETEM, HTB = "linux-netem", "linux-htb"
USUAL_LIMIT_PACKETS = 1000
"""Default limit of linux-netem in packets, which also applies for a limit of 0."""
MOST_PACKETS = (1 << 32) - 1
STEP_BPS = 8
"""Granularity of linux-htb (b/s), whose rates are whole bytes per second."""
MOST_BPS = STEP_BPS * ((1 << 32) - 1)
"""Largest rate (b/s); Open vSwitch 3.1 truncates higher rates to their lower bits."""
COUNTERS = ("tx_packets", "tx_bytes", "tx_dropped")


class OpenVSwitchOptions(OvsdbOptions):
    """Options of the adapter for Open vSwitch."""

    wait: bool = True
    """Whether to wait until ovs-vswitchd has applied a change; false for a database without an
    ovs-vswitchd."""


def _members(value: object) -> object:
    """Return the members of an OVSDB set; a set of one member is encoded as the member."""
    match value:
        case ["set", list(members)]:
            return members
    return [value]


def _identity(value: object) -> object:
    match value:
        case ["uuid", str(identity)]:
            return identity
    return value


def _pairs(value: object) -> object:
    match value:
        case ["map", list(pairs)]:
            return dict(map(_pair, pairs))
    return value


def _pair(value: object) -> tuple[str, object]:
    match value:
        case [str(key), of]:
            return key, of
    raise ValueError("is no pair with a name")


_Text = Annotated[str, Field(max_length=1000), AfterValidator(printable)]
_UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_Identity = Annotated[str, Field(pattern=_UUID), BeforeValidator(_identity)]
_Identities = Annotated[list[_Identity], BeforeValidator(_members)]
_Saved = TypeAdapter(dict[str, Annotated[str, Field(pattern=f"^$|{_UUID}")]])


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    identity: _Identity = Field(alias="_uuid")


class _Port(_Row):
    name: _Text
    qos: Annotated[_Identities, Field(max_length=1)]
    interfaces: _Identities


class _Qos(_Row):
    type: _Text
    other_config: Annotated[dict[_Text, _Text], BeforeValidator(_pairs)]

    @property
    def buffer(self) -> PortBuffer:
        """Limits that a port with this QoS has, as far as they are known."""
        match self.type:
            case "linux-netem":
                limit = self._number("limit")
                return PortBuffer(limit_packets=limit or USUAL_LIMIT_PACKETS, pace_bps=0)
            case "linux-htb":
                return PortBuffer(pace_bps=self._number("max-rate") or None)
        return PortBuffer()

    def _number(self, key: str) -> int:
        found = self.other_config.get(key, "")
        return int(found) if found.isascii() and found.isdigit() and len(found) < 20 else 0


class _Interface(_Row):
    statistics: Annotated[dict[_Text, int], BeforeValidator(_pairs)]


class _Configuration(BaseModel):
    next_cfg: int


R = TypeVar("R", bound=BaseModel)


class OpenVSwitch:
    """Open vSwitch. Each port gets a new QoS in place of its present one, whose queues are then
    unused: linux-netem with a limit, or linux-htb with a rate. The database does not show whether
    the kernel has applied a QoS, which requires a kernel module for its type."""

    Options = OpenVSwitchOptions
    settable: ClassVar[frozenset[str]] = frozenset({"limit_packets", "pace_bps"})
    rounding: ClassVar[float] = 0.0

    def __init__(
        self,
        options: OpenVSwitchOptions,
        ports: Sequence[str],
        credentials: Credentials | None = None,
    ) -> None:
        self._options, self._names = options, ports
        self._database = Ovsdb(options, credentials)

    def __enter__(self) -> Self:
        self._ports()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def identity(self) -> str:
        """Return the UUID of the switch in the database, or the database's address if it has no
        switch."""
        found = sorted(row.identity for row in self._select(_Row, "Open_vSwitch", "_uuid"))
        return f"database {' '.join(found)}" if found else self._database.address_identity()

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return equivalent commands of `ovs-vsctl`."""
        qos = _qos(desired)
        if qos is None:
            return [f"ovs-vsctl clear port {port} qos" for port in self._names]
        kind, key, value = qos
        return [
            f"ovs-vsctl set port {port} qos=@made -- --id=@made create qos type={kind} "
            f"other_config:{key}={value} external_ids:{MARK}={port}"
            for port in self._names
        ]

    def save(self) -> dict[str, Any]:
        """Return the UUID of each port's QoS; empty for a port without one."""
        return {name: "".join(port.qos) for name, port in self._ports().items()}

    def apply(self, desired: PortBuffer) -> None:
        """Give each port its QoS. QoS from earlier calls stay in the database until `restore`."""
        qos = _qos(desired)
        operations: list[dict[str, Any]] = []
        for number, port in enumerate(self._names):
            made: list[Any] = ["set", []]
            if qos is not None:
                kind, key, value = qos
                made = ["named-uuid", f"made{number}"]
                row = {
                    "type": kind,
                    "other_config": ["map", [[key, str(value)]]],
                    "external_ids": ["map", [[MARK, port]]],
                }
                operations.append(
                    {"op": "insert", "table": "QoS", "row": row, "uuid-name": made[1]}
                )
            operations.append(_assignment(port, made))
        self._change(operations)

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the limits that the QoS of each port has."""
        rows, found = self._qos_rows(), {}
        for name, port in self._ports().items():
            identity = "".join(port.qos)
            if identity and identity not in rows:
                raise AdapterError(f"{name}: its QoS was removed meanwhile; try again")
            found[name] = rows[identity].buffer if identity else PortBuffer(pace_bps=0)
        return found

    def restore(self, saved: dict[str, Any]) -> None:
        """Give each port its former QoS, and remove each QoS that this adapter created."""
        try:
            before = _Saved.validate_python(saved)
        except ValidationError:
            raise AdapterError(
                f"{self._options.remote}: the saved state of its ports is damaged; restore them "
                "with `ovs-vsctl set port NAME qos=...`"
            ) from None
        rows = self._qos_rows()
        operations = []
        for port, identity in before.items():
            if identity and identity not in rows:
                raise AdapterError(
                    f"{port}: its former QoS {identity} is gone; give it another one with "
                    "`ovs-vsctl set port NAME qos=...`"
                )
            operations.append(_assignment(port, ["uuid", identity] if identity else ["set", []]))
            made: list[Any] = [["external_ids", "includes", ["map", [[MARK, port]]]]]
            if identity:
                made.append(["_uuid", "!=", ["uuid", identity]])
            operations.append({"op": "delete", "table": "QoS", "where": made})
        self._change(operations)

    def begin(self) -> None:
        """Do nothing, because Open vSwitch has no peaks."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of each port's interfaces, which ovs-vswitchd writes every 5 s by
        default (other_config:stats-update-interval). They exclude packets dropped by a queueing
        discipline of Linux."""
        ports = self._ports()
        rows = self._select(_Interface, "Interface", "_uuid", "statistics")
        statistics = {row.identity: row.statistics for row in rows}
        return {
            name: _count(name, [statistics.get(each, {}) for each in port.interfaces])
            for name, port in ports.items()
        }

    def _ports(self) -> dict[str, _Port]:
        rows = self._select(_Port, "Port", "_uuid", "name", "qos", "interfaces")
        known = {row.name: row for row in rows}
        if unknown := next((name for name in self._names if name not in known), None):
            has = f"it has {', '.join(sorted(known)[:8])}" if known else "it has none"
            raise AdapterError(f"{unknown} is no port of {self._options.remote}; {has}")
        return {name: known[name] for name in self._names}

    def _qos_rows(self) -> dict[str, _Qos]:
        rows = self._select(_Qos, "QoS", "_uuid", "type", "other_config")
        return {row.identity: row for row in rows}

    def _select(self, kind: type[R], table: str, *columns: str) -> list[R]:
        [found] = self._database.transact(
            {"op": "select", "table": table, "where": [], "columns": list(columns)}
        )
        return self._rows(kind, table, found)

    def _rows(self, kind: type[R], table: str, found: Any) -> list[R]:
        try:
            return [kind.model_validate(row) for row in found["rows"]]
        except (ValidationError, KeyError, TypeError):
            raise AdapterError(
                f"{self._options.remote} has rows of {table} that are not of the schema "
                f"{SCHEMA}; expected the database of an Open vSwitch"
            ) from None

    def _change(self, operations: list[dict[str, Any]]) -> None:
        """Make one transaction, and wait until the switch has applied its changes."""
        if not self._options.wait:
            self._database.transact(*operations)
            return
        root: dict[str, Any] = {"table": "Open_vSwitch", "where": []}
        *_, found = self._database.transact(
            *operations,
            root | {"op": "mutate", "mutations": [["next_cfg", "+=", 1]]},
            root | {"op": "select", "columns": ["next_cfg"]},
        )
        rows = self._rows(_Configuration, "Open_vSwitch", found)
        if len(rows) != 1:
            raise AdapterError(
                f"{self._options.remote} has {len(rows)} rows of Open_vSwitch, and a database that "
                "a switch follows has one; make it with `ovs-vsctl --no-wait init`"
            )
        behind = [["cur_cfg", "<", rows[0].next_cfg]]
        self._database.transact(
            root | {"op": "wait", "where": behind, "columns": [], "until": "==", "rows": []},
            silent=f"{self._options.remote}: ovs-vswitchd has not applied the change within "
            f"{self._options.timeout:g} s; see whether it runs",
        )


def _count(port: str, interfaces: list[dict[str, int]]) -> PortCount:
    """Return counters, summed over the interfaces of a port. Raises AdapterError."""
    sums = []
    for key in COUNTERS:
        values = [statistics.get(key, -1) for statistics in interfaces]
        if min(values, default=-1) < 0:
            raise AdapterError(
                f"{port} has no {key} among the statistics of its interfaces; see whether "
                "ovs-vswitchd runs and has them"
            )
        sums.append(sum(values))
    return PortCount(*sums)


def _assignment(port: str, qos: list[Any]) -> dict[str, Any]:
    """Return the database operation that assigns a QoS to a port."""
    where = [["name", "==", port]]
    return {"op": "update", "table": "Port", "where": where, "row": {"qos": qos}}


def _qos(desired: PortBuffer) -> tuple[str, str, int] | None:
    """Return the type of a QoS, and the key and value of its other_config; None: no QoS. Raises
    AdapterError."""
    limit, pace_bps = desired.limit_packets, desired.pace_bps or 0
    if limit is None and desired.pace_bps is None:
        raise AdapterError(
            "a QoS of Open vSwitch has none of these values; expected limit_packets or pace_bps"
        )
    if limit is None:
        return (HTB, "max-rate", _rate(pace_bps)) if pace_bps else None
    if pace_bps:
        raise AdapterError(
            "a QoS of Open vSwitch has a limit of packets or a rate, and both are given; leave "
            "limit_packets or pace_bps out"
        )
    if not 1 <= limit <= MOST_PACKETS:
        raise AdapterError(
            f"limit_packets = {limit} is not from 1 to {MOST_PACKETS}, as linux-netem needs it; "
            f"nearest: {min(max(limit, 1), MOST_PACKETS)}"
        )
    return NETEM, "limit", limit


def _rate(pace_bps: int) -> int:
    """Return `pace_bps` if linux-htb supports this rate. Raises AdapterError."""
    below = min(max(pace_bps - pace_bps % STEP_BPS, STEP_BPS), MOST_BPS)
    if pace_bps != below:
        nearest = {below, min(max(below, pace_bps + -pace_bps % STEP_BPS), MOST_BPS)}
        raise AdapterError(
            f"pace_bps = {pace_bps} is no whole number of bytes a second up to {MOST_BPS} b/s, as "
            f"linux-htb needs it; nearest: {' and '.join(map(str, sorted(nearest)))}"
        )
    return pace_bps
