"""Counters of IF-MIB (RFC 2863), read by SNMP."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pyasn1.error import PyAsn1Error
from pydantic import AfterValidator, Field
from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch.asyncio import (
    USM_AUTH_HMAC96_SHA,
    USM_PRIV_CFB128_AES,
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    Udp6TransportTarget,
    UdpTransportTarget,
    UsmUserData,
    bulk_cmd,
    get_cmd,
)
from pysnmp.proto.errind import RequestTimedOut
from pysnmp.proto.rfc1902 import Counter32, Counter64, OctetString
from pysnmp.proto.rfc1905 import EndOfMibView

from daqloom.base.words import did_you_mean, reason_of
from daqloom.device.adapter import AdapterError, AdapterOptions, PortCount
from daqloom.device.credentials import Credentials
from daqloom_adapters.deadline import run_within

Oid = tuple[int, ...]
T = TypeVar("T")

IF_NAME: Oid = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1)
IF_OUT_DISCARDS: Oid = (1, 3, 6, 1, 2, 1, 2, 2, 1, 19)
IF_HC_OUT_OCTETS: Oid = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10)
IF_HC_OUT_PACKETS: tuple[Oid, ...] = tuple((*IF_NAME[:-1], column) for column in (11, 12, 13))
"""Counters of unicast, multicast and broadcast packets."""
COLUMNS = (IF_NAME, IF_OUT_DISCARDS, IF_HC_OUT_OCTETS, *IF_HC_OUT_PACKETS)
MOST_INTERFACES = 16384
REPETITIONS = 25
"""Number of interface names per request."""
PORTS_AT_ONCE = 4
"""Number of ports per request, so that the answer fits into an Ethernet frame."""
TRIES = 3


def _host_port(value: str) -> str:
    try:
        parts = urlsplit(f"//{value}")
        fit = parts.netloc == value and parts.hostname and "@" not in value and parts.port != 0
    except ValueError:
        fit = False
    if not fit or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError('is no address; expected one such as "tor1:161" or "[2001:db8::1]:161"')
    return value


class SnmpOptions(AdapterOptions):
    """Options of an agent. `timeout` covers the reading of all ports."""

    address: Annotated[str, Field(max_length=300), AfterValidator(_host_port)]
    """Host of the agent, with a port unless that is 161."""
    version: Literal["2c", "3"] = "2c"
    """SNMP version. 2c: the token is the community. 3: user and password (SHA, AES-128); the token,
    if given, is the password of the encryption."""


@dataclass(frozen=True)
class _Raw:
    """Counters of a port as the agent reports them."""

    sent: int
    sent_bytes: int
    dropped: int
    """Lower 32 bits of the number of dropped packets."""


class Snmp:
    """An SNMP agent. The 32-bit counter of drops is extended beyond 32 bits, which works if it
    wraps at most once between two readings; the other counters have 64 bits."""

    Options: ClassVar[type[SnmpOptions]] = SnmpOptions

    def __init__(
        self, options: SnmpOptions, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports = options, ports
        self._credentials = credentials or Credentials()
        self._indices: dict[str, int] = {}
        self._last: dict[str, tuple[_Raw, int]] = {}

    def __enter__(self) -> Self:
        self._indices = self._run(self._find)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        """Do nothing, because IF-MIB has no peaks."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of each port."""
        raws = self._run(self._read)
        found = {port: self._drops(port, raw) for port, raw in raws.items()}
        self._last = {port: (raws[port], dropped) for port, dropped in found.items()}
        return {
            port: PortCount(raw.sent, raw.sent_bytes, found[port]) for port, raw in raws.items()
        }

    def _drops(self, port: str, raw: _Raw) -> int:
        if port not in self._last:
            return raw.dropped
        last, dropped = self._last[port]
        if raw.sent < last.sent or raw.sent_bytes < last.sent_bytes:
            raise AdapterError(
                f"{self._options.address}: the counters of {port} have fallen since they were last "
                "read; expected an agent that runs on during a measurement"
            )
        return dropped + (raw.dropped - last.dropped) % (1 << 32)

    def _run(self, work: Callable[["_Agent"], Awaitable[T]]) -> T:
        """Return the result of `work`, run in a new event loop with a new SNMP engine."""
        options = self._options
        authority = _authority(options, self._credentials)
        try:
            return run_within(
                options.timeout, lambda: asyncio.run(_with_agent(options, authority, work))
            )
        except TimeoutError:
            raise AdapterError(
                f"{options.address}: no whole answer within {options.timeout:g} s; expected an "
                f"agent of SNMP {options.version} that accepts the credentials (it does not answer "
                "others), or a longer timeout"
            ) from None
        except OSError as error:
            raise AdapterError(
                f"{options.address}: {reason_of(error)}; expected an SNMP agent there"
            ) from None
        except (PySnmpError, PyAsn1Error, ValueError) as error:
            raise AdapterError(
                f"{options.address}: the credentials or an answer cannot be used by SNMP "
                f"{options.version} ({type(error).__name__})"
            ) from None

    async def _find(self, agent: "_Agent") -> dict[str, int]:
        """Return the ifIndex of each port."""
        names = await agent.names()
        found: dict[str, int] = {}
        for port in self._ports:
            indices = [index for index, name in names.items() if name == port]
            if len(indices) > 1:
                raise AdapterError(
                    f"{agent.where}: {len(indices)} interfaces have the ifName {port}; expected one"
                )
            if not indices:
                known = [name for name in names.values() if name.isprintable()][:1000]
                hint = did_you_mean(port, known, "known are " + (", ".join(known[:5]) or "none"))
                raise AdapterError(f"{agent.where}: no interface has the ifName {port}; {hint}")
            found[port] = indices[0]
        return found

    async def _read(self, agent: "_Agent") -> dict[str, _Raw]:
        found: dict[str, _Raw] = {}
        for first in range(0, len(self._ports), PORTS_AT_ONCE):
            some = self._ports[first : first + PORTS_AT_ONCE]
            oids = [(*column, self._indices[port]) for port in some for column in COLUMNS]
            values = await agent.values(oids)
            for port in some:
                row, values = values[: len(COLUMNS)], values[len(COLUMNS) :]
                found[port] = self._raw(port, row)
        return found

    def _raw(self, port: str, row: Sequence[Any]) -> _Raw:
        name, dropped, sent_bytes, *packets = row
        if not isinstance(name, OctetString) or _text(name) != port:
            raise AdapterError(
                f"{self._options.address}: ifIndex {self._indices[port]} is no longer that of "
                f"{port}; expected an agent that runs on during a measurement"
            )
        wide = zip((IF_HC_OUT_OCTETS, *IF_HC_OUT_PACKETS), (sent_bytes, *packets), strict=True)
        kinds = [(IF_OUT_DISCARDS, dropped, Counter32), *((*each, Counter64) for each in wide)]
        for column, value, kind in kinds:
            if not isinstance(value, kind):
                raise AdapterError(
                    f"{self._options.address}: {port} has no {kind.__name__} "
                    f"{'.'.join(map(str, column))}; expected an agent with the ifXTable of IF-MIB"
                )
        return _Raw(sum(map(int, packets)), int(sent_bytes), int(dropped))


