"""The editors of the soak: users who edit their memory over HTTP.

An editor makes one edit after the other, so that the correct result of each edit is known. Many requests are sent
several times concurrently with one idempotency key, and some must be refused.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from pydantic import BaseModel, JsonValue

from bench.soak.hostile import ORDER, SECRETS, secret_sentence
from bench.soak.traffic import TENANTS, Sent
from memstream.client.edits import Accepted
from memstream.client.errors import ClientError, NotFound, Refused, Unavailable
from memstream.client.http_client import Api
from memstream.schemas import ids
from memstream.verification import InvariantVerdict, Violation
from memstream.verification.rows import History

EDITORS: Final = 10
PAUSE: Final = 3.0
"""Mean seconds between two edits of an editor."""
COPIES: Final = (1, 1, 1, 2, 3)
"""Numbers of concurrent requests with one idempotency key."""
LINES: Final = 20
"""Number of lines at which a block is written from the beginning again."""
TURNS_A_SESSION: Final = 20
ANSWERED_WITHIN: Final = 240.0
"""Maximum seconds until an edit has its result, including outages."""
AGAIN_AFTER: Final = 0.5
COLOURS: Final = ("red", "amber", "green", "blue", "white", "black", "golden", "silver")
THINGS: Final = ("kite", "bicycle", "piano", "tent", "telescope", "canoe", "loom", "typewriter")
BEGIN: Final = "begin"
PROCEDURE: Final = "Deploy"

Call = Callable[..., Awaitable[BaseModel]]
"""A request; it takes its idempotency key by name."""


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A refused edit."""

    status: int
    why: str


Answer = BaseModel | NotApplied


@dataclass(slots=True)
class Editor:
    """One user, and the content that its memory must have."""

    tenant: str
    user: str
    rng: random.Random
    number: int = 0
    """Number of edits."""
    round: int = 0
    notes: list[str] = field(default_factory=list)
    task_lines: list[str] = field(default_factory=list)
    versions: int = 0
    """Version of the procedure."""
    fact: tuple[str, str] | None = None
    """Id and content of the active fact."""
    gone: list[str] = field(default_factory=list)
    """Ids of facts that were forgotten or superseded."""
    pinned: tuple[str, str] | None = None
    """Id and content of the pinned entry."""
    tasks: dict[str, str] = field(default_factory=dict)
    """State of each task by id."""
    one_event: dict[str, str] = field(default_factory=dict)
    """Commands that must cause exactly one event of a fact: description by command id."""
    wrong: list[str] = field(default_factory=list)
    checked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def session(self) -> str:
        return f"edited-{self.round // TURNS_A_SESSION}"

    @property
    def whose(self) -> dict[str, JsonValue]:
        return {"tenant_id": self.tenant, "user_id": self.user}

    @property
    def owner_key(self) -> str:
        return ids.owner_key(self.tenant, "user", self.user)

    def require(self, holds: bool, what: str) -> None:
        self.checked += 1
        if not holds:
            self.wrong.append(f"{self.tenant}/{self.user}: {what}")


def editors(seed: int) -> list[Editor]:
    return [
        Editor(TENANTS[n % len(TENANTS)], f"editor-{n}", random.Random(f"editor/{seed}/{n}")) for n in range(EDITORS)
    ]


async def edit_until(end: float, api: Api, every: Sequence[Editor], sent: Sent, *, now: Callable[[], float]) -> None:
    """Let the editors edit until `end`, and wait for the last answers."""
    async with asyncio.TaskGroup() as group:
        for editor in every:
            group.create_task(_edits(end, api, editor, sent, now))


async def _edits(end: float, api: Api, editor: Editor, sent: Sent, now: Callable[[], float]) -> None:
    while True:
        for step in (_say, _edit_blocks, _edit_entries, _edit_facts, _edit_tasks, _edit_procedures, _ask_for_refusals):
            await asyncio.sleep(editor.rng.expovariate(1 / PAUSE))
            if now() >= end:
                return
            try:
                if step is _say:
                    await _say(api, editor, sent)
                else:
                    await step(api, editor)  # type: ignore[call-arg, arg-type]
            except _Unexpected as error:
                editor.require(False, str(error))
        editor.round += 1


