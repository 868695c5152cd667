"""gRPC service of a run control or a switch: calls are refused before their messages are read."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import Any, NoReturn, Protocol

import grpc

from daqloom.base.version import installed_version
from daqloom.control.calls.admission import Greetings
from daqloom.control.calls.connection import (
    CONTROL,
    GREET,
    JOIN,
    LIMITS,
    STEER,
    UNIT,
    Certificates,
    keep_alive,
)
from daqloom.control.protocol.messages import (
    Answer,
    AnyReport,
    Heartbeat,
    Hello,
    MalformedError,
    Message,
    OversizedError,
    Trace,
    read_report,
)
from daqloom.control.protocol.states import Refusal, ReportRefusal
from daqloom.machine.addresses import is_loopback, join_address
from daqloom.results.errors import MeasureError

FIRST_MESSAGE_S = 5.0
"""Time limit for the first message of an admitted call, and for a connection's HTTP/2 (s)."""
MOST_SILENT = 32
"""Admitted calls of a kind without a message, beyond which the oldest is refused."""
CALLS_OF_A_CONNECTION = 16

Orders = asyncio.Queue[Message | None]
"""Orders for one unit's process; None closes the connection."""


class Steerable(Protocol):
    """Target of operators' requests."""

    def steer(self, body: bytes) -> bytes:
        """Answer a request of an operator. Raises MalformedError."""


class Reception(Steerable, Protocol):
    """Run control behind the service."""

    def arrive(self, hello: Hello, orders: Orders) -> tuple[int, int] | Refusal:
        """Admit a process that joins; return its unit and session."""

    def report(
        self, unit: int, session: int, report: Heartbeat | Answer | Trace
    ) -> ReportRefusal | None:
        """Process a report of a unit."""

    def leave(self, unit: int, session: int) -> None:
        """Process the end of a unit's connection."""


