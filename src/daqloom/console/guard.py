"""Guard before the console: hosts, origins, tokens, roles, and limits on requests.

A browser exchanges a token for a cookie that scripts cannot read. With TLS, a client certificate of
an operator of runs is enough.
"""

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, Set
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Literal, cast

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daqloom.control.calls.connection import CONTROL
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.files import read_text

Role = Literal["view", "operate"]
PEER = "daqloom.peer"
"""Name of the client certificate in the scope of a request."""
ROLE = "daqloom.role"
LARGEST_BODY_BYTES = 1 << 20
MOST_SESSIONS = 1000
MOST_LOGINS = 20
"""Attempts to log in that are possible at once; one more each second."""
REQUESTS_PER_S, BURST = 100.0, 300.0
LEAST_TOKEN = 16
"""Least length of a token (characters)."""
TOKEN = re.compile(rf"(operate|view)\s+(\S{{{LEAST_TOKEN},}})")
PUBLIC = ("/static/", "/api/login")
"""Paths without data, open to all who reach the server, as is the page itself."""
SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def make_tokens() -> dict[Role, str]:
    """Return new random tokens."""
    return {"operate": secrets.token_urlsafe(24), "view": secrets.token_urlsafe(24)}


def read_tokens(path: Path) -> dict[Role, str]:
    """Read a file with lines `operate TOKEN` and `view TOKEN`. Raises ScenarioError."""
    try:
        if path.stat().st_mode & 0o077:
            raise ValueError(f"{path} is accessible to other users; run: chmod 600 {path}")
        lines = [line for line in read_text(path, 4096).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ScenarioError(f"--token-file {path}: {error}") from None
    found = [TOKEN.fullmatch(line.strip()) for line in lines]
    tokens = {cast(Role, each[1]): each[2] for each in found if each}
    if not tokens or len(set(tokens.values())) != len(lines):
        raise ScenarioError(
            f"--token-file {path}: expected lines `operate TOKEN` and `view TOKEN`, with different "
            f"tokens of at least {LEAST_TOKEN} characters"
        )
    return tokens


class _Bucket:
    """Token bucket: `rate_hz` requests a second, `most` at once."""

    def __init__(self, rate_hz: float, most: float) -> None:
        self._rate_hz, self._most, self._left = rate_hz, most, most
        self._at_s = time.monotonic()

    def takes(self) -> bool:
        now_s = time.monotonic()
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._rate_hz)
        self._at_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """ASGI application that passes permitted requests to `app`, with their role in the scope.
    `hosts` are the names and addresses, with the port unless it is a proxy's usual one, under which
    browsers reach the server."""

    def __init__(
        self, app: ASGIApp, hosts: Set[str], tokens: Mapping[Role, str], *, tls: bool = False
    ) -> None:
        self._app, self._hosts, self._tokens = app, hosts, tokens
        self._is_secure = tls
        ports = sorted(host.rpartition(":")[2] for host in hosts if ":" in host)
        self._cookie = f"daqloom-{ports[0]}"  # browsers send cookies to all ports of a host
        self._sessions: OrderedDict[str, Role] = OrderedDict()
        self._logins = _Bucket(1.0, MOST_LOGINS)
        self._requests = _Bucket(REQUESTS_PER_S, BURST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        refusal = self._refuse(scope)
        if refusal is None and scope["path"] == "/api/login":
            refusal = await self._log_in(scope, receive)
        if refusal is not None:
            return await refusal(scope, receive, send_secured)
        await self._app(scope, _limit(receive), send_secured)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the refusal of a request, None if it may pass."""
        if scope["type"] != "http":
            return _refusal(400, "expected an HTTP request")
        headers, path = Headers(scope=scope), scope["path"]
        if headers.getlist("host") != [headers.get("host")] or headers["host"] not in self._hosts:
            return _refusal(421, "the name of this host is unknown here; name it with --name")
        if not self._requests.takes():
            return _refusal(429, "too many requests; wait a second")
        if scope["method"] not in ("GET", "HEAD"):
            scheme, _, host = headers.get("origin", "").partition("://")  # https: also of a proxy
            is_own = scheme in ("http", "https") and host in self._hosts
            if not is_own or headers.get("x-daqloom") != "1":
                return _refusal(403, "only the console's own page may send this request")
            if headers.get("content-type") != "application/json":
                return _refusal(415, "expected a JSON object")
            length = headers.get("content-length", "")
            if not length.isdecimal() or len(length) > 9 or int(length) > LARGEST_BODY_BYTES:
                return _refusal(413, f"expected at most {LARGEST_BODY_BYTES >> 10} KiB")
        role = self._role(scope, headers)
        scope[ROLE] = role
        if role is None and path != "/" and not path.startswith(PUBLIC):
            return _refusal(401, "log in with a token first")
        if role == "view" and scope["method"] == "POST" and path not in ("/api/login", "/api/task"):
            return _refusal(403, "the role `view` may not do this; log in with the other token")
        return None

    def _role(self, scope: Scope, headers: Headers) -> Role | None:
        """Return the role of a client, by its certificate or its cookie."""
        names = [pair for part in (scope.get(PEER) or {}).get("subject", ()) for pair in part]
        if ("commonName", CONTROL) in names:
            return "operate"
        try:
            found = SimpleCookie(headers.get("cookie", "")[:4096]).get(self._cookie)
        except CookieError:
            return None
        return self._sessions.get(found.value) if found else None

    async def _log_in(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] != "POST":
            return _refusal(405, "expected POST")
        if not self._logins.takes():
            return _refusal(429, "too many attempts to log in; wait a minute")
        try:
            body = await Request(scope, _limit(receive)).json()
        except (ValueError, RecursionError, ClientDisconnect):
            body = None
        given = body.get("token") if isinstance(body, dict) else None
        for role, token in self._tokens.items():
            if isinstance(given, str) and hmac.compare_digest(given.encode(), token.encode()):
                session = secrets.token_urlsafe(32)
                self._sessions[session] = role
                while len(self._sessions) > MOST_SESSIONS:
                    self._sessions.popitem(last=False)
                answer = JSONResponse({"role": role})
                answer.set_cookie(
                    self._cookie, session, httponly=True, samesite="strict", secure=self._is_secure
                )
                return answer
        return _refusal(401, "the token is wrong")


def _refusal(code: int, sentence: str) -> Response:
    return JSONResponse({"failure": sentence}, code)


def _limit(receive: Receive) -> Receive:
    """Return `receive` with a limit on the bytes of a body."""
    left = LARGEST_BODY_BYTES

    async def receive_less() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return receive_less
