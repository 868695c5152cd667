"""Counters read by gNMI, with the data model of OpenConfig or of SONiC."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from daqloom.base.words import did_you_mean, natural_key
from daqloom.device.adapter import AdapterError, PortCount
from daqloom.device.credentials import Credentials
from daqloom_adapters.gnmi_session import Elements, GnmiOptions, Session

COUNTERS: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {
    "openconfig": {
        "sent": (("out-pkts",), ("out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts")),
        "sent_bytes": (("out-octets",),),
        "dropped": (("out-discards",),),
    },
    "sonic": {
        "sent": (("SAI_PORT_STAT_IF_OUT_UCAST_PKTS", "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS"),),
        "sent_bytes": (("SAI_PORT_STAT_IF_OUT_OCTETS",),),
        "dropped": (("SAI_PORT_STAT_IF_OUT_DISCARDS",),),
    },
}
"""Groups of counters to be added up for each field; the first group on the device is used."""
TARGETS = {"openconfig": "", "sonic": "COUNTERS_DB"}


class GnmiCountOptions(GnmiOptions):
    """Options of the adapter that reads counters by gNMI."""

    model: Literal["openconfig", "sonic"] = "openconfig"
    """Data model of the counters: OpenConfig's, or the counter database of SONiC."""


class Gnmi:
    """A device without peaks, because gNMI cannot reset the watermarks of SONiC."""

    Options = GnmiCountOptions

    def __init__(
        self,
        options: GnmiCountOptions,
        ports: Sequence[str],
        credentials: Credentials | None = None,
    ) -> None:
        self._model, self._ports = options.model, ports
        self._session = Session(options, credentials)

    def __enter__(self) -> Self:
        self._session.open(self.read)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def begin(self) -> None:
        """Do nothing, because no peaks are read."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the packets that each port has sent and dropped since the device started."""
        return {port: self._count(port) for port in self._ports}

    def _count(self, port: str) -> PortCount:
        found = {} if "*" in port else self._leaves(self._path(port))
        if not found:
            raise self._unknown_port(port)
        sums = {}
        for name, ways in COUNTERS[self._model].items():
            way = next((way for way in ways if set(way) <= set(found)), None)
            if way is None:
                raise self._session.error(
                    f"does not report {' + '.join(ways[0])} of {port}; expected counters of the "
                    f'model "{self._model}"'
                )
            sums[name] = sum(self._number(port, each, found[each]) for each in way)
        return PortCount(**sums)

    def _number(self, port: str, name: str, value: Any) -> int:
        text = str(value)[:40]
        if not (text.isascii() and text.isdecimal() and int(text) < 1 << 64):
            raise self._session.error(
                f"reports {text!r} as {name} of {port}; expected a whole number of at most 64 bits"
            )
        return int(text)

    def _path(self, port: str) -> Elements:
        if self._model == "sonic":
            return ("COUNTERS", port)
        return ("interfaces", ("interface", "name", port), "state", "counters")

    def _leaves(self, path: Elements) -> dict[str, Any]:
        """Return the leaves below a path, by the last part of their name, without YANG module."""
        leaves = {}
        left = [
            (names[-1] if names else "", value)
            for names, value in self._session.get(path, target=TARGETS[self._model])
        ]
        while left:
            name, value = left.pop()
            if isinstance(value, dict):
                left += value.items()
            else:
                leaves[name.rpartition(":")[2]] = value
        return leaves

    def _unknown_port(self, port: str) -> AdapterError:
        known = sorted(self._port_names(), key=natural_key)[:20]
        hint = did_you_mean(port, known, "known are " + ", ".join(known))
        return self._session.error(
            f'has no counters of a port "{port}"; '
            + (hint if known else "expected a name that the device itself uses")
        )

    def _port_names(self) -> set[str]:
        """Return the names of ports; empty if the device lists no names."""
        try:
            if self._model == "sonic":
                return set(self._leaves(("COUNTERS_PORT_NAME_MAP",)))
            every: Elements = ("interfaces", ("interface", "name", "*"), "state", "name")
            return {str(value) for _, value in self._session.get(every)}
        except AdapterError:
            return set()
