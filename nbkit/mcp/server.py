"""Server answers an assistant over standard input and output, with the official package mcp."""

import asyncio
from collections.abc import Mapping
from typing import Any

from nbkit.errors import NbkitError, OptionError, nbkit_failed, nearest, place_in_nbkit, please_report
from nbkit.mcp.arguments import checked
from nbkit.mcp.folder import Folder
from nbkit.mcp.tools import INSTRUCTIONS, TOOLS


def serve(folder: Folder, version: str) -> None:
    """Serves until the input ends. Raises OptionError if the package mcp is not installed."""
    try:
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise OptionError('the package mcp is not installed: pip install "nbkit-torch[mcp]".') from error

    server = _server(folder, version)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(run())


def _server(folder: Folder, version: str) -> Any:
    from mcp import types
    from mcp.server.lowlevel import Server

    reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    tools = [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=reads)
        for tool in TOOLS.values()
    ]

    async def list_tools(context: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        text, is_error = answered(folder, params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    return Server("nbkit", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


def answered(folder: Folder, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """Returns the answer to a call of a tool, and whether it is an error: one sentence."""
    try:
        if name not in TOOLS:
            raise OptionError(f"There is no tool {name!r}; {nearest(name, TOOLS)}")
        tool = TOOLS[name]
        return tool.answer(folder, **checked(tool.schema, arguments)), False
    except NbkitError as error:
        return " ".join(str(error).split()), True
    except Exception as error:
        failure = nbkit_failed(type(error).__name__, str(error), place_in_nbkit(error))
        return please_report(f"{failure}, not the trace."), True
