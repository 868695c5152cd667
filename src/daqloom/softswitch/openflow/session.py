"""The conversation with one controller, sans I/O: bytes in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyof.foundation.basic_types import BinaryData, UBInt16
from pyof.foundation.exceptions import UnpackException
from pyof.v0x04.asynchronous.error_msg import (
    BadRequestCode,
    ErrorMsg,
    GroupModFailedCode,
    HelloFailedCode,
    PortModFailedCode,
    RoleRequestFailedCode,
    SwitchConfigFailedCode,
    TableModFailedCode,
)
from pyof.v0x04.common.header import Header, Type
from pyof.v0x04.common.utils import unpack_message
from pyof.v0x04.controller2switch.barrier_reply import BarrierReply
from pyof.v0x04.controller2switch.common import ControllerRole, MultipartType
from pyof.v0x04.controller2switch.features_reply import Capabilities, FeaturesReply
from pyof.v0x04.controller2switch.get_config_reply import GetConfigReply
from pyof.v0x04.controller2switch.multipart_reply import MultipartReply, MultipartReplyFlags
from pyof.v0x04.controller2switch.multipart_request import MeterMultipartRequest
from pyof.v0x04.controller2switch.role_reply import RoleReply
from pyof.v0x04.symmetric.echo_reply import EchoReply
from pyof.v0x04.symmetric.echo_request import EchoRequest
from pyof.v0x04.symmetric.hello import Hello, HelloElemType

from daqloom.softswitch.openflow.datapath import Datapath
from daqloom.softswitch.openflow.refused import RefusedError
from daqloom.softswitch.openflow.table import BATCH

VERSION = 4
"""Of OpenFlow 1.3 on the wire."""
HEADER_BYTES = 8
MULTIPART_BYTES = 16
ERROR_BYTES = 1024
"""Of the request that an error shows."""
LARGEST_BODY_BYTES = 60_000
_REFUSED_TYPES = {
    Type.OFPT_GROUP_MOD: GroupModFailedCode.OFPGMFC_OUT_OF_GROUPS,
    Type.OFPT_PORT_MOD: PortModFailedCode.OFPPMFC_EPERM,
    Type.OFPT_TABLE_MOD: TableModFailedCode.OFPTMFC_EPERM,
    Type.OFPT_EXPERIMENTER: BadRequestCode.OFPBRC_BAD_EXPERIMENTER,
}
_WITHOUT_BODY = (
    Type.OFPT_ECHO_REQUEST,
    Type.OFPT_ECHO_REPLY,
    Type.OFPT_FEATURES_REQUEST,
    Type.OFPT_GET_CONFIG_REQUEST,
    Type.OFPT_BARRIER_REQUEST,
)
_WITH_BODY = (
    MultipartType.OFPMP_FLOW,
    MultipartType.OFPMP_AGGREGATE,
    MultipartType.OFPMP_PORT_STATS,
    MultipartType.OFPMP_QUEUE,
    MultipartType.OFPMP_METER,
    MultipartType.OFPMP_METER_CONFIG,
)
_CHANGES = (Type.OFPT_FLOW_MOD, Type.OFPT_METER_MOD)


class HungUpError(Exception):
    """This conversation is over."""


class Session:
    """A conversation. `write`: takes what is to be sent."""

    def __init__(self, datapath: Datapath, write: Callable[[bytes], object]) -> None:
        self.role = ControllerRole.OFPCR_ROLE_EQUAL
        self._datapath, self._write = datapath, write
        self.is_greeted = False
        self.has_asked = False
        """Whether it has sent anything but greetings and echoes."""
        self._received = b""
        self._miss_send_len = 128
        self._next_xid = 0
        datapath.sessions.append(self)
        self.send(Hello())

    def close(self) -> None:
        """End it."""
        if self in self._datapath.sessions:
            self._datapath.sessions.remove(self)

    def receive(self, data: bytes) -> None:
        """Take what came, in pieces of any size. Raises HungUpError."""
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[None]:
        """Take what came, in pieces of any size, and answer it step by step, so that others may
        come between. Raises HungUpError."""
        self._received += data
        for number, message in enumerate(self._messages(), 1):
            yield from self._answer(message)
            if number % BATCH == 0:
                self._datapath.table.settle()
            yield
        self._datapath.table.settle()

    def ask_for_echo(self) -> None:
        """Find out whether the controller is there."""
        self.send(EchoRequest())

    def send(self, message: Any, xid: int | None = None) -> None:
        """Send a message, the answer to that of `xid`, or to none."""
        if xid is None:
            self.tell(message.pack())
        else:
            message.header.xid = xid
            self._write(message.pack())

    def tell(self, packed: bytes) -> None:
        """Send a message, packed, that answers none."""
        self._next_xid = (self._next_xid + 1) % 2**32
        self._write(packed[:4] + self._next_xid.to_bytes(4) + packed[8:])

    def _messages(self) -> Iterator[bytes]:
        """Yield whole messages."""
        begin = 0
        try:
            while len(self._received) - begin >= HEADER_BYTES:
                size = int.from_bytes(self._received[begin + 2 : begin + 4])
                if size < HEADER_BYTES:
                    raise HungUpError
                if len(self._received) - begin < size:
                    break
                message = self._received[begin : begin + size]
                begin += size
                yield message
        finally:
            self._received = self._received[begin:]

    def _answer(self, message: bytes) -> Iterator[None]:
        version, kind, xid = message[0], message[1], int.from_bytes(message[4:8])
        try:
            if kind == Type.OFPT_HELLO:
                self._greet(version, message)
            elif not self.is_greeted:
                raise HungUpError
            elif version != VERSION:
                raise RefusedError(BadRequestCode.OFPBRC_BAD_VERSION)
            else:
                yield from self._do(kind, xid, message)
        except RefusedError as refused:
            self._refuse(refused, xid, message)
            if isinstance(refused.code, HelloFailedCode):
                raise HungUpError from None

    def _refuse(self, refused: RefusedError, xid: int, message: bytes) -> None:
        error = ErrorMsg(error_type=refused.type, code=refused.code, data=message[:ERROR_BYTES])
        self.send(error, xid)

    def _greet(self, version: int, message: bytes) -> None:
        """Accept who speaks 1.3, too: what a Hello says of versions is a bitmap, without which all
        up to its own are meant (7.5.1)."""
        versions = _versions_of(message)
        if version < VERSION or (versions is not None and not versions >> VERSION & 1):
            raise RefusedError(HelloFailedCode.OFPHFC_INCOMPATIBLE)
        self.is_greeted = True

    def _do(self, kind: int, xid: int, data: bytes) -> Iterator[None]:
        self.has_asked |= kind not in (Type.OFPT_ECHO_REQUEST, Type.OFPT_ECHO_REPLY)
        if kind in _REFUSED_TYPES:
            raise RefusedError(_REFUSED_TYPES[Type(kind)])
        message = _unpacked(data)
        table = self._datapath.table
        if kind in _CHANGES and self.role == ControllerRole.OFPCR_ROLE_SLAVE:
            raise RefusedError(BadRequestCode.OFPBRC_IS_SLAVE)
        match kind:
            case Type.OFPT_ECHO_REQUEST:
                self.send(EchoReply(data=message.data), xid)
            case Type.OFPT_ECHO_REPLY | Type.OFPT_ERROR:
                pass
            case Type.OFPT_FEATURES_REQUEST:
                self.send(self._features(), xid)
            case Type.OFPT_GET_CONFIG_REQUEST:
                self.send(GetConfigReply(flags=0, miss_send_len=self._miss_send_len), xid)
            case Type.OFPT_SET_CONFIG:
                if message.flags.value != 0:  # fragments are treated as all else
                    raise RefusedError(SwitchConfigFailedCode.OFPSCFC_BAD_FLAGS)
                self._miss_send_len = message.miss_send_len.value
            case Type.OFPT_BARRIER_REQUEST:
                table.settle()
                self.send(BarrierReply(), xid)  # all that came before has been done
            case Type.OFPT_ROLE_REQUEST:
                self._take_role(message)
                reply = RoleReply(role=self.role, generation_id=self._datapath.generation or 0)
                self.send(reply, xid)
            case Type.OFPT_FLOW_MOD:

                def refuse(refused: RefusedError) -> None:
                    self._refuse(refused, xid, data)

                yield from self._datapath.notify_removed(table.modify(message, refuse))
            case Type.OFPT_METER_MOD:
                yield from self._datapath.notify_removed(table.modify_meter(message))
            case Type.OFPT_MULTIPART_REQUEST:
                yield from self._send_parts(message, xid)
            case _:
                raise RefusedError(BadRequestCode.OFPBRC_BAD_TYPE)

    def _features(self) -> FeaturesReply:
        number = f"{self._datapath.number:016x}"
        return FeaturesReply(
            datapath_id=":".join(number[at : at + 2] for at in range(0, 16, 2)),
            n_buffers=0,
            n_tables=1,
            auxiliary_id=0,
            capabilities=Capabilities.OFPC_FLOW_STATS
            | Capabilities.OFPC_TABLE_STATS
            | Capabilities.OFPC_PORT_STATS
            | Capabilities.OFPC_QUEUE_STATS,
            reserved=0,
        )

    def _take_role(self, message: Any) -> None:
        """As 6.3.6 says: a new master makes slaves of others, and an old one is refused."""
        role = message.role.value
        if role == ControllerRole.OFPCR_ROLE_NOCHANGE:
            return
        if role != ControllerRole.OFPCR_ROLE_EQUAL:
            newest, given = self._datapath.generation, message.generation_id.value
            if newest is not None and (given - newest) % 2**64 >= 2**63:
                raise RefusedError(RoleRequestFailedCode.OFPRRFC_STALE)
            self._datapath.generation = given
        if role == ControllerRole.OFPCR_ROLE_MASTER:
            for other in self._datapath.sessions:
                if other.role == ControllerRole.OFPCR_ROLE_MASTER:
                    other.role = ControllerRole.OFPCR_ROLE_SLAVE
        self.role = ControllerRole(role)

    def _send_parts(self, request: Any, xid: int) -> Iterator[None]:
        """Send an answer in as many messages as it takes, part by part."""
        if request.flags.value != 0:  # of no request of this switch are there several parts
            raise RefusedError(BadRequestCode.OFPBRC_MULTIPART_BUFFER_OVERFLOW)
        body = b""
        for part in self._datapath.statistics.of(request):
            if len(body) + len(part) > LARGEST_BODY_BYTES:
                self._send_body(request, xid, body, MultipartReplyFlags.OFPMPF_REPLY_MORE.value)
                body = b""
            body += part
            yield
        self._send_body(request, xid, body, 0)

    def _send_body(self, request: Any, xid: int, body: bytes, flags: int) -> None:
        kind = request.multipart_type
        self.send(MultipartReply(multipart_type=kind, flags=flags, body=BinaryData(body)), xid)


def _versions_of(hello: bytes) -> int | None:
    """Return the versions up to 31 that a Hello says, as bits; None: it says none."""
    message = Hello()
    try:
        message.unpack(hello[HEADER_BYTES:])
    except UnpackException:
        return None
    for element in message.elements:
        if element.element_type == HelloElemType.OFPHET_VERSIONBITMAP:
            return int.from_bytes(element.content.pack()[:4])
    return None


def _unpacked(data: bytes) -> Any:
    """Return a message. Raises RefusedError: it is none, or none that a switch gets."""
    header = Header()
    try:
        header.unpack(data[:HEADER_BYTES])
    except UnpackException:
        raise RefusedError(BadRequestCode.OFPBRC_BAD_TYPE) from None
    if header.message_type == Type.OFPT_MULTIPART_REQUEST and not _is_known(data):
        raise RefusedError(BadRequestCode.OFPBRC_BAD_MULTIPART)
    try:
        message = unpack_message(data)
        if (
            getattr(message, "multipart_type", None) == MultipartType.OFPMP_METER_CONFIG
        ):  # which the library leaves packed
            packed, message.body = message.body, MeterMultipartRequest()
            message.body.unpack(packed.value)
    except Exception:  # the library raises whatever comes of what it did not expect
        raise RefusedError(BadRequestCode.OFPBRC_BAD_LEN) from None
    if len(data) < _least_bytes(message):  # where nothing is left the library leaves numbers out
        raise RefusedError(BadRequestCode.OFPBRC_BAD_LEN)
    return message


def _least_bytes(message: Any) -> int:
    kind = message.header.message_type
    if kind == Type.OFPT_MULTIPART_REQUEST:
        return MULTIPART_BYTES + (1 if message.multipart_type in _WITH_BODY else 0)
    return HEADER_BYTES + (0 if kind in _WITHOUT_BODY else 1)


def _is_known(request: bytes) -> bool:
    """Return whether there is such a kind of multipart request."""
    kind = UBInt16(enum_ref=MultipartType)
    try:
        kind.unpack(request, HEADER_BYTES)
    except UnpackException:
        return False
    return True
