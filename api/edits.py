"""Edits of memory over HTTP. Each route in edit_routes.py sends one command and waits for its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from ..recall.record_reader import RecordReader
from ..schemas.base import Contract
from ..schemas.command_kinds import command_kind
from ..schemas.commands import KEY_REUSED, SessionRef
from ..schemas.turns import Owner
from ..tools.editor import IDEMPOTENCY_KEY_MAX, EditAnswer, EditRefused, EditTarget, MemoryEditor
from .credentials import Caller, Credentials, caller_with
from .edit_routes import (
    AS_IT_IS,
    EDIT_ROUTES,
    BlockEditBody,
    EditAccepted,
    EditRoute,
    GroupEditBody,
    OwnerEditBody,
    RecordEdit,
    SessionEditBody,
    answer_model,
    body_model,
)
from .limits import Limits
from .openapi import body_of
from .owner_params import SESSION_HEADER_MAX, one_of, session_of
from .problems import Problem, field_errors, invalid, invalid_field, not_found
from .request_body import decode_model, read_body
from .shares import SharedPool, party_of

KEY_HEADER: Final = "Idempotency-Key"
SESSION_HEADER: Final = "X-Memstream-Session"
_UNKNOWN: Final = "unknown"
_ARGUMENTS: Final = "invalid_args"
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": EditAccepted, "description": "Accepted; the edit was not applied in time."},
    404: {"description": "There is no such record that the caller may see."},
    409: {"description": "Memory refused the edit; `detail` has the reason and the remedy."},
}


def router(
    *,
    editor: MemoryEditor,
    places: SharedPool,
    record_reader: RecordReader,
    credentials: Credentials,
    limits: Limits,
) -> APIRouter:
    routes = APIRouter()
    edits = EditSender(editor, places, record_reader, limits)
    writer = caller_with(credentials, "memory:write")
    for route in EDIT_ROUTES:
        routes.add_api_route(
            route.path.replace("}", ":path}") if route.has_given_id else route.path,
            _endpoint(edits, route, writer),
            methods=[route.method],
            tags=[route.tag],
            summary=route.summary,
            operation_id=f"{route.kind.replace('.', '_')}_{route.target}",
            response_model=answer_model(route.result),
            responses=_RESPONSES,
            openapi_extra=deepcopy(_described(route)),
        )
    return routes


def _endpoint(edits: EditSender, route: EditRoute, writer: Callable[..., Caller]) -> Callable[..., Any]:
    """Return the handler of a route. The handler reads the body itself, after the check of the credential."""
    model = body_model(route)
    allowed = Depends(writer)

    named = Path(alias=route.parameter, min_length=1, max_length=64)
    if route.has_given_id:
        named = Path(
            alias=route.parameter, min_length=1, max_length=128, description="Percent-encoded, including slashes."
        )

    async def on_record(request: Request, record_id: str = named, caller: Caller = allowed) -> JSONResponse:
        return await edits.answer(route, model, request, caller, record_id)

    async def without_record(request: Request, caller: Caller = allowed) -> JSONResponse:
        return await edits.answer(route, model, request, caller, "")

    return on_record if route.parameter else without_record


class EditSender:
    """Sender of the edits of all routes, and of the console's forms."""

    def __init__(self, editor: MemoryEditor, places: SharedPool, record_reader: RecordReader, limits: Limits) -> None:
        self._editor = editor
        self._places = places
        self._records = record_reader
        self._limits = limits

    async def answer(
        self, route: EditRoute, model: type[BaseModel], request: Request, caller: Caller, record_id: str
    ) -> JSONResponse:
        if route.method == "DELETE":
            body = _from_query(model, request.query_params)
        else:
            body = decode_model(model, await read_body(request, limit=self._limits.body))
        key = _idempotency_key(request)
        session = request.headers.get(SESSION_HEADER)
        return _answered(await self.send(route, body, caller, record_id, session=session, idempotency_key=key))

    async def send(
        self,
        route: EditRoute,
        body: BaseModel,
        caller: Caller,
        record_id: str,
        *,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> EditAnswer:
        """Check the target of an edit against the credential, send the edit, and wait for its result. Raises Problem.

        `session` is the header that names the session; `record_id` is the record in the path.
        """
        target = await self._target(route, body, caller, record_id, session)
        kind = AS_IT_IS if getattr(body, "as_it_is", False) else route.kind
        args = _args(route, kind, body, target, caller, record_id)
        try:
            async with self._places.place(party_of(caller, target.tenant_id)):
                return await self._editor.edit(
                    kind,
                    args,
                    target=target,
                    caller=caller.name,
                    patience=float(getattr(body, "wait")),  # noqa: B009 - every body has it
                    idempotency_key=idempotency_key,
                )
        except EditRefused as refused:
            raise _refused(refused) from None

    async def _target(
        self, route: EditRoute, body: BaseModel, caller: Caller, record_id: str, header: str | None
    ) -> EditTarget:
        if isinstance(body, RecordEdit):
            tenant_id = body.tenant_of(caller)
            return EditTarget(tenant_id, owner=await self._owner(route, tenant_id, record_id, caller))
        if isinstance(body, SessionEditBody):
            given = session_of(one_of("session_id", body.session_id, "session", body.session), header)
            if given is None:
                raise invalid_field("session_id", "is required: name the session, here or in X-Memstream-Session")
            user = caller.user(one_of("user_id", body.user_id, "user", body.user))
            return EditTarget(body.tenant_of(caller), session=SessionRef(user_id=user, session_id=given))
        if isinstance(body, GroupEditBody):
            group = Owner(scope="group", id=body.group_id)
            caller.check_owner(group)
            return EditTarget(body.tenant_of(caller), owner=group)
        assert isinstance(body, OwnerEditBody | BlockEditBody)
        if isinstance(body, BlockEditBody):
            given = one_of("session_id", body.session_id, "session", body.session)
            if given is not None:
                user = caller.user(body.given_user)
                return EditTarget(body.tenant_of(caller), session=SessionRef(user_id=user, session_id=given))
        return EditTarget(body.tenant_of(caller), owner=body.owner(caller))

    async def _owner(self, route: EditRoute, tenant_id: str, record_id: str, caller: Caller) -> Owner:
        """Return the owner of the record in the path. The answer shows nothing of the record, so any sensitivity is
        allowed here."""
        if route.target == "fact":
            fact = await self._records.fact(tenant_id, record_id, sees=caller.sees, ceiling="secret")
            if fact is not None:
                return fact.owner
        else:
            episode = await self._records.episode(tenant_id, record_id, sees=caller.sees, ceiling="secret")
            if episode is not None:
                return episode.owner
        raise not_found(f"there is no {route.target} {record_id} here, or it may not be changed")


def _args(route: EditRoute, kind: str, body: BaseModel, target: EditTarget, caller: Caller, record_id: str) -> Contract:
    """Return the arguments of the edit. Raises Problem (422)."""
    known = command_kind(target.address, kind)
    assert known is not None, kind
    assert known.args is not None, kind
    given: dict[str, Any] = {
        name: getattr(body, name) for name in known.args.model_fields if name in body.model_fields_set
    }
    if route.gives_list:
        given[route.path_field] = (record_id, *given.get(route.path_field, ()))
    elif route.path_field:
        given[route.path_field] = record_id
    if "owner" in known.args.model_fields:
        given["owner"] = given.get("owner") or target.audited_owner
        caller.check_owner(given["owner"])
    if kind == "episodes.add":  # `user_id` is the user of the conversation; the episode's owner may be another owner
        given["user_id"] = getattr(body, "given_user", None)
    try:
        return known.args.model_validate(given)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def _from_query(model: type[BaseModel], query: Mapping[str, str]) -> BaseModel:
    try:
        return model.model_validate(dict(query))
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get(KEY_HEADER)
    if key is not None and not 1 <= len(key) <= IDEMPOTENCY_KEY_MAX:
        raise invalid_field(KEY_HEADER, f"has {len(key)} characters; 1 to {IDEMPOTENCY_KEY_MAX} are allowed")
    return key


def _answered(done: EditAnswer) -> JSONResponse:
    if done.result is None:
        return JSONResponse({"command_id": done.command_id}, HTTPStatus.ACCEPTED)
    return JSONResponse({**done.result.to_payload(), "command_id": done.command_id})


def _refused(refused: EditRefused) -> Problem:
    if refused.code == _UNKNOWN:
        return not_found(str(refused))
    if refused.code == _ARGUMENTS:
        return invalid_field("body", str(refused))
    if refused.code == KEY_REUSED.code:
        return invalid_field(KEY_HEADER, str(refused))
    return Problem(HTTPStatus.CONFLICT, refused.code.replace("_", "-"), str(refused))


@cache
def _described(route: EditRoute) -> dict[str, Any]:
    """Return the OpenAPI description of the headers and of the body (for DELETE: of the parameters)."""
    model = body_model(route)
    headers: list[dict[str, Any]] = [
        {
            "name": KEY_HEADER,
            "in": "header",
            "required": False,
            "description": "A request that is repeated with the same key is applied once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_MAX},
        }
    ]
    if route.target == "session":
        headers.append(
            {
                "name": SESSION_HEADER,
                "in": "header",
                "required": False,
                "description": "The session, percent-encoded; used when the field is left out.",
                "schema": {"type": "string", "maxLength": SESSION_HEADER_MAX},
            }
        )
    if route.method != "DELETE":
        return {**body_of(model), "parameters": headers}
    properties = model.model_json_schema()["properties"]
    asked = [
        {"name": name, "in": "query", "required": False, "schema": _plain(schema)}
        for name, schema in properties.items()
    ]
    return {"parameters": [*asked, *headers]}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in ("title", "default")}
