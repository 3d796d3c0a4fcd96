"""Lists of tasks, blocks and groups of an owner, with their forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...recall.record_filters import RecordSelection
from ...recall.record_reader import RecordReader
from ...schemas.edits.prospective import PENDING, TaskState
from ...schemas.turns import SENSITIVITIES
from ..credentials import Caller
from ..edit_routes import EDIT_ROUTES, EditRoute, body_model
from ..edits import EditSender
from ..held_records import HeldQuery, TasksQuery, groups_shown
from ..problems import not_found
from ..records import within_bounds
from .as_commands import as_commands, owner_arguments
from .pages import ConsolePages, Noticed, asked, checked_model

Kind = Literal["tasks", "blocks", "groups"]
ACTIONS: Final = ("tasks.done", "tasks.cancel", "blocks.rethink", "blocks.remove", "groups.remove")
EDITS: Final[Mapping[str, EditRoute]] = {route.kind: route for route in EDIT_ROUTES if route.kind in ACTIONS}
"""The REST route of each form, by the kind of its command."""


class TaskListQuery(TasksQuery, Noticed):
    """Query of the list of tasks."""


class HeldListQuery(HeldQuery, Noticed):
    """Query of the lists of blocks and groups."""


def router(pages: ConsolePages, reader: Caller, *, record_reader: RecordReader, edits: EditSender) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class(), include_in_schema=False)

    def listed(request: Request, kind: Kind, query: HeldQuery, caller: Caller, **values: Any) -> Response:
        selection = query.selection(caller)
        return pages.page(
            request,
            f"{kind}.html",
            caller=caller,
            tenant=selection.tenant_id,
            owner=selection.owner,
            query=query,
            sensitivities=SENSITIVITIES,
            writes="memory:write" in caller.scopes,
            commands=as_commands(request, kind, query, cli=_command(kind, query, selection)),
            **values,
        )

    @routes.get("/tasks")
    async def tasks(request: Request, caller: Caller = reader) -> Response:
        query = asked(TaskListQuery, request)
        states = () if query.state is None else (query.state,)
        found = record_reader.tasks(query.selection(caller), states=states, limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        return listed(request, "tasks", query, caller, page=page, states=get_args(TaskState), pending=PENDING)

    @routes.get("/blocks")
    async def blocks(request: Request, caller: Caller = reader) -> Response:
        query = asked(HeldListQuery, request)
        found = record_reader.blocks(query.selection(caller), limit=query.limit, cursor=query.cursor)
        return listed(request, "blocks", query, caller, page=await within_bounds(found))

    @routes.get("/groups")
    async def groups(request: Request, caller: Caller = reader) -> Response:
        query = asked(HeldListQuery, request)
        found = record_reader.groups(query.selection(caller), limit=query.limit, cursor=query.cursor)
        return listed(request, "groups", query, caller, page=groups_shown(await within_bounds(found), caller))

    @routes.post("/{kind}/{action}")
    async def act(request: Request, kind: Kind, action: str, caller: Caller = reader) -> Response:
        form = await pages.forms.form(request)
        caller.require("memory:write")
        route = EDITS.get(f"{kind}.{action}")
        if route is None:
            raise not_found(f"the console has no action {action} for {kind}")
        back, record_id = form.pop("back", None), form.pop("record_id", "")
        done = await edits.send(route, checked_model(body_model(route), form), caller, record_id)
        return pages.done(request, back, "accepted" if done.result is None else "applied")

    return routes


def _command(kind: Kind, query: HeldQuery, selection: RecordSelection) -> list[str | None]:
    owner = selection.owner
    line: list[str | None] = [kind.removesuffix("s"), "list", "--tenant", selection.tenant_id]
    if kind == "groups":
        return [*line, "--of", None if owner is None else f"{owner.scope}:{owner.id}"]
    return [*line, *owner_arguments(owner), *(("--state", query.state) if isinstance(query, TasksQuery) else ())]