class _Unexpected(Exception):
    """An edit got an answer with which its script cannot continue."""


async def _edit(editor: Editor, kind: str, call: Call, *, event: bool = False) -> Answer:
    """Make one edit, possibly as several concurrent requests. All answers to one key must be equal."""
    editor.number += 1
    editor.kinds[kind] += 1
    key = f"{editor.user}-{editor.number}"
    if event:
        editor.one_event[ids.edit_command_id(editor.owner_key, kind, key)] = f"{kind} number {editor.number}"
    copies = editor.rng.choice(COPIES)
    editor.kinds["repeated"] += copies - 1
    answers = await asyncio.gather(*(_answered(call, key) for _ in range(copies)))
    again = await _answered(call, key)
    for each in (*answers[1:], again):
        editor.require(each == answers[0], f"{kind} number {editor.number}: {answers[0]!r}, and when repeated {each!r}")
    return answers[0]


async def _answered(call: Call, key: str) -> Answer:
    try:
        async with asyncio.timeout(ANSWERED_WITHIN):
            while True:
                try:
                    answer = await call(idempotency_key=key)
                except Unavailable:
                    await asyncio.sleep(AGAIN_AFTER)
                    continue
                if not isinstance(answer, Accepted):
                    return answer
    except Refused as error:
        return NotApplied(error.status, str(error))
    except NotFound as error:
        return NotApplied(404, str(error))
    except (TimeoutError, ClientError) as error:
        return NotApplied(0, f"{type(error).__name__}: {error}")


def _field(answer: Answer, name: str) -> object:
    value = getattr(answer, name, None)
    if value is None:
        raise _Unexpected(f"an edit was answered with {answer!r}")
    return value


# ------------------------------------------------------------------------------------------------ the edits
async def _say(api: Api, editor: Editor, sent: Sent) -> None:
    """Send a turn of the edited session that changes no fact."""
    turn_id, session = f"e{editor.round}", editor.session
    turn: dict[str, object] = {
        **editor.whose,
        "session_id": session,
        "turn_id": turn_id,
        "messages": [{"role": "user", "content": "Thanks, that helps."}],
    }
    while True:
        try:
            await api.produce(turn)
        except Unavailable:
            await asyncio.sleep(AGAIN_AFTER)
            continue
        break
    sent.turns.add((ids.session_key(editor.tenant, editor.user, session), turn_id))


async def _edit_blocks(api: Api, editor: Editor) -> None:
    """Append a line to a block of the owner and to a block of the session. A duplicate line would be detected."""
    at = {**editor.whose, "session_id": editor.session}
    if editor.round % TURNS_A_SESSION == 0:
        editor.task_lines = []
    for kind, name, lines, where in (
        ("owner", "Notes", editor.notes, editor.whose),
        ("session", "Task", editor.task_lines, at),
    ):
        if not lines or len(lines) > LINES:
            lines[:] = [BEGIN]
            answer = await _edit(editor, "blocks.rethink", partial(api.rethink_block, name, BEGIN, **where))
        else:
            lines.append(line := f"line {editor.number}")
            answer = await _edit(editor, "blocks.append", partial(api.append_to_block, name, line, **where))
        expected = "\n".join(lines)
        editor.require(_field(answer, "value") == expected, f"the block {name} of the {kind}: {answer!r}")


