"""The tools over scripted reads and commands: who has which, what they refuse, what a late write answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from memstream.adapters.ports import VectorStore
from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.profile import ProfileReader
from memstream.recall.record_reader import RecordReader
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult
from memstream.recall.verbatim import VerbatimReader
from memstream.schemas.base import Contract
from memstream.schemas.commands import Command, CommandResult, ResultError
from memstream.schemas.tools import TOOLS, FactTold, RecalledTraces, ToolAccepted
from memstream.tools.editor import MemoryEditor
from memstream.tools.tool_port import ToolError, ToolIdentity
from memstream.tools.tool_reads import ToolReads
from memstream.tools.tool_writes import ToolWrites
from memstream.tools.toolbox import ToolBox

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
JAKE = ToolIdentity(tenant_id="acme", user_id="jake", caller="test", session_id="s1")
REMEMBERED = {"decision": "admit", "fact_id": "f1", "reason": "new", "changed_fact_ids": ["f1"]}


@dataclass
class ScriptedCommands:
    """Answers each command with this result, an error code, or not in time."""

    answer: dict[str, Any] | str | None = None
    asked: list[Command] = field(default_factory=list)

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        self.asked.append(command)
        match self.answer:
            case None:
                return None
            case str(code):
                error = ResultError(code=code, message="merge the two")
                return CommandResult(command_id=command.command_id, status="refused", error=error, at=AT)
            case result:
                return CommandResult(command_id=command.command_id, status="applied", result=result, at=AT)


@dataclass
class ScriptedRecall:
    asked: list[RecallRequest] = field(default_factory=list)

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        self.asked.append(request)
        return RecallResult((), ())


class NoRecords:
    async def fact(self, *given: object, **named: object) -> None:
        return None

    async def episode(self, *given: object, **named: object) -> None:
        return None

    procedure_by_id = task = episode


@dataclass
class Box:
    commands: ScriptedCommands = field(default_factory=ScriptedCommands)
    recall: ScriptedRecall = field(default_factory=ScriptedRecall)
    pack: tuple[str, ...] = ()
    """The tenant's."""

    def tools(self) -> ToolBox:
        records = cast(RecordReader, NoRecords())
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", {"tools": {"pack": list(self.pack)}})
        return ToolBox(
            reads=ToolReads(
                recall=self.recall,
                records=records,
                profiles=ProfileReader(store=cast(VectorStore, None), policies=policies),
                verbatim=cast(VerbatimReader, None),
                now=lambda: AT,
                policies=policies,
            ),
            writes=ToolWrites(
                editor=MemoryEditor(commands=self.commands, now=lambda: AT),
                commands=self.commands,
                records=records,
                now=lambda: AT,
            ),
            policies=policies,
        )

    async def call(self, name: str, identity: ToolIdentity = JAKE, key: str | None = None, **given: Any) -> Contract:
        return await self.tools().call(name, given, identity=identity, key=key)


async def offered(identity: ToolIdentity, pack: tuple[str, ...] = ()) -> set[str]:
    return {spec.name for spec in await Box(pack=pack).tools().offered(identity)}


async def test_who_has_which_tools() -> None:
    every = {spec.name for spec in TOOLS}
    reads = {spec.name for spec in TOOLS if spec.effect == "read"} - {"rehydrate_memory"}
    assert await offered(JAKE) == every - {"rehydrate_memory", "memory_reflect"}
    assert await offered(replace(JAKE, admin=True)) == every - {"rehydrate_memory"}
    assert await offered(replace(JAKE, may_write=False)) == reads
    assert await offered(replace(JAKE, tools=frozenset(("recall", "memory_reflect")))) == {"recall"}
    assert await offered(JAKE, ("rehydrate_memory",)) == {"rehydrate_memory"}
    pack = ("recall", "fact_search", "memory_reflect")
    assert await offered(replace(JAKE, tools=frozenset(("recall", "block_append"))), pack) == {"recall"}
    assert await offered(replace(JAKE, tenant_id="other"), pack) == await offered(JAKE)


async def test_a_tool_that_is_not_offered_does_not_run() -> None:
    box = Box()
    with pytest.raises(ToolError, match="there is no tool 'memory_reflect' here; there are memory_add"):
        await box.call("memory_reflect")
    with pytest.raises(ToolError, match="there is no tool 'fact_remember'"):
        await box.call("fact_remember", replace(JAKE, may_write=False), content="Works at Stripe")
    assert box.commands.asked == []


async def test_a_statement_of_an_agent_is_its_own_word_in_its_session() -> None:
    box = Box(ScriptedCommands(REMEMBERED))
    told = await box.call("fact_remember", content="Works at Stripe", category=None, valid_from=None)
    assert told == FactTold(decision="admit", fact_id="f1", reason="new")
    (command,) = box.commands.asked
    assert (command.kind, command.key, command.issued_by) == ("facts.remember", "acme/user/jake", "test")
    assert (command.args["trust"], command.args["session_id"]) == ("assistant", "s1")