class Service:
    """Listener for operators, with the secret `steering` or, off loopback, the run control's
    certificate, and at a run control for units, with the secret `token`.

    Other calls are refused before any message is read. Admitted calls are bounded: a silent one is
    refused soon, and a unit has one process."""

    def __init__(
        self,
        steered: Steerable,
        *,
        steering: bytes,
        certificates: Certificates | None,
        refused: Counter[str],
        reception: Reception | None = None,
        token: bytes = b"",
    ) -> None:
        self._steered, self._reception = steered, reception
        self._greetings = Greetings({STEER: steering} | ({JOIN: token} if reception else {}))
        self._silent: dict[str, deque[asyncio.Timeout]] = {JOIN: deque(), STEER: deque()}
        self._certificates = certificates
        self._refused = refused
        self._server: Any = None

    async def listen(
        self,
        host: str,
        port: int,
        socket: str = "",
        *,
        keys: tuple[str, str] = ("measure.bind", "measure.certificates"),
    ) -> int:
        """Listen, also at a `socket` of this machine, if given; return the port, which the system
        chooses for 0. Raises MeasureError with the `keys` of the address and the certificates."""
        if self._certificates is None and not is_loopback(host):
            raise MeasureError(
                f"{keys[0]} = {host} is reachable from other machines, and there are no "
                "certificates; `daqloom control certificates DIR` makes them, "
                f"{keys[1]} = DIR uses them"
            )
        self._server = grpc.aio.server(
            options=[
                *LIMITS,
                *keep_alive(10.0),
                ("grpc.http2.min_ping_interval_without_data_ms", 500),
                ("grpc.http2.max_ping_strikes", 0),
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", CALLS_OF_A_CONNECTION),
                ("grpc.server_handshake_timeout_ms", round(1000 * FIRST_MESSAGE_S)),
                ("grpc.max_connection_idle_ms", round(1000 * FIRST_MESSAGE_S)),
            ]
        )
        self._server.add_generic_rpc_handlers((self._handler(),))
        try:
            address = join_address(host, port)
            if self._certificates is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, _server_side(self._certificates))
            if socket:
                self._server.add_insecure_port(socket)
        except RuntimeError:
            bound = 0
        if bound == 0:
            raise MeasureError(
                f"cannot listen on {host}:{port}; give an address of this machine and a free port"
            )
        await self._server.start()
        return int(bound)

    async def close(self, grace_s: float = 0) -> None:
        """End all connections, those with calls under way after `grace_s` at the latest."""
        if self._server is not None:
            await self._server.stop(grace=grace_s)

    def _handler(self) -> grpc.GenericRpcHandler:
        known: dict[str, Any] = {
            # A handler of a unary call would run only after the whole message.
            GREET: grpc.stream_unary_rpc_method_handler(self._greet),
            STEER: grpc.stream_unary_rpc_method_handler(self._steer),
        }
        if self._reception is not None:
            known[JOIN] = grpc.stream_stream_rpc_method_handler(self._join)
        refused = self._refused

        class Handler(grpc.GenericRpcHandler):
            def service(self, details: grpc.HandlerCallDetails) -> Any:
                handler = known.get(details.method)
                if handler is None:
                    refused[Refusal.METHOD] += 1
                return handler

        return Handler()

    async def _greet(self, _: Any, context: Any) -> bytes:
        """Answer a greeting in the metadata."""
        answer = self._greetings.greet(context.invocation_metadata())
        if answer is None:
            await self._refuse(
                Refusal.MALFORMED, "the metadata has no greeting of a unit or an operator", context
            )
        return answer

    async def _join(self, requests: Any, context: Any) -> None:
        """Serve a unit until it or the run control closes the connection."""
        await self._admit(JOIN, context)
        hello = await self._read(await self._first_message(JOIN, context), context)
        if not isinstance(hello, Hello):
            await self._refuse(Refusal.MALFORMED, "the first report has to be a hello", context)
        orders: Orders = asyncio.Queue()
        assert self._reception is not None
        found = self._reception.arrive(hello, orders)
        if isinstance(found, Refusal):
            await self._refuse(found, _SENTENCES[found], context)
        unit, session = found
        reader = asyncio.create_task(self._listen(requests, context, unit, session))
        writer = asyncio.create_task(_write(orders, context))
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
        finally:
            reader.cancel()
            writer.cancel()
            self._reception.leave(unit, session)

    async def _listen(self, requests: Any, context: Any, unit: int, session: int) -> None:
        assert self._reception is not None
        async for body in requests:
            report = await self._read(body, context)
            if isinstance(report, Hello):
                await self._refuse(
                    Refusal.MALFORMED, "only the first report may be a hello", context
                )
            elif refusal := self._reception.report(unit, session, report):
                self._refused[refusal] += 1

    async def _steer(self, _: Any, context: Any) -> bytes:
        await self._admit(STEER, context)
        body = await self._first_message(STEER, context)
        try:
            return self._steered.steer(body)
        except MalformedError as error:
            await self._refuse(Refusal.MALFORMED, str(error), context)

    async def _first_message(self, method: str, context: Any) -> bytes:
        """Return the first message of an admitted call; empty if it ends without one."""
        silent, loop = self._silent[method], asyncio.get_running_loop()
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S) as timeout:
                silent.append(timeout)
                if len(silent) > MOST_SILENT and not (oldest := silent.popleft()).expired():
                    oldest.reschedule(loop.time())
                body = await context.read()
        except TimeoutError:
            await self._refuse(Refusal.SILENT, "no message arrived in time", context)
        finally:
            with suppress(ValueError):
                silent.remove(timeout)
        return body if isinstance(body, bytes) else b""

    async def _read(self, body: bytes, context: Any) -> AnyReport:
        try:
            return read_report(body)
        except OversizedError as error:
            await self._refuse(Refusal.OVERSIZED, str(error), context)
        except MalformedError as error:
            await self._refuse(Refusal.MALFORMED, str(error), context)

    async def _admit(self, method: str, context: Any) -> None:
        """Abort a call that is not allowed."""
        if self._certificates is not None:
            names = {
                name.decode(errors="replace")
                for name in context.auth_context().get("x509_common_name", ())
            }
            if not names & ({CONTROL} if method == STEER else {CONTROL, UNIT}):
                await self._refuse(Refusal.TOKEN, "this certificate forbids the call", context)
            if method == STEER:
                return
        if not self._greetings.admits(method, context.invocation_metadata()):
            await self._refuse(Refusal.TOKEN, "the token is not the one of this run", context)

    async def _refuse(self, why: Refusal, sentence: str, context: Any) -> NoReturn:
        self._refused[why] += 1
        code = grpc.StatusCode
        await context.abort(
            {
                Refusal.TOKEN: code.UNAUTHENTICATED,
                Refusal.OCCUPIED: code.ALREADY_EXISTS,
                Refusal.SILENT: code.DEADLINE_EXCEEDED,
            }.get(why, code.INVALID_ARGUMENT),
            sentence[:500],
        )
        raise AssertionError("an aborted call goes on")


_SENTENCES = {
    Refusal.UNKNOWN_UNIT: "the run has no such unit, or all of its units have a process",
    Refusal.OCCUPIED: "the unit already has a process",
    Refusal.VERSION: "the unit has another version of daqloom than the run control, which has "
    f"{installed_version()}; install the same version on all machines",
}


async def _write(orders: Orders, context: Any) -> None:
    while (order := await orders.get()) is not None:
        await context.write(order.encode())


def _server_side(certificates: Certificates) -> Any:
    return grpc.ssl_server_credentials(
        [(certificates.key, certificates.certificate)],
        root_certificates=certificates.authority,
        require_client_auth=True,
    )
