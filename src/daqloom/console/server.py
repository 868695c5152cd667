"""Server of the console: its pages, the feed of a run, its commands, and tasks in child
processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import uvicorn
from pydantic import Field, TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from daqloom.console.feed import Feed
from daqloom.console.guard import LARGEST_BODY_BYTES, PEER, ROLE, Guard, Role
from daqloom.control.protocol.messages import MalformedError, Message, read
from daqloom.control.status import Request, Status, read_request
from daqloom.results.errors import MeasureError
from daqloom.softswitch.status import SwitchStatus
from daqloom.tasks.children import Children, TaskError

STATIC = Path(__file__).parent / "static"
PROGRAM = "daqloom.console.task"
MOST_ANSWER_BYTES = 16 << 20
FOR_OPERATORS = ("simulate",)
"""Tasks that take much time of the processor."""
MOST_CONNECTIONS = 256


TaskName = Literal[
    "scenarios", "explain", "validate", "analyse", "simulate",
    "show", "topology", "list_studies", "study",
]  # fmt: skip
Item = Annotated[str, Field(max_length=512 << 10)] | bool
Argument = Item | Annotated[list[Item], Field(max_length=100)]


class Task(Message):
    """Request for a task of `PROGRAM`."""

    task: TaskName
    arguments: Annotated[dict[str, Argument], Field(max_length=8)]


_TASK = TypeAdapter(Task)


@dataclass(frozen=True)
class Sources:
    """Sources of the console's data. `steer` sends a request to the run control."""

    steer: Callable[[Request], Status]
    switch: Callable[[], SwitchStatus] | None = None
    folder: Path | None = None
    """Folder whose files tasks may read."""
    cpu_s: int = 60
    """CPU time of a task (s)."""


class Console:
    """Handlers of the console's requests."""

    def __init__(self, sources: Sources) -> None:
        self._steer = sources.steer
        self.feed = Feed(lambda: sources.steer(Request(command="status")), sources.switch)
        folder = sources.folder.absolute() if sources.folder else None
        settings = (PROGRAM, folder, sources.cpu_s, MOST_ANSWER_BYTES)
        self._quick = Children(*settings, keeps=True)
        self._long = Children(*settings)

    def application(self) -> Starlette:
        """Return the application without its guard."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            await self._quick.close()

        routes = [
            Route("/", lambda _: FileResponse(STATIC / "index.html")),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/session", lambda each: JSONResponse({"role": each.scope[ROLE]})),
            Route("/api/run", self._frames),
            Route("/api/run", self._command, methods=["POST"]),
            Route("/api/task", self._task, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    async def _frames(self, _: HttpRequest) -> Response:
        if self.feed.is_full:
            return JSONResponse({"failure": "too many viewers; close another page"}, 503)

        async def events() -> AsyncIterator[str]:
            async for frame in self.feed.frames():
                yield f"data: {frame}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _command(self, request: HttpRequest) -> Response:
        try:
            command = read_request(await request.body())
        except MalformedError:
            return JSONResponse({"failure": "this is no request of an operator"}, 400)
        try:
            status = await asyncio.to_thread(self._steer, command)
        except MeasureError as error:
            return JSONResponse({"failure": str(error)}, 409)
        if status.refusal:
            return JSONResponse({"failure": status.refusal}, 409)
        return JSONResponse({"phase": status.phase, "goal": status.goal})

    async def _task(self, request: HttpRequest) -> Response:
        """Answer with one JSON object a line: `progress`, and at the end `answer` or `failure`."""
        try:
            task = read(_TASK, await request.body(), LARGEST_BODY_BYTES)
        except MalformedError:
            return JSONResponse({"failure": "this is no task of the console"}, 400)
        if task.task in FOR_OPERATORS and request.scope[ROLE] != "operate":
            return JSONResponse({"failure": f"the role `view` may not {task.task}"}, 403)
        records = self._records(task.task, task.arguments)
        return StreamingResponse(records, media_type="application/x-ndjson")

    async def _records(self, name: str, arguments: dict[str, Any]) -> AsyncIterator[str]:
        records: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        children = self._long if name in FOR_OPERATORS else self._quick

        async def on_progress(share: float) -> None:
            await records.put({"progress": share})

        running = asyncio.create_task(children.run(name, arguments, on_progress))
        running.add_done_callback(lambda _: records.put_nowait(None))
        try:
            while record := await records.get():
                yield json.dumps(record) + "\n"
            yield json.dumps({"answer": await running}) + "\n"
        except TaskError as error:
            yield json.dumps({"failure": str(error)}) + "\n"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@dataclass(frozen=True)
class Listener:
    """Address, names and secrets of the server."""

    host: str
    port: int
    tokens: dict[Role, str]
    names: tuple[str, ...] = ()
    """Further names under which browsers reach the server."""
    tls: Path | None = None
    """Folder of `daqloom control certificates`."""

    @property
    def hosts(self) -> frozenset[str]:
        """Values of the header Host that the server accepts."""
        own = ("localhost",) if self.host in ("127.0.0.1", "::1") else ()
        names = (f"[{self.host}]" if ":" in self.host else self.host, *own, *self.names)
        return frozenset(f"{name}:{self.port}" for name in names) | {*self.names}


class _Protocol(H11Protocol):
    """Protocol that puts the client's certificate into the scope of its requests."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer, app = transport.get_extra_info("peercert"), self.app

        async def with_peer(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, PEER: peer}, receive, send)

        self.app = with_peer


def server(sources: Sources, listener: Listener) -> uvicorn.Server:
    """Return the server; its `run` serves until Ctrl-C."""
    app = Guard(
        Console(sources).application(), listener.hosts, listener.tokens, tls=bool(listener.tls)
    )
    secured: dict[str, Any] = {}
    if listener.tls:
        secured = {
            "ssl_certfile": listener.tls / "control.pem",
            "ssl_keyfile": listener.tls / "control.key",
            "ssl_ca_certs": str(listener.tls / "ca.pem"),
            "ssl_cert_reqs": 1,  # ssl.CERT_OPTIONAL: others log in with a token
        }
    config = uvicorn.Config(
        app,
        host=listener.host,
        port=listener.port,
        http=_Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=2,
        server_header=False,
        proxy_headers=False,
        **secured,
    )
    return uvicorn.Server(config)
