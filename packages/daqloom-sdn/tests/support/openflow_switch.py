"""Test switch for OpenFlow messages of os-ken, with an engine that only counts calls."""

from os_ken.ofproto.ofproto_parser import msg as parse
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from daqloom.softswitch.load import build
from daqloom_sdn.openflow.datapath import Datapath
from daqloom_sdn.openflow.errors import Error
from daqloom_sdn.openflow.session import Session
from support.softswitch.status import NAMES, status

PORTS = len(NAMES)
CONTROLLER = ProtocolDesc(version=4)
MAKE, OF = CONTROLLER.ofproto_parser, CONTROLLER.ofproto


def packed(message) -> bytes:
    """Return the bytes of an os-ken message, with transaction number 7."""
    if isinstance(message, bytes):
        return message
    message.xid = 7
    message.serialize()
    return bytes(message.buf)


def unpacked(data: bytes):
    """Return the os-ken message that `data` encodes."""
    return parse(CONTROLLER, *data[:2], len(data), int.from_bytes(data[4:8]), data)


HELLO = packed(MAKE.OFPHello(CONTROLLER, elements=[]))
FLOWS = packed(MAKE.OFPFlowStatsRequest(CONTROLLER))
"""Request for the statistics of all entries."""


def receive(session: Session, data: bytes) -> None:
    """Process bytes that a controller sent."""
    for _ in session.steps(data):
        pass


class Engine:
    """Stand-in for a running switch whose port b has two rings. It only counts changes."""

    def __init__(self, cores: list[int]) -> None:
        ports = {name: {"device": f"net_null{name}"} for name in NAMES}
        control = {"datapath": 0xABC}
        self.file = build({"ports": ports, "runs": {"cores": cores}, "control": control})
        self.steps = self.turns = 0
        self.refuses = False
        self.packets: dict[int, int] = {}
        self.links_up = [True, True, False]
        self.status = status

    def apply(self, changes):
        self.steps += len(changes)
        self.turns += 1
        return 0 if self.refuses else -1

    def flow_counts(self, indices):
        return [(self.packets.get(index, 0), 64 * self.packets.get(index, 0)) for index in indices]

    def meter_counts(self, indices):
        return [(10, 1000, 3, 300) for _ in indices]

    def links(self):
        return list(self.links_up)

    def ring_of(self, port, queue):
        return 9 + queue if port == 1 and queue in (1, 2) else None


class Switch:
    """Switch with an adjustable clock and a connection to one controller."""

    def __init__(self, *cores: int) -> None:
        self.now_s = 0.0
        self.engine = Engine(list(cores))
        self.datapath = Datapath(self.engine, lambda: self.now_s)
        self.table = self.datapath.table
        self.sent: list[bytes] = []
        self.session = Session(self.datapath, self.sent.append)
        self.receive(HELLO)

    def receive(self, data: bytes) -> None:
        """Process bytes that the controller sent."""
        receive(self.session, data)

    def answers(self, *messages):
        """Return the answers to messages of the controller."""
        self.sent.clear()
        for message in messages:
            self.receive(packed(message))
        return [unpacked(each) for each in self.sent]

    def refusal(self, message) -> Error:
        """Return the error with which the switch answers a message."""
        [answer] = self.answers(message)
        assert answer.msg_type == OF.OFPT_ERROR
        assert answer.xid == 7
        assert answer.data == packed(message)
        return Error((answer.type, answer.code))

    def statistics(self, request):
        """Return the parts of the answers to a multipart request, as one list."""
        parts = []
        for answer in self.answers(request):
            parts += answer.body if isinstance(answer.body, list) else [answer.body]
        return parts


def ip(address="10.0.0.1", mask=None):
    """Return match fields for an IPv4 destination, as os-ken writes them."""
    return ("eth_type", 0x0800), ("ipv4_dst", address if mask is None else (address, mask))


def output(port=2):
    return MAKE.OFPActionOutput(port)


def flow(*fields, actions=(), instructions=None, **keys):
    """Return a flow-mod message, which adds an entry by default."""
    if instructions is None:
        apply = MAKE.OFPInstructionActions(OF.OFPIT_APPLY_ACTIONS, list(actions))
        instructions = [apply] if actions else []
    match = MAKE.OFPMatch(_ordered_fields=list(fields))
    keys = {"out_port": OF.OFPP_ANY, "out_group": OF.OFPG_ANY, "priority": 0} | keys
    return MAKE.OFPFlowMod(CONTROLLER, match=match, instructions=instructions, **keys)


def meter(number=1, command=OF.OFPMC_ADD, flags=OF.OFPMF_PKTPS, rates=(10,)):
    bands = [MAKE.OFPMeterBandDrop(rate=rate, burst_size=0) for rate in rates]
    return MAKE.OFPMeterMod(CONTROLLER, command, flags, number, bands)
