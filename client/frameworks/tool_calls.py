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
        names: tools to offer; None: all tools that the token may call.

    Raises:
        ValueError: the token may not call a tool in `names`.
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
    """Call a tool. If the model's call is repeated, the tool is applied only once.

    The idempotency key is derived from the call's id, the tool and its arguments, because some model servers use the
    same call ids in every answer. While memory is unavailable, the result is an `error` that asks the model to continue
    without memory.

    Raises:
        ToolCallError: the tool changed nothing. The message is for the model.
    """
    called = json.dumps([call_id, name, dict(arguments)], sort_keys=True)
    try:
        return await tools.call(name, arguments, key=str(uuid.uuid5(NAMESPACE, f"call/{called}")))
    except Unavailable as error:
        log.warning("%s: %s", name, error)
        return {"error": AWAY}
