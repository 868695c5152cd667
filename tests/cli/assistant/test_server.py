"""The MCP server, asked by the client of its library: over memory, standard input and HTTP."""

import asyncio
import json
import re
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters

from daqloom import load
from daqloom.cli.assistant import server
from daqloom.scenario.file.load import LARGEST_SCENARIO_BYTES
from daqloom.tasks.children import AT_ONCE, MOST_WAITING
from support.children import children
from support.command import record
from support.command import refusal as refusal_of_command
from support.repository import ROOT
from support.study_stores import fill

pytestmark = pytest.mark.process

SHORT = ["run.duration=30 ms", "run.warmup=10 ms"]
ENDLESS = ["run.duration=1000 s"]
CPU_S = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the server; a file that is not for it lies beside, linked to from within."""
    served = tmp_path / "served"
    served.mkdir()
    (tmp_path / "secret.toml").write_text("secret = 1\n")
    (served / "link.toml").symlink_to(tmp_path / "secret.toml")
    (served / "json.py").write_text("raise SystemExit('imported from the folder')\n")
    return served


def client(folder: Path | None, cpu_s: int = CPU_S) -> Client:
    return Client(server.make_server(folder, cpu_s))


async def answer(asked: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool, which is given as text and as structure."""
    result = await asked.call_tool(tool, arguments)
    [block] = result.content
    assert not result.is_error, block.text
    assert json.loads(block.text) == result.structured_content
    return result.structured_content


async def refusal(asked: Client, tool: str, **arguments: Any) -> str:
    """The sentence of a tool that refuses."""
    result = await asked.call_tool(tool, arguments)
    assert result.is_error
    [block] = result.content
    return block.text.removeprefix(f"Error executing tool {tool}: ")


def without_cost(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "engine"}


async def test_answers_are_the_output_of_commands(folder: Path) -> None:
    async with client(folder) as asked:
        assert await answer(asked, "scenarios") == record("scenarios")
        assert await answer(asked, "explain", term="tor.buffer") == record("explain", "tor.buffer")
        closed = await answer(asked, "analyse", scenario="atlas-lab", overrides=["event.size=2 MB"])
        printed = record("analyse", "atlas-lab", "--set", "event.size=2 MB")
        assert without_cost(closed) == without_cost(printed)
        simulated = await answer(asked, "simulate", scenario="small-rack", overrides=SHORT)
        printed = record("simulate", "small-rack", *(w for s in SHORT for w in ("--set", s)))
        assert without_cost(simulated) == without_cost(printed)


async def test_a_scenario_is_a_name_a_text_or_a_file_and_names_files_of_the_folder(
    folder: Path,
) -> None:
    (folder / "sizes.csv").write_text("1000000 1\n")
    keys = ["event.size_distribution=histogram", "event.size_histogram=sizes.csv"]
    text = '[event]\nsize_distribution = "histogram"\nsize_histogram = "sizes.csv"\n'
    (folder / "mine.toml").write_text(text)
    expected = f'size_histogram = "{folder / "sizes.csv"}"'
    async with client(folder) as asked:
        file = await answer(asked, "validate", scenario="mine.toml")
        assert (file["scenario"], expected in file["toml"]) == ("mine", True)
        shown = await answer(asked, "validate", scenario=text)
        assert (shown["scenario"], expected in shown["toml"]) == ("scenario", True)
        assert expected in (await answer(asked, "validate", scenario=text, overrides=keys))["toml"]


async def test_all_mistakes_of_a_scenario_are_answered_at_once(folder: Path) -> None:
    async with client(folder) as asked:
        text = '[event]\nsize = "x"\nrate = "y"\n'
        lines = (await refusal(asked, "validate", scenario=text)).splitlines()
        assert [line.split(" is not a quantity")[0] for line in lines] == [
            'the text of the scenario: event.size = "x"',
            'the text of the scenario: event.rate = "y"',
        ]


async def test_results_are_read_from_a_file_and_a_store(folder: Path) -> None:
    (folder / "one.json").write_text(load("atlas-lab").analyse().to_json())
    fill(folder / "store", range(3))
    async with client(folder) as asked:
        assert (await answer(asked, "read_result", path="one.json"))["method"] == "analyse"
        listed = await answer(asked, "read_result", path="store")
        assert listed["results"] == 3
        entry = listed["listed"][0]
        found = await answer(asked, "read_result", path="store", key=entry["key"])
        assert (found["scenario"], found["seed"]) == (entry["scenario"], entry["seed"])
        for key in ("../one", "x", "x" * 100_000):
            assert "has no result" in await refusal(asked, "read_result", path="store", key=key)


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "../secret.toml", "link.toml", "a\0b.toml", "out/secret.toml"]
)
async def test_no_path_leads_out_of_the_folder(folder: Path, path: str) -> None:
    (folder / "out").symlink_to(folder.parent)
    dumps = 'network = {technology = "infiniband", shape = "imported", dumps = "%s"}\n'
    histogram = 'event = {size_distribution = "histogram", size_histogram = "%s"}\n'
    filling = 'event = {arrivals = "lhc", lhc = {filling = "%s"}}\n'
    async with client(folder) as asked:
        refusals = [
            await refusal(asked, "read_result", path=path),
            await refusal(asked, "validate", scenario=path),
        ]
        if "\0" not in path:
            for text in (dumps, histogram, filling):
                refusals.append(await refusal(asked, "validate", scenario=text % path))
    for sentence in refusals:
        assert "secret" not in sentence.replace("secret.toml", "")
        assert "unexpectedly" not in sentence


