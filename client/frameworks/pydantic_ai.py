"""Pydantic AI: memory's tools as a toolset. Needs `memstream[pydantic-ai]`.

toolset = MemstreamToolset(memory.tools(tenant_id="acme", user_id="u1", session_id="s1"))
agent = Agent(model, toolsets=[toolset])
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from ..tools import ToolCallError, Tools
from . import framework
from .tool_calls import call_tool, function_definitions

with framework("pydantic-ai"):
    from pydantic_ai import ModelRetry, RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Validator that accepts any object: memory checks the arguments, and returns errors that a model can read."""
RETRIES = 3
"""Number of consecutive failed calls of a tool after which the run fails."""


class MemstreamToolset(AbstractToolset[Any]):
    """Toolset with memory's tools for one user. The identity comes from `tools`, never from a model's arguments.

    Args:
        tools: `memory.tools(…)`.
        names: tools to offer; None: all tools that the token may call.
        id: the toolset's id, for durable execution and error messages.
        retries: number of consecutive times that the model may correct a refused call.
    """

    def __init__(
        self, tools: Tools, *, names: Collection[str] | None = None, id: str | None = None, retries: int = RETRIES
    ) -> None:
        self._tools, self._names, self._id, self._retries = tools, names, id, retries
        self._definitions: list[ToolDefinition] | None = None

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools. The definitions are fetched once from the server."""
        if self._definitions is None:
            self._definitions = [
                ToolDefinition(
                    name=each["name"],
                    description=each["description"],
                    parameters_json_schema=each["parameters"],
                    strict=each.get("strict"),
                )
                for each in await function_definitions(self._tools, self._names)
            ]
        return {
            each.name: ToolsetTool(
                toolset=self, tool_def=replace(each), max_retries=self._retries, args_validator=ARGUMENTS
            )
            for each in self._definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> dict[str, Any]:
        """Call a tool. Raises ModelRetry, with memory's message for the model, if the tool changed nothing."""
        call_id = f"{ctx.run_id}/{ctx.tool_call_id}"
        try:
            return await call_tool(self._tools, name, tool_args, call_id)
        except ToolCallError as error:
            raise ModelRetry(str(error)) from error
