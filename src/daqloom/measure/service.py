"""The run control's gRPC service: who may speak, and what is refused before anybody listens."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from daqloom.measure.connection import (
    CONTROL,
    JOIN,
    STEER,
    TOKEN_KEY,
    UNIT,
    Certificates,
    is_loopback,
    joined,
    keep_alive,
    limits,
    quiet,
)
from daqloom.measure.errors import MeasureError
from daqloom.measure.messages import (
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
from daqloom.measure.refused import Refused
from daqloom.measure.status import Request, read_request

if TYPE_CHECKING:
    import grpc

Orders = asyncio.Queue[Message | None]
"""For one unit's process; None closes the connection."""


class Desk(Protocol):
    """Whom the service serves."""

    def arrive(self, hello: Hello, orders: Orders) -> tuple[int, int] | Refused:
        """A process says hello: its unit and session."""

    def report(self, unit: int, session: int, report: Heartbeat | Answer | Trace) -> Refused | None:
        """A unit speaks."""

    def leave(self, unit: int, session: int) -> None:
        """Its connection has ended."""

    def steer(self, request: Request) -> Message:
        """An operator asks for something."""


class Service:
    """Listens for units, which know `token`, and for operators, who know `steering`, or off
    loopback show the run control's certificate."""

    def __init__(
        self,
        desk: Desk,
        *,
        token: bytes,
        steering: bytes,
        certificates: Certificates | None,
        refused: Counter[str],
    ) -> None:
        self._desk = desk
        self._tokens = {JOIN: token, STEER: steering}
        self._certificates = certificates
        self._refused = refused
        self._server: Any = None

    async def listen(self, host: str, port: int, units: int) -> int:
        """Begins; the port, chosen by the system for 0. Raises MeasureError."""
        quiet()
        import grpc

        if self._certificates is None and not is_loopback(host):
            raise MeasureError(
                f"measure.bind = {host} can be reached from other machines, and there are no "
                "certificates; `daqloom control certificates DIR` makes them, "
                "measure.certificates = DIR uses them"
            )
        self._server = grpc.aio.server(
            options=[
                *limits(),
                *keep_alive(10.0),
                ("grpc.http2.min_ping_interval_without_data_ms", 500),
                ("grpc.http2.max_ping_strikes", 0),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=units + 64,
        )
        self._server.add_generic_rpc_handlers((self._handler(),))
        try:
            address = joined(host, port)
            if self._certificates is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, _server_side(self._certificates))
        except RuntimeError:
            bound = 0
        if bound == 0:
            raise MeasureError(
                f"cannot listen on {host}:{port}; give an address of this machine and a free port"
            )
        await self._server.start()
        return int(bound)

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            await self._server.stop(grace=0)

    def _handler(self) -> grpc.GenericRpcHandler:
        import grpc

        known: dict[str, Any] = {
            JOIN: grpc.stream_stream_rpc_method_handler(self._join),
            STEER: grpc.unary_unary_rpc_method_handler(self._steer),
        }
        refused = self._refused

        class Handler(grpc.GenericRpcHandler):
            def service(self, details: grpc.HandlerCallDetails) -> Any:
                handler = known.get(details.method)
                if handler is None:
                    refused[Refused.METHOD] += 1
                return handler

        return Handler()

    async def _join(self, requests: Any, context: Any) -> None:
        """Until the unit or the run control closes the connection."""
        await self._admit(JOIN, context)
        orders: Orders = asyncio.Queue()
        visit = _Visit()
        reader = asyncio.create_task(self._listen(requests, context, orders, visit))
        writer = asyncio.create_task(_write(orders, context))
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
        finally:
            reader.cancel()
            writer.cancel()
            if visit.session:
                self._desk.leave(visit.unit, visit.session)

    async def _listen(self, requests: Any, context: Any, orders: Orders, visit: _Visit) -> None:
        async for body in requests:
            report = await self._read(body, context)
            if (visit.session == 0) != isinstance(report, Hello):
                await self._refuse(Refused.MALFORMED, "the first report is a hello", context)
            elif isinstance(report, Hello):
                found = self._desk.arrive(report, orders)
                if isinstance(found, Refused):
                    await self._refuse(found, _SENTENCES[found], context)
                else:
                    visit.unit, visit.session = found
            elif refusal := self._desk.report(visit.unit, visit.session, report):
                self._refused[refusal] += 1

    async def _steer(self, body: bytes, context: Any) -> bytes:
        await self._admit(STEER, context)
        try:
            request = read_request(body)
        except MalformedError as error:
            await self._refuse(Refused.MALFORMED, str(error), context)
        return self._desk.steer(request).encode()

    async def _read(self, body: bytes, context: Any) -> AnyReport:
        try:
            return read_report(body)
        except OversizedError as error:
            await self._refuse(Refused.OVERSIZED, str(error), context)
        except MalformedError as error:
            await self._refuse(Refused.MALFORMED, str(error), context)

    async def _admit(self, method: str, context: Any) -> None:
        """Aborts the call of who may not make it."""
        if self._certificates is not None:
            names = {
                name.decode(errors="replace")
                for name in context.auth_context().get("x509_common_name", ())
            }
            if not names & ({CONTROL} if method == STEER else {CONTROL, UNIT}):
                await self._refuse(Refused.TOKEN, "this certificate does not allow it", context)
            if method == STEER:
                return
        given = dict(context.invocation_metadata() or ()).get(TOKEN_KEY, "")
        expected = self._tokens[method].hex()
        if not hmac.compare_digest(str(given).encode(), expected.encode()):
            await self._refuse(Refused.TOKEN, "the token is not that of this run", context)

    async def _refuse(self, why: Refused, sentence: str, context: Any) -> NoReturn:
        import grpc

        self._refused[why] += 1
        code = grpc.StatusCode
        await context.abort(
            {Refused.TOKEN: code.UNAUTHENTICATED, Refused.OCCUPIED: code.ALREADY_EXISTS}.get(
                why, code.INVALID_ARGUMENT
            ),
            sentence[:500],
        )
        raise AssertionError("an aborted call goes on")


_SENTENCES = {
    Refused.UNKNOWN_UNIT: "the run has no such unit, or no unit that lacks a process",
    Refused.OCCUPIED: "the unit has a process already",
}


@dataclass
class _Visit:
    """Whose connection it is; none yet: session 0."""

    unit: int = 0
    session: int = 0


async def _write(orders: Orders, context: Any) -> None:
    while (order := await orders.get()) is not None:
        await context.write(order.encode())


def _server_side(certificates: Certificates) -> Any:
    import grpc

    return grpc.ssl_server_credentials(
        [(certificates.key, certificates.certificate)],
        root_certificates=certificates.authority,
        require_client_auth=True,
    )
