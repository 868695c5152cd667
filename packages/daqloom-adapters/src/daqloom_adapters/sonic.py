"""A switch with SONiC: buffer and WRED profiles of its queues, in its configuration database."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from daqloom.base.words import did_you_mean, natural_key
from daqloom.device.adapter import AdapterError, PortBuffer
from daqloom.device.credentials import Credentials
from daqloom.scenario.quantities import PositiveSeconds
from daqloom_adapters.config_db import Key, Row, Tables, Text, changes, make, read_tables
from daqloom_adapters.gnmi_session import GnmiOptions, Session

OWN = "daqloom"
"""Name, or prefix of the name, of each profile that this adapter creates."""
COLOURS = ("green", "yellow", "red")
EXPONENTS = (-8, 7)
"""Smallest and largest dynamic_th; alpha is 2 to this power (sonic-buffer-profile.yang)."""
FIELDS = {
    "BUFFER_POOL": ("size",),
    "BUFFER_PROFILE": ("pool", "size", "dynamic_th", "static_th"),
    "BUFFER_QUEUE": ("profile",),
    "QUEUE": ("wred_profile",),
    "WRED_PROFILE": (
        "ecn",
        *(f"wred_{colour}_enable" for colour in COLOURS),
        *(f"{colour}_min_threshold" for colour in COLOURS),
        *(f"{colour}_max_threshold" for colour in COLOURS),
        *(f"{colour}_drop_probability" for colour in COLOURS),
    ),
}
"""Fields that this adapter may change, by table."""

_MAC = re.compile(r"(?!(?:00:){5}00)[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_SAVED = TypeAdapter(
    dict[
        Literal["BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE", "QUEUE", "WRED_PROFILE"],
        dict[Key, dict[Key, Text | list[Text] | None] | None],
    ],
    config=ConfigDict(strict=True),
)


def _ends(queues: str) -> tuple[int, int]:
    first, _, last = queues.partition("-")
    return int(first), int(last or first)


def _queues(queues: str) -> str:
    first, last = _ends(queues)
    if first > last:
        raise ValueError(f'is no range of queues; expected one such as "{last}-{first}"')
    return queues


class SonicOptions(GnmiOptions):
    """Options of the adapter for a switch with SONiC."""

    timeout: PositiveSeconds = 60.0
    """Time within which the device must answer; before an answer it validates its whole
    configuration (s)."""
    queues: Annotated[
        str, Field(pattern=r"^(1[0-5]|[0-9])(-(1[0-5]|[0-9]))?$"), AfterValidator(_queues)
    ] = "0"
    """Queues of each port that carry the traffic, such as "3" or "0-2"."""
    pool: Key = "egress_lossy_pool"
    """Buffer pool of these queues."""


class Sonic:
    """A switch with SONiC. Each queue gets a copy of its buffer profile with the desired values, as
    thresholds are per queue. Above the ECN threshold, packets without ECN are dropped. The device
    keeps a change over restarts, until it is restored."""

    Options = SonicOptions
    settable: ClassVar[frozenset[str]] = frozenset(
        ("limit_bytes", "reserved_bytes", "shared_bytes", "alpha", "ecn_bytes")
    )
    rounding: ClassVar[float] = 0.0

    def __init__(
        self, options: SonicOptions, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports = options, ports
        self._session = Session(options, credentials)

    def __enter__(self) -> Self:
        self._session.open(self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def identity(self) -> str:
        """Return the base MAC address of the switch, or its network address if it has none."""
        found = read_tables(self._session, ("DEVICE_METADATA",))["DEVICE_METADATA"]
        mac = str(found.get("localhost", {}).get("mac", "")).lower()
        return f"mac {mac}" if _MAC.fullmatch(mac) else self._session.address_identity()

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return the gNMI deletions, replacements and updates that `apply` would send."""
        now = self._read()
        return [str(step) for step in changes(now, self._tables_with(now, desired))]

    def save(self) -> dict[str, Any]:
        """Return all fields that may be changed, by table and row; None: absent."""
        now = self._read()
        queues = self._all_rows(now, "BUFFER_QUEUE")
        rows = {
            "BUFFER_POOL": [self._options.pool],
            "BUFFER_PROFILE": {_own(_profile(now, key)) for key in queues},
            "BUFFER_QUEUE": queues,
            "QUEUE": self._all_rows(now, "QUEUE"),
            "WRED_PROFILE": [OWN],
        }
        return {
            table: {key: _pick(now[table].get(key), FIELDS[table]) for key in sorted(keys)}
            for table, keys in rows.items()
        }

    def apply(self, desired: PortBuffer) -> None:
        """Create profiles and assign them to the queues, in one request."""
        now = self._read()
        self._change(now, self._tables_with(now, desired))

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the limits in the profiles of the queues; None if they differ within a port."""
        now = self._read()
        return {port: self._buffer(now, port) for port in self._ports}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore saved fields, and remove rows that were absent before."""
        try:
            tables = _SAVED.validate_python(saved)
        except ValidationError:
            raise self._session.error("is not restored: its saved state is damaged") from None
        now = self._read()
        then = deepcopy(now)
        for table, rows in tables.items():
            for key, fields in rows.items():
                row = then[table].pop(key, {})
                if fields is None:
                    continue
                for name, value in fields.items():
                    row.pop(name, None)
                    if value is not None:
                        row[name] = value
                if row:
                    then[table][key] = row
        self._change(now, then)

    def _change(self, now: Tables, then: Tables) -> None:
        if steps := changes(now, then):
            make(self._session, steps)

    def _read(self) -> Tables:
        now = read_tables(self._session, ("PORT", *FIELDS))
        for port in self._ports:
            self._check(now, "PORT", port, "port")
        self._check(now, "BUFFER_POOL", self._options.pool, "buffer pool")
        return now

    def _check(self, now: Tables, table: str, name: str, what: str) -> None:
        if name not in now[table]:
            known = sorted(now[table], key=natural_key)[:20]
            hint = did_you_mean(name, known, "known are " + (", ".join(known) or "none"))
            raise self._session.error(f'has no {what} "{name}"; {hint}')

    def _tables_with(self, now: Tables, desired: PortBuffer) -> Tables:
        """Return a copy of the tables with the desired values."""
        then = deepcopy(now)
        if desired.shared_bytes is not None:
            then["BUFFER_POOL"][self._options.pool]["size"] = str(desired.shared_bytes)
        if {"limit_bytes", "reserved_bytes", "alpha"} & desired.set_fields.keys():
            for key in self._own_rows(now, "BUFFER_QUEUE"):
                profile = _profile(now, key)
                copied = self._profile_with(now, key, profile, desired)
                then["BUFFER_PROFILE"][_own(profile)] = copied
                then["BUFFER_QUEUE"].setdefault(key, {})["profile"] = _own(profile)
        if desired.ecn_bytes is not None:
            if desired.ecn_bytes:
                then["WRED_PROFILE"][OWN] = _marking(desired.ecn_bytes)
            for key in self._own_rows(now, "QUEUE"):
                row = then["QUEUE"].pop(key, {})
                row.pop("wred_profile", None)
                if desired.ecn_bytes:
                    row["wred_profile"] = OWN
                if row:
                    then["QUEUE"][key] = row
        return then

    def _profile_with(self, now: Tables, key: str, profile: str, desired: PortBuffer) -> Row:
        """Return a copy of the profile of row `key`, with the desired values."""
        if profile and profile not in now["BUFFER_PROFILE"]:
            raise self._session.error(
                f"has BUFFER_QUEUE|{key} with the profile {profile}, which is not in "
                "BUFFER_PROFILE; expected the plain name of a row there"
            )
        row = dict(now["BUFFER_PROFILE"].get(profile, {}))
        if row.setdefault("pool", self._options.pool) != self._options.pool:
            raise self._session.error(
                f"has BUFFER_QUEUE|{key} in the pool {row['pool']}; expected pool = "
                f'"{self._options.pool}": name that pool, or other queues'
            )
        row.setdefault("size", "0")
        if desired.reserved_bytes is not None:
            row["size"] = str(desired.reserved_bytes)
        if desired.limit_bytes is not None and desired.alpha is not None:
            raise AdapterError(
                "a buffer profile of SONiC has one threshold; expected limit_bytes or alpha, not "
                "both"
            )
        if desired.limit_bytes is not None:
            row.pop("dynamic_th", None)
            row["static_th"] = str(desired.limit_bytes)
        if desired.alpha is not None:
            row.pop("static_th", None)
            row["dynamic_th"] = str(_exponent(desired.alpha))
        if not row.keys() & {"dynamic_th", "static_th"}:
            raise self._session.error(
                f"has no buffer profile yet for {key}; expected alpha or limit_bytes beside "
                "reserved_bytes"
            )
        return row

    def _buffer(self, now: Tables, port: str) -> PortBuffer:
        profiles = [
            now["BUFFER_PROFILE"].get(_profile(now, key), {})
            for key in self._rows(now, "BUFFER_QUEUE", port)
        ]
        rows = [now["QUEUE"].get(key, {}) for key in self._rows(now, "QUEUE", port)]
        limit, reserved, exponent = (
            self._same(profiles, field) for field in ("static_th", "size", "dynamic_th")
        )
        if exponent is not None and not EXPONENTS[0] <= exponent <= EXPONENTS[1]:
            raise self._session.error(f"reports {exponent} as dynamic_th; expected {_RANGE}")
        marks = {self._marks_from(now, str(row.get("wred_profile", ""))) for row in rows}
        return PortBuffer(
            limit_bytes=limit,
            reserved_bytes=reserved,
            shared_bytes=self._same([now["BUFFER_POOL"][self._options.pool]], "size"),
            alpha=None if exponent is None else 2.0**exponent,
            ecn_bytes=marks.pop() if len(marks) == 1 else None,
        )

    def _marks_from(self, now: Tables, wred: str) -> int:
        row = now["WRED_PROFILE"].get(wred, {})
        marked = str(row.get("ecn", "ecn_none"))
        colour = next((each for each in COLOURS if each in marked), COLOURS[0])
        own = f"ecn_{colour}_min_threshold"
        field = own if own in row else f"{colour}_min_threshold"
        return 0 if marked == "ecn_none" else self._same([row], field) or 0

    def _same(self, rows: Iterable[Row], field: str) -> int | None:
        """Return the number in a field if it is equal in all rows, else None."""
        texts = {str(row.get(field, "")) for row in rows}
        text = texts.pop() if len(texts) == 1 else ""
        if not text:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
            raise self._session.error(f"reports {text[:40]!r} as {field}; expected a whole number")
        return int(text)

    def _all_rows(self, now: Tables, table: str) -> list[str]:
        return [key for port in self._ports for key in self._rows(now, table, port)]

    def _own_rows(self, now: Tables, table: str) -> list[str]:
        """Return the rows of the queues. Raises AdapterError for one that has other queues, too."""
        first, last = _ends(self._options.queues)
        found = self._all_rows(now, table)
        for key in found:
            port, queues = key.split("|")
            begin, end = _ends(queues)
            if begin < first or end > last or port not in self._ports:
                raise self._session.error(
                    f"has {table}|{key}, which holds more than the queues "
                    f'{self._options.queues} of a port; expected queues = "{queues}", or rows that '
                    "end where these queues do"
                )
        return found

    def _rows(self, now: Tables, table: str, port: str) -> list[str]:
        """Return the row keys for a port's queues: existing rows, and rows to be created."""
        first, last = _ends(self._options.queues)
        found = self._holding(now, table, port)
        held = {queue for key in found for queue in _span(key)}
        free = [queue for queue in range(first, last + 1) if queue not in held]
        if not found:
            return [f"{port}|{self._options.queues}"]
        return found + [f"{port}|{queue}" for queue in free]

    def _holding(self, now: Tables, table: str, port: str) -> list[str]:
        """Return the existing rows that cover any of a port's queues."""
        first, last = _ends(self._options.queues)
        return [
            key
            for key in now[table]
            if key.count("|") == 1
            and port in key.partition("|")[0].split(",")
            and any(first <= queue <= last for queue in _span(key))
        ]


