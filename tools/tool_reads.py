"""The tools that read. None of them changes memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeVar

from ..memory.recall.word_query import WordQuery
from ..memory.tenant_policies import TenantPolicies
from ..recall.paging import PAGE_MAX, Page
from ..recall.profile import ProfileReader, ProfileRequest
from ..recall.record_conditions import MetadataCondition, RecordConditions
from ..recall.record_filters import RecordSelection
from ..recall.record_reader import RecordReader
from ..recall.request import ReadSession, RecallRequest
from ..recall.service import RecalledMemory, RecallPort, RecallResult
from ..recall.slots import SlotSelection, tiers_with_slots
from ..recall.verbatim import EpisodeRef, VerbatimReader
from ..schemas.facts import Fact
from ..schemas.profile import ProfileValue
from ..schemas.recall import Tier
from ..schemas.tools import (
    ConversationSearch,
    FactSearch,
    FilteredSearch,
    FoundMessage,
    FoundMessages,
    FoundTrace,
    FoundTraces,
    KnownProfile,
    KnownSlot,
    KnownValue,
    ListedProcedure,
    ListedProcedures,
    MemoryScope,
    MemoryType,
    ProcedureList,
    ProfileTool,
    RecalledTrace,
    RecalledTraces,
    RecallEpisodes,
    RecallTool,
    Rehydrated,
    RehydrateMemory,
    TraceSearch,
)
from .audit import audit
from .tool_call import Call, record_id, trace_id
from .tool_port import ToolError

SEARCHED_MAX: Final = 2_000
"""Maximum records of a type that a search by words reads, the newest first."""
ALL_TIERS: tuple[Tier, ...] = ("semantic", "working", "episodic", "turns")
CHOSEN_LIMIT: Final = 5
CHOSEN_LIMIT_MAX: Final = 20
"""Number of items in an answer that a model chooses: the default, and the maximum."""


class _Searched(Protocol):
    """A fact or an episode."""

    @property
    def content(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def strength(self) -> float: ...
    @property
    def tags(self) -> tuple[str, ...]: ...


S = TypeVar("S", bound=_Searched)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReads:
    """The tools that read. `choice`: the recall that the tool `recall` uses when a model chooses the items of the
    answer. None: the items are ranked, as in all other tools."""

    recall: RecallPort
    records: RecordReader
    profiles: ProfileReader
    verbatim: VerbatimReader
    now: Callable[[], datetime]
    policies: TenantPolicies
    choice: RecallPort | None = None

    async def recall_all(self, args: RecallTool, call: Call) -> RecalledTraces:
        slots = self.profiles.select(call.identity.tenant_id, args.slots)
        if self.choice is None:
            usual = self.policies.of(call.identity.tenant_id, call.identity.agent_id).recall.limit
            request = self._request(args, args.limit or usual, ALL_TIERS, call, slots=slots)
            return _recalled(await self.recall.recall(request, now=self.now()))
        limit = min(args.limit or CHOSEN_LIMIT, CHOSEN_LIMIT_MAX)
        request = self._request(args, limit, ALL_TIERS, call, slots=slots)
        return _recalled(await self.choice.recall(request, now=self.now()))

    async def recall_episodes(self, args: RecallEpisodes, call: Call) -> RecalledTraces:
        return _recalled(await self._recall(args, args.limit, ("episodic",), call))

    async def search_conversations(self, args: ConversationSearch, call: Call) -> FoundMessages:
        found = await self._recall(args, args.limit, ("turns",), call)
        if found.silent:
            raise ToolError("the session log does not answer now; try again in a moment")
        messages = [
            FoundMessage(
                turn_id=source.turn_id, role=each.role, content=each.item.content, occurred_at=source.occurred_at
            )
            for each in found.items
            for source in each.sources[:1]
            if source.turn_id is not None and source.occurred_at is not None and each.role is not None
        ]
        return FoundMessages(results=tuple(messages))

    async def search_facts(self, args: FactSearch, call: Call) -> FoundTraces:
        request = RecallRequest(
            tenant_id=call.identity.tenant_id,
            owner=call.identity.user,
            cue=args.query,
            limit=args.limit,
            tiers=("semantic",),
            subject=args.subject,
            category=args.category,
            conditions=_conditions(args),
            min_score=args.min_score,
            slots=self.profiles.select(call.identity.tenant_id, args.slots),
            ceiling=call.identity.ceiling,
            asked_by=call.identity.caller,
        )
        found = await self.recall.recall(request, now=self.now())
        if found.silent:
            raise ToolError("the facts do not answer now; try again in a moment")
        known = await self.records.facts_by_id(
            call.identity.tenant_id,
            [each.item.id for each in found.items],
            sees=call.identity.sees,
            ceiling=call.identity.ceiling,
        )
        facts = [known[each.item.id] for each in found.items if each.item.id in known]
        return FoundTraces(results=tuple(_found_fact(each) for each in facts))

    async def read_profile(self, args: ProfileTool, call: Call) -> KnownProfile:
        identity = call.identity
        request = ProfileRequest(
            tenant_id=identity.tenant_id,
            owner=identity.user,
            subject=args.subject,
            slots=args.slots,
            ceiling=identity.ceiling,
        )
        found = await self.profiles.profile(request, now=self.now())
        slots = (
            KnownSlot(
                slot=each.slot,
                values=tuple(_known_value(value) for value in each.values),
                denied=tuple(_known_value(value) for value in each.denied),
            )
            for each in found.slots
        )
        return KnownProfile(subject=found.subject, slots=tuple(slots), truncated=found.truncated)

    async def search_memory(self, args: TraceSearch, call: Call) -> FoundTraces:
        """Search facts, episodes, procedures and tasks by words."""
        query = WordQuery(args.query, locale=self.policies.of(call.identity.tenant_id).conflict.locale)
        scope: MemoryScope = args.scope or "user"
        selection = RecordSelection(
            tenant_id=call.identity.tenant_id,
            owner=call.owner(scope),
            session_id=call.session_id(scope),
            ceiling=call.identity.ceiling,
        )
        results: list[FoundTrace] = []
        if args.type in (None, "semantic"):
            facts = await self._matching(query, self.records.facts, selection)
            results += [_found(each.fact_id, each, "semantic", scope) for each in facts]
        if args.type in (None, "episodic"):
            episodes = await self._matching(query, self.records.episodes, selection)
            results += [_found(each.episode_id, each, "episodic", scope) for each in episodes]
        if args.type in (None, "procedural"):
            procedures = await self.records.procedures(selection, limit=PAGE_MAX)
            results += [
                FoundTrace(
                    id=trace_id(each.procedure_id),
                    content="\n".join((each.name, each.trigger, *each.steps)),
                    type="procedural",
                    scope=scope,
                    strength=1.0,
                )
                for each in procedures.items
                if query.matches("\n".join((each.name, each.trigger, *each.steps)))
            ]
        if args.type in (None, "prospective"):
            tasks = await self.records.tasks(selection, limit=PAGE_MAX)
            results += [
                FoundTrace(
                    id=trace_id(each.task_id),
                    content=each.content,
                    type="prospective",
                    scope=scope,
                    strength=1.0,
                    tags=each.tags,
                )
                for each in tasks.items
                if query.matches(f"{each.subject} {each.content} {each.condition or ''}")
            ]
        return FoundTraces(results=tuple(results[: args.limit]))

    async def rehydrate(self, args: RehydrateMemory, call: Call) -> Rehydrated:
        ref = EpisodeRef(
            call.identity.tenant_id,
            record_id(args.trace_id),
            sees=lambda owner: owner == call.identity.user,
            ceiling=call.identity.ceiling,
        )
        found = await self.verbatim.rehydrate(ref, now=self.now())
        audit(
            "rehydrate",
            who=call.identity.caller,
            tenant_id=ref.tenant_id,
            owner=call.identity.user,
            result="read" if found is not None and found.content is not None else "nothing",
            episode_id=ref.episode_id,
        )
        if found is None:
            return Rehydrated(verbatim_content=None, archived_at=None)
        return Rehydrated(verbatim_content=found.content, archived_at=found.archived_at)

    async def list_procedures(self, args: ProcedureList, call: Call) -> ListedProcedures:
        identity = call.identity
        found = await self.records.procedures_for(identity.tenant_id, identity.user, ceiling=identity.ceiling)
        return ListedProcedures(
            procedures=tuple(ListedProcedure(name=it.name, trigger=it.trigger, steps=it.steps) for it in found)
        )

    async def _recall(self, args: FilteredSearch, limit: int, tiers: tuple[Tier, ...], call: Call) -> RecallResult:
        return await self.recall.recall(self._request(args, limit, tiers, call), now=self.now())

    def _request(
        self,
        args: FilteredSearch,
        limit: int,
        tiers: tuple[Tier, ...],
        call: Call,
        *,
        slots: SlotSelection | None = None,
    ) -> RecallRequest:
        identity = call.identity
        return RecallRequest(
            tenant_id=identity.tenant_id,
            owner=identity.user,
            session=None if identity.session_id is None else ReadSession(identity.user_id, identity.session_id),
            cue=args.query,
            limit=limit,
            tiers=tiers_with_slots(tiers, slots),
            conditions=_conditions(args),
            min_score=args.min_score,
            slots=slots,
            ceiling=identity.ceiling,
            asked_by=identity.caller,
        )

    async def _matching(
        self,
        query: WordQuery,
        read: Callable[..., Awaitable[Page[S]]],
        selection: RecordSelection,
    ) -> Sequence[S]:
        """Return the records that match the query, the newest first."""
        found: list[S] = []
        cursor: str | None = None
        for _ in range(SEARCHED_MAX // PAGE_MAX):
            page = await read(selection, limit=PAGE_MAX, cursor=cursor)
            found += [each for each in page.items if query.matches(f"{each.subject} {each.content}")]
            cursor = page.next
            if cursor is None:
                break
        return found


def _conditions(args: FilteredSearch) -> RecordConditions:
    """Return the conditions of a search. Raises ToolError for an invalid one."""
    pairs = (each.partition(":") for each in args.metadata)
    try:
        return RecordConditions(
            tags=args.tags,
            metadata=tuple(MetadataCondition(name, (value,)) for name, _, value in pairs),
            since=args.since,
            until=args.until,
        )
    except ValueError as error:
        raise ToolError(str(error)) from None


def _found_fact(fact: Fact) -> FoundTrace:
    return _found(fact.fact_id, fact, "semantic", "user")


def _found(record: str, found: _Searched, kind: MemoryType, scope: MemoryScope) -> FoundTrace:
    content = found.content if found.subject == "user" else f"{found.subject}: {found.content}"
    return FoundTrace(
        id=trace_id(record), content=content, type=kind, scope=scope, strength=found.strength, tags=found.tags
    )


def _known_value(value: ProfileValue) -> KnownValue:
    return KnownValue(
        id=trace_id(value.fact_id),
        content=value.content,
        value=value.value,
        qualifier=value.qualifier,
        since=value.valid_from,
        inverse_of=value.inverse_of,
    )


def _recalled(found: RecallResult) -> RecalledTraces:
    return RecalledTraces(
        items=tuple(_recalled_item(each) for each in found.items), missing=tuple(each.part for each in found.missing)
    )


def _recalled_item(each: RecalledMemory) -> RecalledTrace:
    at = each.at or next((source.occurred_at for source in each.sources if source.occurred_at is not None), None)
    return RecalledTrace(
        tier=each.item.tier,
        id=trace_id(each.item.id),
        content=each.item.content,
        score=each.item.score,
        subject=each.item.subject,
        occurred_at=at,
    )