async def _edit_entries(api: Api, editor: Editor) -> None:
    """Replace the pinned entry of the session."""
    session, whose = editor.session, editor.whose
    if editor.round % TURNS_A_SESSION == 0:
        editor.pinned = None
    if editor.pinned is not None:
        entry, _ = editor.pinned
        for kind, call in (("working.unpin", api.unpin_entry), ("working.evict", api.evict_entry)):
            answer = await _edit(editor, kind, partial(call, session, entry, **whose))
            editor.require(not isinstance(answer, NotApplied), f"{kind}: {answer!r}")
    content = f"The deploy of build {editor.number} is on Friday"
    added = await _edit(editor, "working.add", partial(api.add_entry, session, content, **whose))
    entry = str(getattr(_field(added, "entry"), "entry_id"))  # noqa: B009
    pinned = await _edit(editor, "working.pin", partial(api.pin_entry, session, entry, **whose))
    editor.require(getattr(_field(pinned, "entry"), "pinned") is True, f"working.pin: {pinned!r}")  # noqa: B009
    editor.pinned = (entry, content)


async def _edit_facts(api: Api, editor: Editor) -> None:
    """Forget the fact of the previous round, remember a new fact, change it, confirm it, and sometimes supersede it."""
    whose, rng = editor.whose, editor.rng
    if editor.fact is not None:
        old = editor.fact[0]
        answer = await _edit(
            editor,
            "facts.forget",
            partial(api.forget_fact, old, tenant_id=editor.tenant),
            event=True,
        )
        editor.require(_field(answer, "forgotten") is True, f"facts.forget: {answer!r}")
        editor.gone.append(old)
        editor.fact = None
    content = f"Owns a {rng.choice(COLOURS)} {rng.choice(THINGS)} with the number {editor.number}"
    answer = await _edit(editor, "facts.remember", partial(api.remember, content, **whose), event=True)
    editor.require(_field(answer, "decision") == "admit", f"facts.remember: {answer!r}")
    fact = str(_field(answer, "fact_id"))
    editor.fact = (fact, content)
    changed = f"{content}, which is old"
    answer = await _edit(
        editor,
        "facts.update",
        partial(api.update_fact, fact, content=changed, reason=_secret(rng), tenant_id=editor.tenant),
        event=True,
    )
    editor.require(_field(answer, "changed") is True, f"facts.update: {answer!r}")
    editor.fact = (fact, changed)
    answer = await _edit(
        editor, "facts.reinforce", partial(api.reinforce_fact, fact, tenant_id=editor.tenant), event=True
    )
    editor.require(_field(answer, "changed") is True, f"facts.reinforce: {answer!r}")
    if rng.random() < 0.3:
        better = f"Sold the {rng.choice(THINGS)} with the number {editor.number}"
        answer = await _edit(
            editor, "facts.supersede", partial(api.supersede_fact, fact, better, tenant_id=editor.tenant)
        )
        editor.gone.append(fact)
        editor.fact = (str(_field(answer, "fact_id")), better)


def _secret(rng: random.Random) -> str:
    return secret_sentence(rng.choice(list(SECRETS))) if rng.random() < 0.3 else "It is old."


async def _edit_tasks(api: Api, editor: Editor) -> None:
    """Add a task, and finish or cancel it."""
    whose, rng = editor.whose, editor.rng
    due = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    content = f"Call number {editor.number}"
    answer = await _edit(editor, "tasks.add", partial(api.add_task, content, due_at=due, **whose))
    task = str(_field(answer, "task_id"))
    kind, call, state = rng.choice(
        (("tasks.done", api.finish_task, "done"), ("tasks.cancel", api.cancel_task, "cancelled"))
    )
    answer = await _edit(editor, kind, partial(call, task, **whose))
    editor.require(_field(answer, "state") == state, f"{kind}: {answer!r}")
    editor.tasks[task] = state


async def _edit_procedures(api: Api, editor: Editor) -> None:
    """Define the next version of a procedure. A definition that is applied twice would change its version."""
    steps = [f"Run step {editor.number}"]
    answer = await _edit(
        editor,
        "procedures.define",
        partial(api.define_procedure, PROCEDURE, "a release", steps, **editor.whose),
    )
    editor.versions += 1
    editor.require(_field(answer, "version") == editor.versions, f"procedures.define: {answer!r}")