async def test_a_call_that_is_repeated_with_a_key_is_the_same_command() -> None:
    box = Box(ScriptedCommands(REMEMBERED))
    for key in ("k1", "k1", "k2"):
        await box.call("fact_remember", key=key, content="Works at Stripe")
    first, again, other = (each.command_id for each in box.commands.asked)
    assert (first == again, first == other) == (True, False)


async def test_a_write_that_was_not_applied_in_time_is_accepted() -> None:
    box = Box()
    accepted = await box.call("fact_remember", content="Works at Stripe")
    assert accepted == ToolAccepted(accepted=box.commands.asked[0].command_id)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("fact_remember", {}, "fact_remember: content: Field required"),
        ("fact_remember", {"content": "x", "tenant": "other"}, "fact_remember: tenant"),
        ("memory_add", {"content": " \n"}, "memory_add: content: .*no character except white space"),
        ("memory_search", {"query": "(tea"}, "a parenthesis is not closed"),
        ("memory_add", {"content": "x", "scope": "group"}, "names none: use another scope"),
        ("memory_update", {"trace_id": "mt_x"}, "needs content, tags, or both"),
        ("memory_merge", {"trace_ids": ["mt_x", "mt_y"]}, "there is no memory 'mt_x' of this user"),
        ("fact_forget", {"fact_id": "x"}, "there is no fact 'x' of this user"),
        ("fact_remember", {"content": "Works at Stripe"}, "merge the two"),
        ("recall", {"query": "work", "slots": ["boss"]}, "there is no slot 'boss'; known: name, nickname"),
        ("profile", {"slots": ["boss"]}, "there is no slot 'boss'; known: name, nickname"),
    ],
)
async def test_what_goes_wrong_is_told_in_one_sentence(name: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError, match=told.replace("(", r"\(")):
        await Box(ScriptedCommands("duplicate")).call(name, **given)


async def test_a_scope_that_the_credential_does_not_reach_is_refused() -> None:
    identity = replace(JAKE, group_id="team", sees=lambda owner: owner.scope == "user")
    with pytest.raises(ToolError, match="no access to the group"):
        await Box(ScriptedCommands(REMEMBERED)).call("memory_add", identity, content="x", scope="group")


async def test_recall_reads_what_the_connection_may_see() -> None:
    box = Box()
    assert await box.call("recall", query="work", limit=3) == RecalledTraces(items=())
    (request,) = box.recall.asked
    assert (request.tenant_id, request.owner.id, request.ceiling, request.limit) == ("acme", "jake", "internal", 3)
    assert request.session is not None
    assert request.asked_by == JAKE.caller


async def test_recall_by_slot_reads_facts_alone_also_where_a_model_chooses() -> None:
    box, chosen = Box(), ScriptedRecall()
    tools = box.tools()
    for each in (tools, replace(tools, reads=replace(tools.reads, choice=chosen))):
        await each.call("recall", {"query": "work", "slots": ["employer"]}, identity=JAKE)
    (ranked,), (by_model,) = box.recall.asked, chosen.asked
    for request in (ranked, by_model):
        assert request.slots is not None
        assert (request.slots.names, request.tiers) == (("employer",), ("semantic",))


async def test_an_unknown_memory_is_not_updated_and_not_deleted() -> None:
    box = Box()
    assert (await box.call("memory_update", trace_id="mt_x", tags=["a"])).to_payload() == {"updated": False}
    assert (await box.call("memory_delete", trace_id="x")).to_payload() == {"deleted": False}
    assert box.commands.asked == []


BLOCK = {"name": "Task", "value": "x", "characters": 1, "limit": 9}
WRITES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("fact_remember", {"content": "Likes tea"}, REMEMBERED),
    ("memory_add", {"content": "Likes tea", "type": "semantic"}, REMEMBERED),
    ("memory_add", {"content": "Met Ana", "type": "episodic"}, {"episode_id": "e1", "existing": False}),
    (
        "memory_add",
        {"content": "For a release\nTag it", "type": "procedural"},
        {"procedure_id": "p1", "name": "x", "version": 1, "changed": True},
    ),
    ("memory_add", {"content": "Call Ana", "type": "prospective"}, {"task_id": "k1", "state": "open", "changed": True}),
    ("block_append", {"name": "Task", "text": "x"}, BLOCK),
    ("block_rethink", {"name": "Task", "value": "x"}, BLOCK),
    (
        "block_replace",
        {"name": "Task", "old": "x", "new": "y"},
        {"name": "T", "value": "y", "characters": 1, "limit": 9},
    ),
]


@pytest.mark.parametrize(("tool", "given", "answer"), WRITES)
@pytest.mark.parametrize("speaks", [False, True])
async def test_a_tool_states_the_word_of_an_assistant_unless_its_caller_speaks_for_the_user(
    tool: str, given: dict[str, Any], answer: dict[str, Any], speaks: bool
) -> None:
    box = Box(ScriptedCommands(answer))
    await box.tools().call(tool, given, identity=replace(JAKE, speaks_for_user=speaks))
    (command,) = box.commands.asked
    assert command.args["trust"] == ("user" if speaks else "assistant")