async def test_a_server_without_a_folder_reads_shipped_scenarios_alone(folder: Path) -> None:
    (folder / "mine.toml").write_text("[event]\n")
    async with client(None) as asked:
        assert (await answer(asked, "validate", scenario="daqpipe-cluster64"))["scenario"]
        sentence = await refusal(asked, "validate", scenario=str(folder / "mine.toml"))
    assert sentence.endswith("cannot be read: it is outside the folder that may be read")


async def test_large_requests_are_refused(folder: Path) -> None:
    async with client(folder) as asked:
        large = "#" * (LARGEST_SCENARIO_BYTES + 1)
        assert "larger than 1024 KiB" in await refusal(asked, "validate", scenario=large)
        wide = "#=" + "\u20ac" * (LARGEST_SCENARIO_BYTES // 2)
        assert "larger than 1024 KiB" in await refusal(asked, "validate", scenario=wide)
        many = ["run.seed=1"] * (server.MOST_OVERRIDES + 1)
        assert "at most" in await refusal(asked, "analyse", scenario="atlas-lab", overrides=many)
        nested = "a = " + "[" * 100_000
        assert "nested too deeply" in await refusal(asked, "validate", scenario=nested)
        hosts = ["network.hosts=100000", "readout.units=50000", "builders.units=50000"]
        assert await refusal(asked, "simulate", scenario="atlas-lab", overrides=hosts)


async def test_an_endless_simulation_ends_at_the_limit_of_cpu_time(folder: Path) -> None:
    shares: list[float] = []

    async def show(share: float, total: float | None, message: str | None) -> None:
        assert total == 1.0
        shares.append(share)

    async with client(folder, cpu_s=2) as asked:
        result = await asked.call_tool(
            "simulate", {"scenario": "small-rack", "overrides": ENDLESS}, progress_callback=show
        )
    assert result.is_error
    assert "more than the limit of 2 s of CPU time" in result.content[0].text
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 1


async def test_a_cancelled_request_ends_its_process(folder: Path) -> None:
    running = asyncio.Event()

    async def show(*_: object) -> None:
        running.set()

    before = set(children())
    async with client(folder) as asked:
        endless = asyncio.ensure_future(
            asked.call_tool(
                "simulate", {"scenario": "small-rack", "overrides": ENDLESS}, progress_callback=show
            )
        )
        await running.wait()
        [child] = set(children()) - before
        endless.cancel()
        with suppress(asyncio.CancelledError):
            await endless
        assert await answer(asked, "validate", scenario="small-rack")
    assert child not in children()


async def test_of_many_requests_at_once_those_beyond_a_limit_are_refused_at_once(
    folder: Path,
) -> None:
    beyond = 1000 - MOST_WAITING - AT_ONCE
    async with client(folder) as asked:
        requests = [
            asyncio.ensure_future(asked.call_tool("explain", {"term": "event.size"}))
            for _ in range(1000)
        ]
        refused = 0
        for done in asyncio.as_completed(requests):
            refused += (await done).is_error
            if refused == beyond:
                break
        for each in requests:
            each.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        assert await answer(asked, "explain", term="event.size")


async def over_stdio(folder: Path, use: Callable[[Client], Any]) -> None:
    """Start the command as the settings on the page do, and use it."""
    page = (ROOT / "docs/how-to/ask-from-an-assistant.md").read_text()
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    first, second = (next(iter(json.loads(block).values()))["daqloom"] for block in blocks)
    assert second == {"type": "stdio"} | first
    assert first["command"] == "daqloom"
    arguments = [each.replace("/home/me/daqloom-files", str(folder)) for each in first["args"]]
    program = StdioServerParameters(command=sys.executable, args=["-m", "daqloom", *arguments])
    async with Client(program) as asked:
        await use(asked)


async def test_the_command_serves_over_standard_input(folder: Path) -> None:
    async def use(asked: Client) -> None:
        names = {tool.name for tool in (await asked.list_tools()).tools}
        assert names == {
            "scenarios",
            "explain",
            "validate",
            "analyse",
            "simulate",
            "read_result",
        }
        assert (await answer(asked, "analyse", scenario="atlas-lab"))["method"] == "analyse"
        assert "outside" in await refusal(asked, "read_result", path="../secret.toml")

    await over_stdio(folder, use)


async def test_without_its_client_the_command_ends_with_its_tasks(folder: Path) -> None:
    running = asyncio.Event()

    async def show(*_: object) -> None:
        running.set()

    async def use(asked: Client) -> None:
        arguments = {"scenario": "small-rack", "overrides": ENDLESS}
        endless = asyncio.ensure_future(
            asked.call_tool("simulate", arguments, progress_callback=show)
        )
        await running.wait()
        [command] = set(children()) - before
        tasks.extend(children(command))
        requests.append(endless)

    before, tasks, requests = set(children()), [], []
    await over_stdio(folder, use)
    await asyncio.gather(*requests, return_exceptions=True)
    [task] = tasks
    assert not Path(f"/proc/{task}/environ").exists()


async def test_over_http_a_browser_of_another_site_is_refused(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["-m", "daqloom", "mcp", str(folder), "--http", str(port)]
    command = await asyncio.create_subprocess_exec(
        sys.executable, *words, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert command.stderr
        assert b"serving http" in await command.stderr.readline()
        url = f"http://127.0.0.1:{port}/mcp"
        async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(retries=9)) as plain:
            for header in ({"Origin": "http://example.org"}, {"Host": "example.org"}):
                assert (await plain.post(url, json={}, headers=header)).status_code in (403, 421)
        async with Client(url) as asked:
            assert (await answer(asked, "analyse", scenario="atlas-lab"))["method"] == "analyse"
        assert f"--http {port}: cannot listen" in refusal_of_command("mcp", "--http", port)
    finally:
        command.terminate()
        await command.communicate()
