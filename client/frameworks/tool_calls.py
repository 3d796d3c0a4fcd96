"""Calls of memory's tools by a framework's model."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import JsonValue

from ...schemas.ids import NAMESPACE
from ..errors import Unavailable
from ..tools import Tools

log = logging.getLogger(__name__)
AWAY = "memory does not answer now: go on without it"


async def function_definitions(tools: Tools, names: Collection[str] | None) -> list[dict[str, Any]]:
    """Return the function of each definition: name, description, parameters, strict.

    Args:
        names: the tools that are offered; None: all that the token may call.

    Raises:
        ValueError: the token has no tool of a name.
    """
    functions = [each["function"] for each in await tools.definitions()]
    if names is None:
        return functions
    offered = {each["name"]: each for each in functions}
    unknown = [name for name in names if name not in offered]
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)} for this token; there are {', '.join(offered)}")
    return [each for name, each in offered.items() if name in names]


async def call_tool(tools: Tools, name: str, arguments: Mapping[str, JsonValue], call_id: str) -> dict[str, JsonValue]:
    """Call a tool once for this call of the model, however often it is repeated.

    The idempotency key follows from the call's id, the tool and its arguments: models of some servers number the calls
    of every answer alike. While memory is away the result is an `error` that tells the model to go on.

    Raises:
        ToolCallError: the tool did nothing. The message is for the model.
    """
    called = json.dumps([call_id, name, dict(arguments)], sort_keys=True)
    try:
        return await tools.call(name, arguments, key=str(uuid.uuid5(NAMESPACE, f"call/{called}")))
    except Unavailable as error:
        log.warning("%s: %s", name, error)
        return {"error": AWAY}
