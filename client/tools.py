"""Tools of agents over HTTP: definitions for function calling, and an executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, JsonValue

from .answers import decode
from .errors import NotFound, Refused
from .http_client import Api

HEADERS = {
    "tenant_id": "X-Memstream-Tenant",
    "user_id": "X-Memstream-User",
    "session_id": "X-Memstream-Session",
    "agent_id": "X-Memstream-Agent",
    "org_id": "X-Memstream-Org",
    "group_id": "X-Memstream-Group",
}


class ToolCallError(Exception):
    """The tool changed nothing. The message is for the model, and contains the remedy."""


class _Definitions(BaseModel):
    tools: list[dict[str, Any]]


class _Result(BaseModel):
    result: dict[str, JsonValue]


class Tools:
    """Tools of one user, optionally in a session.

        tools = memory.tools(user_id="u1", session_id="s1")
        answer = await openai.chat.completions.create(tools=await tools.definitions(), …)
        result = await tools.call(call.function.name, json.loads(call.function.arguments), key=call.id)

    The identity (tenant, user …) comes from this object, never from a model's arguments.
    """

    def __init__(self, api: Api, **identity: str | None) -> None:
        """Raise TypeError for an `identity` other than tenant_id, user_id, session_id, agent_id, org_id, group_id."""
        unknown = set(identity) - set(HEADERS)
        if unknown:
            raise TypeError(f"unknown {', '.join(sorted(unknown))}: give {', '.join(HEADERS)}")
        self._api = api
        self._headers = {HEADERS[name]: quote(value, safe="") for name, value in identity.items() if value is not None}

    async def definitions(self) -> list[dict[str, Any]]:
        """Return the tools that the token may call, as OpenAI function definitions with strict schemas."""
        return decode(_Definitions, await self._api.call("GET", "/v1/tools", headers=self._headers)).tools

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], *, key: str | None = None
    ) -> dict[str, JsonValue]:
        """Call a tool and return its result, or `{"accepted": command_id}` for a write that was not applied in time.

        Args:
            key: idempotency key, such as the id of the model's call. A repeated call with the same key is applied once.

        Raises:
            ToolCallError: the arguments are invalid, or memory refused the call. Nothing was changed.
        """
        headers = self._headers | ({} if key is None else {"Idempotency-Key": key})
        try:
            answer = await self._api.call(
                "POST", f"/v1/tools/{quote(name, safe='')}", json=dict(arguments), headers=headers
            )
        except (Refused, NotFound) as error:
            raise ToolCallError(str(error)) from None
        return decode(_Result, answer).result
