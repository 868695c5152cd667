"""Tools of the MCP server. Their answers are those of the commands with `--json`.

Each request runs in a child process (`daqloom.cli.assistant.task`), which ends with the request,
also with a cancelled one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from daqloom.base.version import installed_version
from daqloom.cli.assistant import task
from daqloom.scenario.file.load import LARGEST_SCENARIO_BYTES
from daqloom.tasks.children import Answer, Children, TaskError

MOST_OVERRIDES = 100
LONGEST_OVERRIDE = 4096
INSTRUCTIONS = (
    "daqloom describes an event-building network in a TOML file, a scenario, and analyses it in "
    "closed form or simulates it packet by packet. Begin with a shipped scenario (`scenarios`), "
    "change keys with overrides, and look up keys, metrics and terms with `explain`."
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

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


class ToolChildren(Children):
    """Child processes whose failures are those of a tool."""

    async def answer(self, context: Context, name: str, **arguments: Any) -> Answer:
        """Return the answer of a task, and report its progress. Raises ToolError."""
        try:
            return await self.run(
                name, arguments, lambda share: context.report_progress(share, 1.0)
            )
        except TaskError as error:
            raise ToolError(str(error)) from None


def make_server(folder: Path | None, cpu_s: int) -> MCPServer[Any]:
    """Return a server whose tasks may read the files below `folder` and use `cpu_s` of CPU time."""
    server: MCPServer[Any] = MCPServer(
        "daqloom", instructions=INSTRUCTIONS, version=installed_version(), log_level="WARNING"
    )
    children = ToolChildren(task.__name__, folder.absolute() if folder else None, cpu_s)

    @server.tool(annotations=READS)
    async def scenarios(context: Context) -> Answer:
        """List the scenarios that come with daqloom."""
        return await children.answer(context, "scenarios")

    @server.tool(annotations=READS)
    async def explain(
        context: Context,
        term: Annotated[str, Field(description="A key, metric, counter or term.")],
    ) -> Answer:
        """Explain a key of a scenario, a metric of a result, or a term of the field."""
        return await children.answer(context, "explain", term=term)

    @server.tool(annotations=READS)
    async def validate(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Check a scenario; return it as TOML with all defaults, or a sentence on each mistake."""
        return await children.answer(context, "validate", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def analyse(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Evaluate the closed forms of a scenario, in milliseconds."""
        return await children.answer(context, "analyse", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def simulate(context: Context, scenario: Scenario, overrides: Overrides = ()) -> Answer:
        """Simulate a scenario packet by packet. A small system or a short run.duration keeps it
        within the limit of CPU time; run.seed is the seed of the random streams."""
        return await children.answer(context, "simulate", **_description(scenario, overrides))

    @server.tool(annotations=READS)
    async def read_result(
        context: Context,
        path: Annotated[str, Field(description="A JSON result, or the folder of a store.")],
        key: Annotated[str, Field(description="Key of a result of the store.")] = "",
    ) -> Answer:
        """Read a result from a file that --json wrote, or from a store of studies: without a key,
        the list of its results."""
        return await children.answer(context, "read_result", path=path, key=key)

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
