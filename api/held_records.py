"""Reads of what is written by hand: blocks, what a session holds, procedures, tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from ..recall.record_filters import RecordSelection
from ..recall.record_reader import RecordReader
from ..schemas.blocks import OwnerBlock, SessionHoldings
from ..schemas.edits.prospective import TaskState
from ..schemas.groups import MemoryGroup
from ..schemas.procedures import Procedure
from ..schemas.prospective import ProspectiveTask
from .credentials import Caller, Credentials, caller_with
from .problems import not_found
from .records import PageQuery, SessionId, SessionQuery, within_bounds


class HeldQuery(PageQuery):
    """An owner's records, by id."""

    def selection(self, caller: Caller) -> RecordSelection:
        caller.check_ceiling(self.ceiling)
        return RecordSelection(self.tenant_of(caller), owner=self.owner_or_all(caller), ceiling=self.ceiling)


class TasksQuery(HeldQuery):
    state: Annotated[TaskState | None, Field(description="null: tasks that are open or due.")] = None


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid")

    next: str | None
    """The cursor of the next page; null on the last page."""


class BlocksPage(_Page):
    items: list[OwnerBlock]


class ProceduresPage(_Page):
    items: list[Procedure]


class GroupsPage(_Page):
    items: list[MemoryGroup]


class TasksPage(_Page):
    items: list[ProspectiveTask]


def router(*, record_reader: RecordReader, credentials: Credentials) -> APIRouter:
    routes = APIRouter(responses={404: {"description": "The caller may see no such record."}})
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/blocks", tags=["blocks"], summary="Blocks of an owner")
    async def blocks(query: Annotated[HeldQuery, Query()], caller: Caller = reader) -> BlocksPage:
        """Those of a session are among what it holds."""
        found = record_reader.blocks(query.selection(caller), limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        return BlocksPage(items=list(page.items), next=page.next)

    @routes.get("/v1/procedures", tags=["procedures"], summary="Procedures of an owner")
    async def procedures(query: Annotated[HeldQuery, Query()], caller: Caller = reader) -> ProceduresPage:
        """Each with its earlier versions."""
        found = record_reader.procedures(query.selection(caller), limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        return ProceduresPage(items=list(page.items), next=page.next)

    @routes.get("/v1/tasks", tags=["tasks"], summary="Tasks of an owner")
    async def tasks(query: Annotated[TasksQuery, Query()], caller: Caller = reader) -> TasksPage:
        states = () if query.state is None else (query.state,)
        selection = query.selection(caller)
        found = record_reader.tasks(selection, states=states, limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        return TasksPage(items=list(page.items), next=page.next)

    @routes.get("/v1/groups", tags=["groups"], summary="Groups, of the tenant or of a member")
    async def groups(query: Annotated[HeldQuery, Query()], caller: Caller = reader) -> GroupsPage:
        """With an owner: the groups in which this user or agent is a member, and so what it reads through each. A token
        that is bound to users sees no other members."""
        found = record_reader.groups(query.selection(caller), limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        shown = [each.model_copy(update={"members": tuple(filter(caller.sees, each.members))}) for each in page.items]
        return GroupsPage(items=shown, next=page.next)

    @routes.get("/v1/sessions/{session_id:path}/holdings", tags=["sessions"], summary="What a session holds")
    async def holdings(
        session_id: SessionId, query: Annotated[SessionQuery, Query()], caller: Caller = reader
    ) -> SessionHoldings:
        """Its own blocks, the blocks of owners that are attached, and the procedures that are active."""
        selection = query.selection(caller, session_id)
        user_id = selection.user_id or ""
        found = await record_reader.holdings(selection.tenant_id, user_id, session_id, ceiling=query.ceiling)
        if found is None:
            raise not_found(f"the session {session_id} holds nothing: no block was ever written or attached in it")
        return found

    return routes
