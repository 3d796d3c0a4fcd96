"""Reads of records that people write by hand: blocks, procedures, tasks, groups, and the holdings of a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from ..recall.paging import Page
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
    """Query for an owner's records, in the order of their ids."""

    def selection(self, caller: Caller) -> RecordSelection:
        tenant_id, owner = self.tenant_of(caller), self.owner_or_all(caller)
        caller.check_ceiling(self.ceiling, tenant_id, owner)
        return RecordSelection(tenant_id, owner=owner, ceiling=self.ceiling)


class TasksQuery(HeldQuery):
    state: Annotated[TaskState | None, Field(description="State of the tasks; null: open or due.")] = None


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


def groups_shown(page: Page[MemoryGroup], caller: Caller) -> Page[MemoryGroup]:
    """Return the groups with the members that the caller may see."""
    shown = (each.model_copy(update={"members": tuple(filter(caller.sees, each.members))}) for each in page.items)
    return Page(tuple(shown), page.next)


def router(*, record_reader: RecordReader, credentials: Credentials) -> APIRouter:
    routes = APIRouter(responses={404: {"description": "There is no such record that the caller may see."}})
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/blocks", tags=["blocks"], summary="Blocks of an owner")
    async def blocks(query: Annotated[HeldQuery, Query()], caller: Caller = reader) -> BlocksPage:
        """Returns the blocks of an owner. `/v1/sessions/{session_id}/holdings` returns the blocks of a session."""
        found = record_reader.blocks(query.selection(caller), limit=query.limit, cursor=query.cursor)
        page = await within_bounds(found)
        return BlocksPage(items=list(page.items), next=page.next)

    @routes.get("/v1/procedures", tags=["procedures"], summary="Procedures of an owner")
    async def procedures(query: Annotated[HeldQuery, Query()], caller: Caller = reader) -> ProceduresPage:
        """Returns each procedure with its earlier versions."""
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
        """Returns the groups of the tenant or, with an owner, the groups of which this user or agent is a member. A
        token that is bound to users sees no other members."""
        found = record_reader.groups(query.selection(caller), limit=query.limit, cursor=query.cursor)
        page = groups_shown(await within_bounds(found), caller)
        return GroupsPage(items=list(page.items), next=page.next)

    @routes.get("/v1/sessions/{session_id:path}/holdings", tags=["sessions"], summary="Holdings of a session")
    async def holdings(
        session_id: SessionId, query: Annotated[SessionQuery, Query()], caller: Caller = reader
    ) -> SessionHoldings:
        """Returns the session's own blocks, the attached blocks of owners, and the active procedures."""
        selection = query.selection(caller, session_id)
        user_id = selection.user_id or ""
        found = await record_reader.holdings(selection.tenant_id, user_id, session_id, ceiling=query.ceiling)
        if found is None:
            raise not_found(f"the session {session_id} has no holdings: no block was ever written or attached in it")
        return found

    return routes