async def _ask_for_refusals(api: Api, editor: Editor) -> None:
    """Send edits that must be refused: an instruction from a tool, a reserved name, another request with a used key."""
    whose = editor.whose
    for kind, call in (
        ("order", partial(api.rethink_block, "Hints", ORDER, trust="tool", **whose)),
        ("heading", partial(api.rethink_block, "Known facts", "begin", **whose)),
    ):
        answer = await _edit(editor, f"refused: {kind}", call)
        editor.require(isinstance(answer, NotApplied), f"{kind} was not refused: {answer!r}")
    if editor.notes:
        editor.notes.append(line := f"line {editor.number}")
        key = f"{editor.user}-{editor.number}-once"
        first = await _answered(partial(api.append_to_block, "Notes", line, **whose), key)
        editor.require(_field(first, "value") == "\n".join(editor.notes), f"the block Notes: {first!r}")
        other = await _answered(partial(api.append_to_block, "Notes", "no", **whose), key)
        editor.kinds["refused: key reused"] += 1
        editor.require(
            isinstance(other, NotApplied) and other.status == 422, f"a used key with another request: {other!r}"
        )


# ------------------------------------------------------------------------------------------------ the verdict
async def look(api: Api, every: Sequence[Editor]) -> None:
    """Compare each editor's memory with the expected result of its edits."""
    for editor in every:
        try:
            await _look(api, editor)
        except (ClientError, _Unexpected) as error:
            editor.require(False, f"cannot be read: {type(error).__name__}: {error}")


async def _look(api: Api, editor: Editor) -> None:
    whose = editor.whose
    blocks = {each.name: each.value for each in (await api.blocks(**whose)).items}
    expected = {"Notes": "\n".join(editor.notes)} if editor.notes else {}
    editor.require(blocks == expected, f"blocks {sorted(blocks)} differ from {sorted(expected)}, or their lines do")
    holdings = await api.holdings(editor.session, **whose)
    held = {each.name: each.value for each in holdings.blocks} if holdings is not None else {}
    expected = {"Task": "\n".join(editor.task_lines)} if editor.task_lines else {}
    editor.require(held == expected, f"the session's block {held} differs from {expected}")
    defined = [each.version for each in (await api.procedures(**whose)).items if each.name == PROCEDURE]
    editor.require(max(defined, default=0) == editor.versions, f"{editor.versions} definitions made {sorted(defined)}")
    facts = {fact.fact_id: fact.content async for fact in api.facts(**whose)}
    editor.require(not set(editor.gone) & set(facts), "a forgotten fact is active")
    if editor.fact is not None:
        fact_id, content = editor.fact
        editor.require(facts.get(fact_id, "").startswith(content), f"the fact {fact_id} is {facts.get(fact_id)!r}")
    if editor.pinned is not None:
        context = await api.context(None, session_id=editor.session, preset="full", **whose)
        editor.require(editor.pinned[1] in context.text, "the pinned entry is not in the context")
        editor.require(ORDER not in context.text, "a refused order is in the context")


def edit_verdict(every: Sequence[Editor], history: History) -> InvariantVerdict:
    """Judge the answers to edits and their results. Each edit of a fact must have exactly one event."""
    events: Counter[str] = Counter(
        row.command_id for rows in history.events.values() for row in rows if row.command_id is not None
    )
    violations = [Violation(each) for editor in every for each in editor.wrong]
    checked = sum(editor.checked for editor in every)
    for editor in every:
        checked += len(editor.one_event)
        violations += _events(editor, events)
    return InvariantVerdict("edits", "edits are applied once, with the right results", checked, tuple(violations))


def _events(editor: Editor, events: Mapping[str, int]) -> list[Violation]:
    return [
        Violation(f"{editor.owner_key}: {what} has {events.get(command, 0)} events")
        for command, what in editor.one_event.items()
        if events.get(command, 0) != 1
    ]
