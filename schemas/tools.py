"""Tools of agents as data: names, descriptions, arguments, results, side effects.

One implementation serves them over HTTP, MCP and function calling. Tenant, user and session come from the credential
and the transport, never from the arguments. docs/reference/edits.md describes the edits of the tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints

from .base import CONTENT_MAX, Contract, Instant, OurId, Reason, Subject, Tags, Unit
from .edits.blocks import BLOCK_LIMIT_MAX
from .edits.common import MERGED_MAX, GivenContent, GivenSubject, Name
from .edits.facts import FactDecision, ForgetCause
from .observations import Category
from .procedures import ProcedureText
from .slots import SlotName

SideEffect = Literal["read", "write", "destructive"]
Guard = Literal["free", "confirm", "admin"]
"""`confirm`: the host asks a person first. `admin`: the credential needs the scope memory:admin."""
MemoryType = Literal["episodic", "semantic", "procedural", "prospective"]
MemoryScope = Literal["user", "session", "thread", "agent", "persona", "org", "organization", "group"]
"""`thread` means `session`, `persona` means `agent`, `organization` means `org`."""
TRACE_PREFIX: Final = "mt_"
"""Prefix of a trace id; the rest is the id of any record. The prefix may be omitted."""
TraceId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=CONTENT_MAX)]
Limit = Annotated[int, Field(ge=1, le=100)]
Slots = Annotated[tuple[SlotName, ...], Field(max_length=128)]
MetadataText = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z_][A-Za-z0-9_]*:")]
"""A pair `name:text` of the metadata."""
BlockText = Annotated[str, StringConstraints(max_length=BLOCK_LIMIT_MAX)]


# ------------------------------------------------------------------------------------------------ arguments
class ToolArguments(Contract):
    """Base of arguments. The string after a field describes it to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class MemoryAdd(ToolArguments):
    content: GivenContent
    type: MemoryType = "episodic"
    scope: MemoryScope = "user"
    tags: Tags = ()


class MemoryUpdate(ToolArguments):
    trace_id: TraceId
    content: GivenContent | None = None
    tags: Tags | None = None


class MemoryDelete(ToolArguments):
    trace_id: TraceId


class MemoryMerge(ToolArguments):
    trace_ids: Annotated[tuple[TraceId, ...], Field(min_length=2, max_length=MERGED_MAX)]
    content: GivenContent | None = None
    """Left out: their texts, one after the other."""


class TraceSearch(ToolArguments):
    query: Query
    """Words, "a phrase", AND, OR, NOT, prefix*."""
    type: MemoryType | None = None
    scope: MemoryScope | None = None
    limit: Limit = 10


class MemoryReflect(ToolArguments):
    topic: Annotated[str, StringConstraints(max_length=200)] | None = None
    """Reserved; has no effect yet."""


class RehydrateMemory(ToolArguments):
    trace_id: TraceId


class ToolBlockAppend(ToolArguments):
    name: Name
    text: Annotated[str, StringConstraints(min_length=1, max_length=BLOCK_LIMIT_MAX)]


class ToolBlockReplace(ToolArguments):
    name: Name
    old: Annotated[str, StringConstraints(min_length=1, max_length=BLOCK_LIMIT_MAX)]
    """Must occur exactly once."""
    new: BlockText


class ToolBlockRethink(ToolArguments):
    name: Name
    value: BlockText


class ToolFactRemember(ToolArguments):
    content: GivenContent
    """One statement in the third person: `Works at Stripe`."""
    subject: GivenSubject = "user"
    """The subject: `user`, or a lower-case name."""
    category: Category | None = None
    valid_from: Instant | None = None
    """Since when it holds, if that was said."""
    tags: Tags = ()


class FilteredSearch(ToolArguments):
    """Arguments that every search shares."""

    query: Query
    tags: Tags = ()
    """Only memories with all of these tags."""
    metadata: Annotated[tuple[MetadataText, ...], Field(max_length=8)] = ()
    """Only memories with these pairs in their metadata: `source:crm`."""
    since: Instant | None = None
    """Only what was said at this time or later."""
    until: Instant | None = None
    """Only what was said until this time."""
    min_score: Unit = 0.0
    """Leave out results with a lower score; 0: leave out none."""


class FactSearch(FilteredSearch):
    subject: Subject | None = None
    category: Category | None = None
    slots: Slots = ()
    """Only facts of these slots: employer, residence, diet …"""
    limit: Limit = 10


class ProfileTool(ToolArguments):
    subject: Subject = "user"
    """The subject: `user`, or a lower-case name."""
    slots: Slots = ()
    """Only these: employer, residence, diet … Left out: all."""


