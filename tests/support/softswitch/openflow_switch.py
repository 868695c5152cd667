"""A switch as controllers of OpenFlow see it, over an engine that only counts."""

import socket

from pyof.v0x04.common.flow_instructions import InstructionApplyAction
from pyof.v0x04.common.flow_match import Match, OxmTLV
from pyof.v0x04.common.flow_match import OxmOfbMatchField as Field
from pyof.v0x04.common.header import Type
from pyof.v0x04.common.utils import unpack_message
from pyof.v0x04.controller2switch.common import MultipartType
from pyof.v0x04.controller2switch.flow_mod import FlowMod, FlowModCommand
from pyof.v0x04.controller2switch.meter_mod import (
    ListOfMeterBandHeader,
    MeterBandDrop,
    MeterFlags,
    MeterMod,
    MeterModCommand,
)
from pyof.v0x04.controller2switch.multipart_request import FlowStatsRequest, MultipartRequest
from pyof.v0x04.symmetric.hello import Hello

from daqloom.softswitch.configure import MOST_METERS
from daqloom.softswitch.openflow.datapath import Datapath
from daqloom.softswitch.openflow.session import Session
from daqloom.softswitch.openflow.statistics import Statistics
from daqloom.softswitch.openflow.table import FlowTable
from daqloom.softswitch.status import DROPS, PortStatus, RingStatus, SwitchStatus

NAMES = ("a", "b", "c")
PORTS = len(NAMES)


def packed(message) -> bytes:
    """As long as it says, which the library's own meter-mod is not."""
    data = message.pack()
    return data[:2] + len(data).to_bytes(2) + data[4:]


def status() -> SwitchStatus:
    """Of a switch of three ports, the second of which has two rings."""
    device = ("received", "received_bytes", "sent", "sent_bytes", "missed", "errors", "no_buffers")
    frames = dict.fromkeys(("packets", *DROPS), 2)
    rings = [(name, True) for name in NAMES] + [("b", False), ("b", False)]
    return SwitchStatus(
        title="test",
        pid=1,
        time_s=2.5,
        stopping=False,
        ports=tuple(
            PortStatus(
                name=name,
                device="",
                is_up=name != "c",
                frames=frames,
                device_counts=dict.fromkeys(device, 7),
            )
            for name in NAMES
        ),
        rings=tuple(
            RingStatus(
                name="",
                port=port,
                is_of_port=is_of_port,
                rate_bps=0,
                most_packets=1,
                packets=1,
                bytes=100,
                counts={"packets": 5, "bytes": 500, "drops": 3, "memory_drops": 1},
                waits=(),
            )
            for port, is_of_port in rings
        ),
        addresses={},
        loop={},
        memory={},
    )


class Engine:
    """Stands for a running switch: port 1 has two rings."""

    def __init__(self) -> None:
        self.steps = self.turns = 0
        self.refuses = False
        self.packets: dict[int, int] = {}

    def apply(self, changes):
        self.steps += len(changes)
        self.turns += 1
        return 0 if self.refuses else -1

    def flow_counts(self, indices):
        return [(self.packets.get(index, 0), 64 * self.packets.get(index, 0)) for index in indices]

    def ring_of(self, port, queue):
        return 9 + queue if port == 1 and queue in (1, 2) else None


class Switch:
    """A flow table with a clock, and one controller."""

    def __init__(self, meters: int = MOST_METERS) -> None:
        self.now_s = 0.0
        self.links = [True, True, False]
        self.engine = Engine()
        self.table = FlowTable(self.engine, PORTS, lambda: self.now_s, meters)
        counts = [(10, 1000, 3, 300)]
        statistics = Statistics(self.table, status, lambda numbers: counts * len(numbers))
        self.datapath = Datapath(0xABC, self.table, statistics, lambda: list(self.links))
        self.sent: list[bytes] = []
        self.session = Session(self.datapath, self.sent.append)
        self.session.receive(Hello(xid=1).pack())

    def say(self, *messages):
        """Send messages, and return what is answered."""
        self.sent.clear()
        for message in messages:
            self.session.receive(packed(message))
        return [unpack_message(each) for each in self.sent]

    def refusal(self, message):
        """The error that answers a message."""
        [answer] = self.say(message)
        assert answer.header.message_type == Type.OFPT_ERROR
        assert answer.header.xid == message.header.xid
        assert answer.data.value == packed(message)
        return answer.code

    def flows(self):
        """What a request for all flows is answered by."""
        request = MultipartRequest(5, MultipartType.OFPMP_FLOW, 0, FlowStatsRequest())
        return [flow for answer in self.say(request) for flow in answer.body]


def oxm(field, value, mask=None):
    return OxmTLV(oxm_field=field, oxm_hasmask=mask is not None, oxm_value=value + (mask or b""))


def ip(address="10.0.0.1", mask=None):
    packed = socket.inet_aton(address)
    return (
        oxm(Field.OFPXMT_OFB_ETH_TYPE, b"\x08\x00"),
        oxm(Field.OFPXMT_OFB_IPV4_DST, packed, None if mask is None else socket.inet_aton(mask)),
    )


def flow(*fields, command=FlowModCommand.OFPFC_ADD, actions=(), **keys):
    instructions = [InstructionApplyAction(actions=list(actions))] if actions else []
    return FlowMod(
        xid=7,
        command=command,
        match=Match(oxm_match_fields=list(fields)),
        instructions=keys.pop("instructions", instructions),
        flags=keys.pop("flags", 0),
        **keys,
    )


def meter(number=1, command=MeterModCommand.OFPMC_ADD, flags=MeterFlags.OFPMF_PKTPS, rates=(10,)):
    bands = ListOfMeterBandHeader([MeterBandDrop(rate=rate, burst_size=0) for rate in rates])
    return MeterMod(xid=7, command=command, flags=flags, meter_id=number, bands=bands)
