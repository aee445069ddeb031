"""Speaks the Model Context Protocol for the git tools, by the official package, on stdin and stdout."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError

from teamchat.runners.child.running import start_error
from teamchat.runners.git_server import NAME
from teamchat.runners.git_server.commands import TOOLS
from teamchat.runners.git_server.output import GitError
from teamchat.runners.git_server.repository import Git

REFUSALS = (OSError, ValueError, RuntimeError)
"""Errors that the system raises for a path: `ValueError` for a null byte, `RuntimeError` for links that form a loop."""


def main(arguments: Sequence[str]) -> None:
    """Serve until stdin ends; `arguments` are the member's folder, a folder of teamchat's own, and git's program."""
    cwd, folder, program = arguments
    anyio.run(_serve, lambda: Git(Path(cwd), Path(folder), program))


async def _serve(git: Callable[[], Git]) -> None:
    async def call(_context: Any, asked: CallToolRequestParams) -> CallToolResult:
        try:
            text = await anyio.to_thread.run_sync(answer, git, asked.name, asked.arguments or {})
        except GitError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[TextContent(text=text)])

    server: Server[Any] = Server(NAME, on_list_tools=_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _tools(_context: Any, _asked: PaginatedRequestParams | None) -> ListToolsResult:
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ListToolsResult(
        tools=[
            Tool(name=name, description=inspect.getdoc(tool), input_schema=tool.model_json_schema(), annotations=reads)
            for name, tool in TOOLS.items()
        ]
    )


def answer(git: Callable[[], Git], name: str, arguments: dict[str, Any]) -> str:
    """Return the answer of the tool of that name. Raises `GitError`, also for refusals of the system."""
    if (tool := TOOLS.get(name)) is None:
        raise GitError(f"there is no tool {name!r}")
    try:
        asked = tool.model_validate(arguments)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise GitError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None
    try:
        return asked.answer(git())
    except REFUSALS as error:
        raise GitError(f"git cannot answer: {start_error(error)}") from None
