"""`/v1/tools`: the tools of agents over HTTP. The owner of the memory comes from the token and the headers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, JsonValue

from ..recall.record_reader import RecordReader
from ..schemas.commands import KEY_REUSED
from ..schemas.tool_schemas import openai_definition
from ..tools.editor import IDEMPOTENCY_KEY_MAX
from ..tools.tool_port import ToolError, ToolIdentity, ToolPort
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .memberships import check_identity
from .problems import Problem, invalid_field, not_found
from .request_body import decode_json, read_body
from .tool_identity import (
    AGENT_HEADER,
    GROUP_HEADER,
    ORG_HEADER,
    SESSION_HEADER,
    TENANT_HEADER,
    USER_HEADER,
    identity_of,
)

IDENTITY_HEADERS = (TENANT_HEADER, USER_HEADER, SESSION_HEADER, AGENT_HEADER, ORG_HEADER, GROUP_HEADER)
KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=IDEMPOTENCY_KEY_MAX,
        description="A call that is repeated with the same key is applied once.",
    ),
]


class ToolsAnswer(BaseModel):
    """Tools that this credential may call, as OpenAI function definitions."""

    model_config = ConfigDict(extra="forbid")

    tools: list[dict[str, Any]]


class ToolAnswer(BaseModel):
    """Result of a tool. docs/reference/tools.md has the fields of each tool's result."""

    model_config = ConfigDict(extra="forbid")

    result: dict[str, JsonValue]


def _identity_parameters() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": "An id, percent-encoded.",
            "schema": {"type": "string", "maxLength": 128 * 12},
        }
        for name in IDENTITY_HEADERS
    ]


def router(*, tools: ToolPort, memberships: RecordReader, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["tools"])
    reader = Depends(caller_with(credentials, "memory:read"))
    described: dict[str, Any] = {"parameters": _identity_parameters()}
    body: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {
        "schema": {"type": "object", "description": "The arguments of the tool."}}}}}  # fmt: skip

    async def identified(caller: Caller, request: Request) -> ToolIdentity:
        identity = identity_of(caller, request.headers)
        await check_identity(memberships, caller, identity)
        return identity

    @routes.get("/v1/tools", summary="Tools that an agent may call", openapi_extra=described)
    async def offered(request: Request, caller: Caller = reader) -> ToolsAnswer:
        found = await tools.offered(await identified(caller, request))
        return ToolsAnswer(tools=[openai_definition(each) for each in found])

    @routes.post(
        "/v1/tools/{name}",
        summary="Call a tool",
        openapi_extra=described | body,
        response_model=ToolAnswer,
        responses={
            404: {"description": "There is no such tool for this credential."},
            409: {"description": "The tool changed nothing; `detail` has the reason and the remedy."},
        },
    )
    async def call(
        name: str, request: Request, key: KeyHeader = None, caller: Caller = reader
    ) -> ToolAnswer | JSONResponse:
        """A read returns immediately. A write waits for its result, or returns `accepted` with its command's id."""
        arguments = decode_json(await read_body(request, limit=limits.body))
        if not isinstance(arguments, dict):
            raise invalid_field("body", "is not an object: send the arguments of the tool by name")
        identity = await identified(caller, request)
        offered = await tools.offered(identity)
        if name not in {each.name for each in offered}:
            raise not_found(f"there is no tool {name[:64]!r} here: GET /v1/tools lists the tools")
        try:
            result = await tools.call(name, arguments, identity=identity, key=key)
        except ToolError as error:
            if error.code == KEY_REUSED.code:
                raise invalid_field("Idempotency-Key", str(error)) from None
            raise Problem(HTTPStatus.CONFLICT, "tool-refused", str(error)) from None
        return ToolAnswer(result=result.to_payload())

    return routes
