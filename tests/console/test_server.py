"""The console over HTTP: its stream of frames, its tasks, and hostile requests."""

import contextlib
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daqloom.console.feed import MOST_VIEWERS
from daqloom.control.calls.certificates import make_certificates
from daqloom.control.calls.registry import RUN
from support.children import children
from support.consoles import DAQLOOM, HUNG_S, Served, controlled, process, served

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console with a folder, beside which there is a secret file."""
    place = tmp_path_factory.mktemp("served")
    (place / "folder").mkdir()
    (place / "secret.toml").write_text('title = "secret"\n')
    (place / "folder" / "link.toml").symlink_to(place / "secret.toml")
    (place / "folder" / "mine.toml").write_text('title = "<b>mine</b>"\n')
    with served(str(place / "folder"), "--cpu-time", "20", runtime=place / "run") as found:
        yield found


@pytest.fixture(scope="module")
def operator(console: Served) -> dict[str, str]:
    return console.cookie("operate")


def records(answer: http.client.HTTPResponse) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.read()
    return [json.loads(line) for line in answer]


def task(console: Served, cookie: dict[str, str], wanted: str, **arguments: Any) -> dict[str, Any]:
    """The last record of a task."""
    body = {"task": wanted, "arguments": arguments}
    return records(console.ask("/api/task", body, cookie))[-1]


def frames(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_frames_of_a_run_arrive_and_commands_change_it(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    scenario = ["laptop", "--set", "measure.transport=tcp", "--set", "event.packing=50"]
    with controlled(*scenario, runtime=runtime), served(runtime=runtime) as console:
        cookie = console.cookie("operate")
        stream = frames(console.ask("/api/run", headers=cookie))
        assert next(stream) == {"past": []}
        assert "start" in next(stream)["can"]
        assert console.ask("/api/run", {"command": "start"}, cookie).status == 200
        running = next(each for each in stream if each["total"].get("event_rate_hz"))
        assert (running["phase"], running["can"][0]) == ("running", "stop")
        assert {each["unit"] for each in running["units"] if each["member"]} == {0, 1, 2, 3}
        connected = next(each for each in stream if each["connections"])
        assert {tuple(each[:2]) for each in connected["connections"]} <= {
            (a, b) for a in range(4) for b in range(4) if a != b
        }
        assert console.ask("/api/run", {"command": "stop"}, cookie).status == 200
        assert next(each for each in stream if each["phase"] == "ready")
        for bad in ({"command": "rm"}, {"command": "reset"}, [], "x"):
            assert console.ask("/api/run", bad, cookie).status == 400


def test_viewers_beyond_the_limit_are_refused(console: Served, operator: dict[str, str]) -> None:
    streams = [console.ask("/api/run", headers=operator) for _ in range(MOST_VIEWERS)]
    assert {each.status for each in streams} == {200}
    for each in streams:  # each has been counted when its first frame arrives
        next(frames(each))
    assert console.ask("/api/run", headers=operator).status == 503
    console.connections.close()


def test_without_a_run_the_frame_names_the_reason(
    console: Served, operator: dict[str, str]
) -> None:
    stream = frames(console.ask("/api/run", headers=operator))
    next(stream)
    assert RUN.command in next(stream)["failure"]
    answer = console.ask("/api/run", {"command": "stop"}, operator)
    assert (answer.status, "you have no run" in json.load(answer)["failure"]) == (409, True)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static//etc/passwd",
        "/../etc/passwd",
        "//evil.example/",
        "/api/../etc/passwd",
        "/docs",
    ],
)
def test_only_files_of_the_page_are_served(
    console: Served, operator: dict[str, str], path: str
) -> None:
    assert console.ask(path, headers=operator).status == 404


@pytest.mark.parametrize(
    "source", ["../secret.toml", "link.toml", "/etc/hostname", "/etc/", "a\0b.toml", "/proc/self/"]
)
def test_tasks_read_only_below_the_folder(
    console: Served, operator: dict[str, str], source: str
) -> None:
    for found in (
        task(console, operator, "show", scenario=source),
        task(console, operator, "topology", source=source, overrides=[]),
        task(console, operator, "study", name=source, store=source, quick=True),
    ):
        assert set(found) == {"failure"}
        assert "secret" not in found["failure"].replace("secret.toml", "")


def test_tasks_answer_and_name_all_mistakes(console: Served, operator: dict[str, str]) -> None:
    text = task(console, operator, "show", scenario="mine.toml")["answer"]["toml"]
    assert text == 'title = "<b>mine</b>"\n'
    found = task(console, operator, "analyse", scenario="laptop", overrides=[])["answer"]
    assert found["metrics"]["throughput_bps"] > 0
    wrong = '[event]\nsize = "x"\nrate = "y"\n'
    failure = task(console, operator, "analyse", scenario=wrong, overrides=[])["failure"]
    assert len(failure.splitlines()) == 2


def test_a_simulation_reports_progress_and_its_process_ends_with_the_request(
    console: Served, operator: dict[str, str]
) -> None:
    body = {"task": "simulate", "arguments": {"scenario": "laptop", "overrides": []}}
    *progress, last = records(console.ask("/api/task", body, operator))
    shares = [each["progress"] for each in progress]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert last["answer"]["result"]["metrics"]["event_rate_hz"] > 0
    body["arguments"]["overrides"] = ["run.duration=100 s"]
    answer = console.ask("/api/task", body, operator)
    answer.readline()
    answer.close()
    viewer = console.cookie("view")
    assert console.ask("/api/task", body, viewer).status == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        {"task": "read_result", "arguments": {}},
        {"task": ["study"], "arguments": {}},
        {"task": "explain", "arguments": {"term": {"a": 1}}},
        {"task": "explain", "arguments": {"term": ["a"] * 101}},
        {"task": "explain", "arguments": {"term": "a" * 600_000}},
        {"task": "explain", "arguments": {str(n): "" for n in range(9)}},
    ],
)
def test_malformed_tasks_are_refused(console: Served, operator: dict[str, str], body: Any) -> None:
    assert console.ask("/api/task", body, operator).status == 400


def test_unknown_arguments_are_an_unexpected_failure_of_the_child_alone(
    console: Served, operator: dict[str, str]
) -> None:
    found = task(console, operator, "explain", word="event.size")
    assert "failed unexpectedly" in found["failure"]
    assert "explanations" in task(console, operator, "explain", term="event.size")["answer"]


def test_a_head_request_has_no_body_and_other_methods_are_refused(
    console: Served, operator: dict[str, str]
) -> None:
    answer = console.ask("/", headers=operator, method="HEAD")
    assert (answer.status, answer.read()) == (200, b"")
    for method in ("PUT", "DELETE", "TRACE"):
        assert console.ask("/api/run", {}, operator, method).status == 405


def test_other_addresses_need_tls_or_a_file_of_tokens(tmp_path: Path) -> None:
    with process([*DAQLOOM, "console", "--host", "0.0.0.0"], tmp_path / "run") as started:
        assert started.wait(HUNG_S) == 2
        assert re.search("give --tls, or --token-file", started.stderr.read())
    assert children() == [] or started.pid not in children()


@pytest.mark.parametrize(("holder", "code"), [("control", 200), ("unit", 401), ("", 401)])
def test_with_tls_the_certificate_of_an_operator_is_a_role(
    certificates: Path, holder: str, code: int, tmp_path: Path
) -> None:
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    if holder:
        context.load_cert_chain(certificates / f"{holder}.pem", certificates / f"{holder}.key")
    with served("--tls", str(certificates), runtime=tmp_path / "run") as console:
        assert console.url.startswith("https://127.0.0.1:")
        connection = http.client.HTTPSConnection(console.host, timeout=HUNG_S, context=context)
        with contextlib.closing(connection):
            connection.request("GET", "/api/session")
            with connection.getresponse() as answer:
                assert answer.status == code


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates") / "certs"
    make_certificates(folder, ["127.0.0.1"])
    return folder
