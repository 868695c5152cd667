"""Tools of the MCP server. Their answers are those of the commands with `--json`.

Each request runs in a child process (`daqloom.cli.assistant.task`), which ends with the request,
also with a cancelled one.
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from daqloom.base.version import installed_version
from daqloom.cli.assistant import task
from daqloom.scenario.file.load import LARGEST_SCENARIO_BYTES

AT_ONCE = 2
"""Child processes that run at a time."""
MOST_WAITING = 100
"""Requests that wait for a child process; more are refused."""
MOST_OVERRIDES = 100
LONGEST_OVERRIDE = 4096
INSTRUCTIONS = (
    "daqloom describes an event-building network in a TOML file, a scenario, and analyses it in "
    "closed form or simulates it packet by packet. Begin with a shipped scenario (`scenarios`), "
    "change keys with overrides, and look up keys, metrics and terms with `explain`."
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

Answer = dict[str, Any]
Scenario = Annotated[
    str,
    Field(
        description="A name from `scenarios`, the path of a .toml file below the folder of the "
        "server, or the TOML text of a scenario."
    ),
]
Overrides = Annotated[
    Sequence[str],
    Field(description='Keys to change, such as ["event.size=2 MB", "run.duration=50 ms"].'),
]


class Children:
    """Child processes for tasks: a few at a time, each with `cpu_s` of CPU time and access to the
    files below `folder`."""

    def __init__(self, folder: Path | None, cpu_s: int) -> None:
        self._folder, self._cpu_s = folder, cpu_s
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def run(self, context: Context, name: str, **arguments: Any) -> Answer:
        """Return the answer of a task. Raises ToolError with one sentence."""
        request = {"task": name, "arguments": arguments, "cpu_s": self._cpu_s}
        request["folder"] = [str(self._folder)] if self._folder else []
        if self._waiting >= MOST_WAITING:
            raise ToolError(f"{MOST_WAITING} requests are waiting already; repeat this one later")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._answer(context, json.dumps(request).encode())
        finally:
            self._free.release()

    async def _answer(self, context: Context, request: bytes) -> Answer:
        # -P: the folder is the child's working folder, and modules in it must not be imported.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", task.__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder or "/",
            limit=2 * task.MOST_ANSWER_BYTES,
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        try:
            errors = asyncio.ensure_future(child.stderr.read())
            child.stdin.write(request)
            child.stdin.close()
            answer = None
            async for line in child.stdout:
                record = json.loads(line)
                answer = record.get("answer")
                if "progress" in record:
                    await context.report_progress(record["progress"], 1.0)
            code = await child.wait()
            if answer is None:
                raise ToolError(self._failure(code, (await errors).decode(errors="replace")))
            return dict(answer)
        finally:
            with suppress(ProcessLookupError):
                child.kill()

    def _failure(self, code: int, errors: str) -> str:
        """Return the sentence for a child that ended without an answer."""
        if code == -signal.SIGXCPU:
            return (
                f"the task needs more than the limit of {self._cpu_s} s of CPU time; give a "
                "shorter run.duration or a smaller system, or use the command line"
            )
        if errors.startswith("daqloom: "):
            return errors.removeprefix("daqloom: ").strip()
        logging.getLogger(__name__).error("a task ended with code %d: %s", code, errors)
        return "the task failed unexpectedly; the log of the server has the reason"


def make_server(folder: Path | None, cpu_s: int) -> MCPServer[Any]:
    """Return a server whose tasks may read the files below `folder` and use `cpu_s` of CPU time."""
    server: MCPServer[Any] = MCPServer(
        "daqloom", instructions=INSTRUCTIONS, version=installed_version(), log_level="WARNING"
    )
    children = Children(folder.absolute() if folder else None, cpu_s)

    @server.tool(annotations=READS)
    async def scenarios(context: Context) -> Answer:
        """List the scenarios that come with daqloom."""
        return await children.run(context, "scenarios")

    @server.tool(annotations=READS)
    async def explain(
        context: Context,
        term: Annotated[str, Field(description="A key, metric, counter or term.")],
    ) -> Answer:
        """Explain a key of a scenario, a metric of a result, or a term of the field."""
        return await children.run(context, "explain", term=term)

    @server.tool(annotations=READS)
    async def validate(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Check a scenario; return it as TOML with all defaults, or a sentence on each mistake."""
        return await children.run(context, "validate", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def analyse(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Evaluate the closed forms of a scenario, in milliseconds."""
        return await children.run(context, "analyse", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def simulate(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Simulate a scenario packet by packet. A small system or a short run.duration keeps it
        within the limit of CPU time; run.seed is the seed of the random streams."""
        return await children.run(context, "simulate", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def read_result(
        context: Context,
        path: Annotated[str, Field(description="A JSON result, or the folder of a store.")],
        key: Annotated[str, Field(description="Key of a result of the store.")] = "",
    ) -> Answer:
        """Read a result from a file that --json wrote, or from a store of studies: without a key,
        the list of its results."""
        return await children.run(context, "read_result", path=path, key=key)

    return server


def _description(scenario: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the arguments that describe a system. Raises ToolError for long ones."""
    if len(scenario) > LARGEST_SCENARIO_BYTES:
        raise ToolError(
            f"the scenario is larger than {LARGEST_SCENARIO_BYTES >> 10} KiB, the largest size "
            "allowed"
        )
    if len(overrides) > MOST_OVERRIDES or max(map(len, overrides), default=0) > LONGEST_OVERRIDE:
        raise ToolError(
            f"overrides are at most {MOST_OVERRIDES}, of at most {LONGEST_OVERRIDE} characters; "
            "write a scenario instead"
        )
    return {"scenario": scenario, "overrides": list(overrides)}