class _Agent:
    """Requests to an SNMP agent, within a running event loop."""

    def __init__(self, options: SnmpOptions, engine: Any, authority: Any, target: Any) -> None:
        self.where = options.address
        self._timeout = options.timeout
        self._to = engine, authority, target, ContextData()

    async def names(self) -> dict[int, str]:
        """Return the ifName for each ifIndex."""
        found: dict[int, str] = {}
        last = IF_NAME
        while len(found) <= MOST_INTERFACES:
            start = ObjectType(ObjectIdentity(last))
            pairs = await self._answer(bulk_cmd(*self._to, 0, REPETITIONS, start, lookupMib=False))
            for oid, value in pairs:
                if oid[: len(IF_NAME)] != IF_NAME or isinstance(value, EndOfMibView):
                    return found
                if (
                    len(oid) != len(IF_NAME) + 1
                    or oid <= last
                    or not isinstance(value, OctetString)
                ):
                    raise AdapterError(f"{self.where}: the names of interfaces are in disorder")
                found[oid[-1]], last = _text(value), oid
            if not pairs:
                raise AdapterError(f"{self.where}: an answer about names of interfaces is empty")
        raise AdapterError(f"{self.where}: there are more than {MOST_INTERFACES} interfaces")

    async def values(self, oids: Sequence[Oid]) -> list[Any]:
        """Return the value of each object."""
        objects = [ObjectType(ObjectIdentity(oid)) for oid in oids]
        pairs = await self._answer(get_cmd(*self._to, *objects, lookupMib=False))
        if [oid for oid, _ in pairs] != list(oids):
            raise AdapterError(
                f"{self.where}: the answer is about other objects than were requested"
            )
        return [value for _, value in pairs]

    async def _answer(self, request: Awaitable[Any]) -> list[tuple[Oid, Any]]:
        indication, status, _, pairs = await asyncio.wait_for(request, self._timeout)
        if isinstance(indication, RequestTimedOut):
            raise TimeoutError
        if indication:
            raise AdapterError(f"{self.where}: SNMP fails: {indication}")
        if status:
            raise AdapterError(f"{self.where}: refuses the request with {status.prettyPrint()}")
        return [(tuple(oid), value) for oid, value in pairs]


async def _with_agent(
    options: SnmpOptions, authority: Any, work: Callable[[_Agent], Awaitable[T]]
) -> T:
    loop = asyncio.get_running_loop()
    # Datagrams that are not SNMP are ignored.
    loop.set_exception_handler(lambda *_: None)
    parts = urlsplit(f"//{options.address}")
    family, *_, address = (
        await loop.getaddrinfo(parts.hostname, parts.port or 161, type=socket.SOCK_DGRAM)
    )[0]
    kind = Udp6TransportTarget if family == socket.AF_INET6 else UdpTransportTarget
    target = await kind.create(address[:2], timeout=options.timeout / TRIES, retries=TRIES - 1)
    engine = SnmpEngine()
    try:
        return await asyncio.wait_for(
            work(_Agent(options, engine, authority, target)), options.timeout
        )
    finally:
        engine.close_dispatcher()


def _authority(options: SnmpOptions, credentials: Credentials) -> Any:
    """Return the credentials as an SNMP community or user. Raises AdapterError."""
    token, password = credentials.token.encode(), credentials.password.encode()
    if options.version == "2c":
        if not token:
            raise AdapterError(
                f"{options.address}: the community is missing; expected one as the token of the "
                'credentials (token = "public" where the agent has that)'
            )
        return CommunityData(token)
    if not credentials.user or not password:
        raise AdapterError(
            f"{options.address}: the user or the password is missing; SNMP 3 expects both in the "
            "credentials"
        )
    return UsmUserData(
        credentials.user.encode(),
        authKey=password,
        privKey=token or password,
        authProtocol=USM_AUTH_HMAC96_SHA,
        privProtocol=USM_PRIV_CFB128_AES,
    )


def _text(value: Any) -> str:
    return bytes(value).decode(errors="replace")