class ToolFactSupersede(ToolArguments):
    fact_id: TraceId
    content: GivenContent


class ToolFactForget(ToolArguments):
    fact_id: TraceId
    because: ForgetCause | None = None
    """`wrong`: it was never true, and what it had replaced is believed again. `over`: it was true."""
    reason: Reason = ""


class RecallEpisodes(FilteredSearch):
    limit: Limit = 10


class ConversationSearch(FilteredSearch):
    limit: Limit = 10


class ProcedureList(ToolArguments):
    """No arguments."""


class ToolProcedureActivate(ToolArguments):
    name: Name


class RecallTool(FilteredSearch):
    slots: Slots = ()
    """Only facts of these slots: employer, residence, diet … Left out: all of memory."""
    limit: Limit | None = None
    """Left out: as the policy has it, usually 10; where a model chooses the items 5, and at most 20 are given."""


# ------------------------------------------------------------------------------------------------ results
class TraceAdded(Contract):
    trace_id: TraceId
    existing: bool


class TraceUpdated(Contract):
    updated: bool


class TraceDeleted(Contract):
    deleted: bool


class TracesMerged(Contract):
    merged_trace_id: TraceId
    sources_deleted: int


class FoundTrace(Contract):
    id: TraceId
    content: str
    type: MemoryType
    scope: MemoryScope
    strength: float
    tags: tuple[str, ...] = ()


class FoundTraces(Contract):
    results: tuple[FoundTrace, ...]


class ReflectCounts(Contract):
    pruned: int = 0
    merged: int = 0
    derived: int = 0
    compacted: int = 0
    duration_ms: int = 0


class Rehydrated(Contract):
    verbatim_content: str | None
    archived_at: Instant | None


class BlockEdited(Contract):
    name: str
    value: str
    characters: int
    limit: int


class FactTold(Contract):
    decision: FactDecision
    fact_id: OurId
    reason: str


class FactReplaced(Contract):
    old_fact_id: OurId
    fact_id: OurId


class Forgotten(Contract):
    forgotten: bool
    restored_fact_ids: tuple[OurId, ...] = ()
    """The facts that are believed again."""


class RecalledTrace(Contract):
    tier: str
    id: str
    content: str
    score: float
    subject: str | None = None
    occurred_at: Instant | None = None


class RecalledTraces(Contract):
    items: tuple[RecalledTrace, ...]
    missing: tuple[str, ...] = ()
    """Parts of memory that did not answer."""


class KnownValue(Contract):
    id: TraceId
    content: str
    value: str | None = None
    qualifier: str | None = None
    since: Instant
    inverse_of: str | None = None


class KnownSlot(Contract):
    slot: str
    values: tuple[KnownValue, ...]
    denied: tuple[KnownValue, ...] = ()


class KnownProfile(Contract):
    subject: str
    slots: tuple[KnownSlot, ...]
    truncated: bool = False


class FoundMessage(Contract):
    turn_id: str
    role: str
    content: str
    occurred_at: Instant


class FoundMessages(Contract):
    results: tuple[FoundMessage, ...]


class ListedProcedure(Contract):
    name: str
    trigger: ProcedureText
    steps: tuple[ProcedureText, ...]


class ListedProcedures(Contract):
    procedures: tuple[ListedProcedure, ...]


class ActiveProcedure(Contract):
    name: str
    steps: tuple[ProcedureText, ...]
    active: bool


class ToolAccepted(Contract):
    """Answer of a write that was not applied in time. The command waits in the log."""

    accepted: str
    """The command id."""


