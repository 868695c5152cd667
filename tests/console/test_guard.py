from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse

from daqloom.console.guard import (
    LARGEST_BODY_BYTES,
    MOST_LOGINS,
    PEER,
    ROLE,
    SECURITY,
    Guard,
    read_tokens,
)
from daqloom.scenario.errors import ScenarioError

HOST = "127.0.0.1:8760"
TOKENS = {"operate": "operate-0123456789", "view": "view-0123456789abc"}
PAGE = {"Origin": f"http://{HOST}", "X-Daqloom": "1", "Content-Type": "application/json"}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the role, after the body."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    answer = JSONResponse({"role": scope[ROLE], "bytes": size, "end": message["type"]})
    await answer(scope, receive, send)


def client(app: Any = None) -> httpx2.AsyncClient:
    guard = app or Guard(application, {HOST, "localhost:8760"}, TOKENS)
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=guard), base_url=f"http://{HOST}", headers=PAGE
    )


async def log_in(asked: httpx2.AsyncClient, role: str) -> httpx2.Response:
    return await asked.post("/api/login", json={"token": TOKENS[role]})


async def test_a_token_becomes_a_cookie_of_its_role() -> None:
    for role in TOKENS:
        async with client() as asked:
            assert (await asked.get("/api/session")).status_code == 401
            given = await log_in(asked, role)
            assert given.json() == {"role": role}
            assert "HttpOnly" in given.headers["set-cookie"]
            assert "samesite=strict" in given.headers["set-cookie"].lower()
            assert (await asked.get("/api/session")).json()["role"] == role


async def test_a_viewer_steers_nothing() -> None:
    async with client() as asked:
        await log_in(asked, "view")
        assert (await asked.post("/api/run", json={"command": "stop"})).status_code == 403
        assert (await asked.post("/api/task", json={})).status_code == 200
        await log_in(asked, "operate")
        assert (await asked.post("/api/run", json={"command": "stop"})).status_code == 200


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"Host": "evil.example:8760"}, 421),  # a name that an attacker points here
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": f"ftp://{HOST}"}, 403),
        ({"X-Daqloom": ""}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Length": "1e9"}, 413),
        ({"Content-Length": str(LARGEST_BODY_BYTES + 1)}, 413),
    ],
)
async def test_requests_of_other_sites_are_refused(changes: dict[str, str], code: int) -> None:
    async with client() as asked:
        await log_in(asked, "operate")
        answer = await asked.post("/api/run", json={"command": "stop"}, headers=changes)
        assert answer.status_code == code
        assert {name: answer.headers[name] for name in SECURITY} == SECURITY


async def test_a_proxy_with_tls_has_its_name_as_origin() -> None:
    guard = Guard(application, {HOST, "daq.site.org"}, TOKENS)
    async with client(guard) as asked:
        proxied = {"Host": "daq.site.org", "Origin": "https://daq.site.org"}
        token = {"token": TOKENS["view"]}
        assert (await asked.post("/api/login", json=token, headers=proxied)).status_code == 200


async def test_a_body_that_is_longer_than_its_length_ends() -> None:
    received: list[Any] = []

    async def reads(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            received.append(len(message["body"]))

    guard = Guard(reads, {HOST}, TOKENS)
    guard._sessions["known"] = "operate"
    given = PAGE | {"host": HOST, "content-length": "10", "cookie": "daqloom-8760=known"}
    headers = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": "POST", "path": "/api/task", "headers": headers}

    async def endless() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": True}

    await guard(scope, endless, endless)
    assert 0 < sum(received) <= LARGEST_BODY_BYTES


async def test_tokens_cannot_be_guessed_quickly() -> None:
    async with client() as asked:
        codes = [
            (await asked.post("/api/login", json={"token": given})).status_code
            for given in ["", "x" * 100, None, 5, ["a"], "é"] * MOST_LOGINS
        ]
        assert set(codes) == {401, 429}
        assert codes.count(401) <= MOST_LOGINS + 2
        assert (await log_in(asked, "operate")).status_code == 429


@pytest.mark.parametrize("body", [b"", b"[", b"[" * 3000, b"\xff", b'{"token": 1}', b"{}" * 5000])
async def test_malformed_logins_are_refused(body: bytes) -> None:
    async with client() as asked:
        assert (await asked.post("/api/login", content=body)).status_code == 401
        assert (await asked.get("/api/login")).status_code == 405


@pytest.mark.parametrize("cookie", ["daqloom-8760=forged", "=;=", "daqloom-8760", "x" * 9000])
async def test_forged_cookies_have_no_role(cookie: str) -> None:
    async with client() as asked:
        answer = await asked.get("/api/session", headers={"Cookie": cookie})
        assert answer.status_code == 401


async def test_requests_have_a_limit_on_their_rate() -> None:
    async with client() as asked:
        codes = [(await asked.get("/api/session")).status_code for _ in range(500)]
        assert {*codes} == {401, 429}


async def test_a_certificate_of_an_operator_is_enough() -> None:
    guard = Guard(application, {HOST}, TOKENS)
    for name, code in (("daqloom control", 200), ("daqloom unit", 401)):

        async def with_peer(scope: Any, receive: Any, send: Any, name: str = name) -> None:
            await guard({**scope, PEER: {"subject": ((("commonName", name),),)}}, receive, send)

        async with client(with_peer) as asked:
            assert (await asked.get("/api/session")).status_code == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "operate short",
        "root 0123456789abcdef",
        "operate 0123456789abcdef x",
        "operate 0123456789abcdef\noperate 0123456789abcdeF",
        "operate 0123456789abcdef\nview 0123456789abcdef",
    ],
)
def test_bad_files_of_tokens_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ScenarioError, match="expected lines `operate TOKEN`"):
        read_tokens(path)


def test_a_file_of_tokens_is_private(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("operate 0123456789abcdef\n\nview 0123456789abcdeF\n")
    path.chmod(0o600)
    assert read_tokens(path) == {"operate": "0123456789abcdef", "view": "0123456789abcdeF"}
    path.chmod(0o640)
    with pytest.raises(ScenarioError, match="accessible to other users"):
        read_tokens(path)