_RANGE = f"a whole number from {EXPONENTS[0]} to {EXPONENTS[1]}"


def _span(key: str) -> range:
    """Return the queues that a row covers; empty if its key does not end with queues."""
    try:
        first, last = _ends(key.partition("|")[2])
    except ValueError:
        return range(0)
    return range(first, min(last, 63) + 1)


def _profile(now: Tables, key: str) -> str:
    return str(now["BUFFER_QUEUE"].get(key, {}).get("profile", ""))


def _own(profile: str) -> str:
    """Return the name of this adapter's copy of a profile."""
    if profile.startswith(OWN):
        return profile
    return f"{OWN}_{profile}" if profile else OWN


def _pick(row: Row | None, fields: Sequence[str]) -> Mapping[str, object] | None:
    return None if row is None else {field: row.get(field) for field in fields}


def _marking(threshold_bytes: int) -> Row:
    """Return a WRED profile that marks each packet above a threshold."""
    row: Row = {"ecn": "ecn_all"}
    for colour in COLOURS:
        row |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(threshold_bytes),
            f"{colour}_max_threshold": str(threshold_bytes),
            f"{colour}_drop_probability": "100",
        }
    return row


def _exponent(alpha: float) -> int:
    """Return the exponent of an alpha that is a power of two. Raises AdapterError."""
    least, greatest = EXPONENTS
    exponent = math.log2(alpha) if alpha > 0 else -math.inf
    below = math.floor(max(least, min(exponent, greatest)))
    if alpha == 2.0**below:
        return below
    low = min(below, greatest - 1)
    raise AdapterError(
        f"alpha = {alpha:g} is no power of two that SONiC has; nearest are {2.0**low:g} and "
        f"{2.0 ** (low + 1):g}"
    )
