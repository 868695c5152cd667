"""Protocol session with one controller, without I/O: bytes in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.datapath import Datapath
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.messages import VERSION, Capability, Role
from daqloom_sdn.openflow.table import BATCH

HEADER_BYTES = 8
ERROR_BYTES = 1024
"""Limit on the part of a request that an error message contains (B)."""
LARGEST_BODY_BYTES = 60_000


class HungUpError(Exception):
    """Raised to end the connection."""


class Session:
    """Protocol session with one controller. `write`: function that sends bytes."""

    def __init__(self, datapath: Datapath, write: Callable[[bytes], object]) -> None:
        self.role = Role.EQUAL
        self._datapath, self._write = datapath, write
        self.is_greeted = False
        self.has_requested = False
        """Whether the controller has sent any message except hellos and echoes."""
        self._received = b""
        self._miss_send_len = 128
        self._next_xid = 0
        datapath.sessions.append(self)
        self.notify(messages.HELLO())

    def close(self) -> None:
        """Remove this session from the switch's controllers."""
        if self in self._datapath.sessions:
            self._datapath.sessions.remove(self)

    def steps(self, data: bytes) -> Iterator[None]:
        """Answer received bytes, in pieces of any size. Other work may run between two steps of the
        iterator. Raises HungUpError."""
        self._received += data
        for number, message in enumerate(self._messages(), 1):
            yield from self._answer(message)
            if number % BATCH == 0:
                self._datapath.table.settle()
            yield
        self._datapath.table.settle()

    def request_echo(self) -> None:
        """Send an echo request, which the controller must answer."""
        self.notify(messages.ECHO_REQUEST())

    def notify(self, message: Record) -> None:
        """Send a message that is not an answer to a request."""
        self._next_xid = (self._next_xid + 1) % 2**32
        self._send(message, self._next_xid)

    def _send(self, message: Record, xid: int) -> None:
        message.xid = xid
        self._write(message.layout.write(message))

    def _messages(self) -> Iterator[bytes]:
        """Yield complete messages from the received bytes."""
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
            if kind == messages.HELLO.type:
                self._greet(version, message)
            elif not self.is_greeted:
                raise HungUpError
            elif version != VERSION:
                raise RefusedError(Error.OFPBRC_BAD_VERSION)
            else:
                yield from self._do(kind, xid, message)
        except RefusedError as refused:
            self._refuse(refused, xid, message)
            if refused.error == Error.OFPHFC_INCOMPATIBLE:
                raise HungUpError from None

    def _refuse(self, refused: RefusedError, xid: int, message: bytes) -> None:
        kind, code = refused.error.value
        self._send(messages.ERROR(error_type=kind, code=code, data=message[:ERROR_BYTES]), xid)

    def _greet(self, version: int, message: bytes) -> None:
        """Accept a controller that supports version 1.3, by the bitmap in its hello, or without a
        bitmap by its highest version (7.5.1). Raises RefusedError."""
        versions = _versions_of(message)
        if version < VERSION or (versions is not None and not versions >> VERSION & 1):
            raise RefusedError(Error.OFPHFC_INCOMPATIBLE)
        self.is_greeted = True

    def _do(self, kind: int, xid: int, data: bytes) -> Iterator[None]:
        layout = messages.REQUESTS.get(kind, Error.OFPBRC_BAD_TYPE)
        self.has_requested |= layout not in (messages.ECHO_REQUEST, messages.ECHO_REPLY)
        if isinstance(layout, Error):
            raise RefusedError(layout)
        message = layout.decode(data)
        table, changes = self._datapath.table, (messages.FLOW_MOD, messages.METER_MOD)
        if layout in changes and self.role == Role.SLAVE:
            raise RefusedError(Error.OFPBRC_IS_SLAVE)
        match layout:
            case messages.ECHO_REQUEST:
                self._send(messages.ECHO_REPLY(data=message.data), xid)
            case messages.FEATURES_REQUEST:
                self._send(self._features(), xid)
            case messages.GET_CONFIG_REQUEST:
                self._send(messages.GET_CONFIG_REPLY(miss_send_len=self._miss_send_len), xid)
            case messages.SET_CONFIG:
                if message.flags != 0:  # fragments are treated as all else
                    raise RefusedError(Error.OFPSCFC_BAD_FLAGS)
                self._miss_send_len = message.miss_send_len
            case messages.BARRIER_REQUEST:
                table.settle()
                self._send(messages.BARRIER_REPLY(), xid)  # all that came before has been done
            case messages.ROLE_REQUEST:
                self._take_role(message)
                generation = self._datapath.generation or 0
                self._send(messages.ROLE_REPLY(role=self.role, generation_id=generation), xid)
            case messages.FLOW_MOD:

                def refuse(refused: RefusedError) -> None:
                    self._refuse(refused, xid, data)

                yield from self._datapath.notify_removed(table.modify(message, refuse))
            case messages.METER_MOD:
                yield from self._datapath.notify_removed(table.modify_meter(message))
            case messages.MULTIPART_REQUEST:
                yield from self._send_parts(message, xid)

    def _features(self) -> Record:
        return messages.FEATURES_REPLY(
            datapath_id=self._datapath.number, capabilities=sum(Capability)
        )

    def _take_role(self, message: Record) -> None:
        """Change the role. A new master turns other masters into slaves; an outdated master is
        refused (6.3.6)."""
        if message.role == Role.NOCHANGE:
            return
        if message.role not in set(Role):
            raise RefusedError(Error.OFPRRFC_BAD_ROLE)
        if message.role != Role.EQUAL:
            newest, given = self._datapath.generation, message.generation_id
            if newest is not None and (given - newest) % 2**64 >= 2**63:
                raise RefusedError(Error.OFPRRFC_STALE)
            self._datapath.generation = given
        if message.role == Role.MASTER:
            for other in self._datapath.sessions:
                if other.role == Role.MASTER:
                    other.role = Role.SLAVE
        self.role = Role(message.role)

    def _send_parts(self, request: Record, xid: int) -> Iterator[None]:
        """Send an answer in as many messages as necessary, part by part."""
        if request.flags != 0:  # no request of this switch has several parts
            raise RefusedError(Error.OFPBRC_MULTIPART_BUFFER_OVERFLOW)
        kind, body = request.multipart_type, b""
        for part in self._datapath.statistics.parts(kind, request.body):
            if len(body) + len(part) > LARGEST_BODY_BYTES:
                self._send(messages.MULTIPART_REPLY(multipart_type=kind, flags=1, body=body), xid)
                body = b""
            body += part
            yield
        self._send(messages.MULTIPART_REPLY(multipart_type=kind, body=body), xid)


def _versions_of(hello: bytes) -> int | None:
    """Return the versions up to 31 in a hello, as bits; None if the hello has no list."""
    try:
        elements = messages.HELLO.decode(hello).elements
    except RefusedError:
        return None
    bitmaps = [each.data for each in elements if each.type == messages.VERSION_BITMAP]
    return int.from_bytes(bitmaps[0][:4]) if bitmaps else None