# ------------------------------------------------------------------------------------------------ the tools
@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. `description` explains its function and use to a model."""

    name: str
    description: str
    args: type[Contract]
    result: type[Contract]
    effect: SideEffect
    guard: Guard = "free"
    idempotent: bool = True
    """True when a second call with the same arguments has no further effect."""
    by_default: bool = True
    """True when the default pack contains the tool."""


def _specs() -> Iterable[ToolSpec]:
    yield ToolSpec(
        "memory_add",
        "Keep something in memory. Use it when the user tells something worth keeping: an event (type episodic), a "
        "lasting fact about the user (semantic), a way of doing something (procedural), something to do later "
        "(prospective). An identical text is not kept twice.",
        MemoryAdd,
        TraceAdded,
        "write",
    )
    yield ToolSpec(
        "memory_update",
        "Reword a memory or change its tags. Use it when what memory says is outdated in wording or imprecise. For a "
        "fact with a new value use fact_supersede.",
        MemoryUpdate,
        TraceUpdated,
        "write",
    )
    yield ToolSpec(
        "memory_delete",
        "Take a memory out of every read. Use it when the user asks to forget something, or when a memory is wrong or "
        "harmful. It is kept for audit.",
        MemoryDelete,
        TraceDeleted,
        "destructive",
        guard="confirm",
    )
    yield ToolSpec(
        "memory_merge",
        "Make one memory of several that say the same. Use it when a search returns duplicates. The first one stays.",
        MemoryMerge,
        TracesMerged,
        "destructive",
        guard="confirm",
    )
    yield ToolSpec(
        "memory_search",
        'Find memories by their words: plain words, "a phrase", AND, OR, NOT, prefix*. Use it to find the id of a '
        "memory that you want to change, or when exact words matter. To answer a question use recall.",
        TraceSearch,
        FoundTraces,
        "read",
    )
    yield ToolSpec(
        "memory_reflect",
        "Maintain memory now: prune what faded, merge duplicates, derive insights. Use it rarely, after much was "
        "learnt.",
        MemoryReflect,
        ReflectCounts,
        "destructive",
        guard="admin",
        idempotent=False,
    )
    yield ToolSpec(
        "rehydrate_memory",
        "Read the exact words of an episode of which memory shows only the gist. Use it when details matter.",
        RehydrateMemory,
        Rehydrated,
        "read",
        by_default=False,
    )
    yield ToolSpec(
        "block_append",
        "Add a line to a block of your prompt. Use it to note something about the current task that must stay in view.",
        ToolBlockAppend,
        BlockEdited,
        "write",
        idempotent=False,
    )
    yield ToolSpec(
        "block_replace",
        "Replace a part of a block of your prompt. The old text must occur exactly once. Use it when a line of the "
        "block no longer holds.",
        ToolBlockReplace,
        BlockEdited,
        "write",
        idempotent=False,
    )
    yield ToolSpec(
        "block_rethink",
        "Write a block of your prompt anew. Use it to reorganise the block, or to make a new one.",
        ToolBlockRethink,
        BlockEdited,
        "write",
    )
    yield ToolSpec(
        "fact_remember",
        "Remember one fact about the user or somebody else. Use it when you learn something that stays true: a job, a "
        "home, a preference, a relationship. Memory compares it with what it knows and tells what it decided.",
        ToolFactRemember,
        FactTold,
        "write",
    )
    yield ToolSpec(
        "fact_search",
        "Find facts, each with its id. Use it before you change a fact, or to see what is known about somebody.",
        FactSearch,
        FoundTraces,
        "read",
    )
    yield ToolSpec(
        "profile",
        "Read what is known about somebody now, by slot: employer, residence, family, likes. Each value has the id of "
        "its fact. Use it for an overview of a person. To answer a question use recall.",
        ProfileTool,
        KnownProfile,
        "read",
    )
    yield ToolSpec(
        "fact_supersede",
        "Replace the value of a fact: the old one held until now, the new one holds from now on. Use it when "
        "something changed, such as a job or an address.",
        ToolFactSupersede,
        FactReplaced,
        "destructive",
        guard="confirm",
    )
    yield ToolSpec(
        "fact_forget",
        "Forget one fact. Use it when the user asks for it. If the fact was never true, say so: then the fact that it "
        "had replaced is believed again.",
        ToolFactForget,
        Forgotten,
        "destructive",
        guard="confirm",
    )
    yield ToolSpec(
        "recall_episodes",
        "Recall what happened: events, decisions, milestones. Use it for questions about the past.",
        RecallEpisodes,
        RecalledTraces,
        "read",
    )
    yield ToolSpec(
        "conversation_search",
        "Search the exact words of this conversation and earlier ones. Use it when the user refers to what was said.",
        ConversationSearch,
        FoundMessages,
        "read",
    )
    yield ToolSpec(
        "procedure_list",
        "List the procedures that are known: how things are done here. Use it before a task that has steps.",
        ProcedureList,
        ListedProcedures,
        "read",
    )
    yield ToolSpec(
        "procedure_activate",
        "Put a procedure into the context of this session until it is done. Use it when you start on its steps.",
        ToolProcedureActivate,
        ActiveProcedure,
        "write",
    )
    yield ToolSpec(
        "recall",
        "Recall what memory knows about something, over facts, episodes, the current focus and past conversations. "
        "Use it before you answer a question about the user.",
        RecallTool,
        RecalledTraces,
        "read",
    )


TOOLS: Final[tuple[ToolSpec, ...]] = tuple(_specs())
TOOLS_BY_NAME: Final[dict[str, ToolSpec]] = {tool.name: tool for tool in TOOLS}
