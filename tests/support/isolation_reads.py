"""Every public read, asked over the world of isolation_world.py: a row of `READS` for each.

A row returns of each record that was told its tenant and owner's key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import Completion, CompletionRequest, Completions, VectorStore
from memstream.api.credentials import Credentials
from memstream.api.scopes import Scope
from memstream.api.updates import Audience
from memstream.client.updates import BEGINNING, STATE, LogUpdates
from memstream.memory.policies import MemoryPolicy, RecallPolicy, RecallToolPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.context import ContextRequest, ContextService
from memstream.recall.export.exporter import MemoryExporter
from memstream.recall.export.request import ExportRequest
from memstream.recall.llm_reranker import LlmReranker
from memstream.recall.model_choice import ModelChoice
from memstream.recall.paging import Page
from memstream.recall.profile import ProfileReader, ProfileRequest
from memstream.recall.record_reader import RecordReader
from memstream.recall.request import ReadSession
from memstream.recall.shared import SharedRecall
from memstream.recall.slots import select_slots
from memstream.recall.turn_trace import TurnRef, TurnTracer
from memstream.schemas import ids
from memstream.schemas.blocks import NamedRecord
from memstream.schemas.export import ExportLine
from memstream.schemas.facts import FactUpdated
from memstream.schemas.topics import FACTS_UPDATED
from memstream.schemas.turns import Owner

from .api_server import app_over, called, entry
from .isolation_world import (
    CONTENTS,
    TENANTS,
    USERS,
    Asked,
    Read,
    Told,
    World,
)
from .stored_memory import NOW

SECRETS: tuple[Scope, ...] = ("memory:read", "memory:read-secret")


def _name(tenant: str, user: str | None, scopes: Sequence[Scope]) -> str:
    return " ".join((tenant, user or "*", *scopes))


CREDENTIALS = Credentials(
    [
        entry(_name(tenant, user, scopes), tenants=[tenant], scopes=scopes, users=user and [user])
        for tenant in TENANTS
        for user in (None, *USERS)
        for scopes in (("memory:read",), SECRETS, (*SECRETS, "memory:admin"))
    ]
)
"""One for all reads: with each, FastAPI analyses its routes anew."""


def token_of(asked: Asked, *scopes: Scope) -> str:
    """Return the token of who asks: of the tenant, or of one user."""
    return _name(asked.who.tenant, asked.who.user if asked.by_owner else None, scopes)


# ------------------------------------------------------------------------------------------------ services
def fact_told(fact: Any) -> tuple[str, str]:
    return (fact.tenant_id, fact.owner.key(fact.tenant_id))


def row_told(row: Any) -> tuple[str, str]:
    return (row.tenant_id, row.owner_key)


async def recalled(world: World, store: VectorStore, asked: Asked) -> Told:
    answer = await world.recall(store, asked.profile).recall(asked.recall, now=NOW)
    assert answer.missing == ()
    if not asked.groups:
        assert not any(each.item.parts.get("links") for each in answer.items), "lifted by links of somebody else"
    return world.of(each.item.id for each in answer.items)


class Greedy:
    """A model that chooses all that it is shown."""

    async def complete(self, request: CompletionRequest[Any]) -> Completion[Any]:
        shown = re.findall(r"^\[([a-z]\d+)\]", request.messages[-1].content, re.MULTILINE)
        return Completion(value=request.parse({"ids": shown}), model="greedy")


async def chosen(world: World, store: VectorStore, asked: Asked) -> Told:
    choice = ModelChoice(
        store=store,
        embedder=HashingEmbedder(),
        ranked=world.recall(store, asked.profile),
        selector=LlmReranker(completions=cast(Completions, Greedy())),
        policy=RecallPolicy(patience=30.0, profile=asked.profile, tool=RecallToolPolicy(strategy="model")),
    )
    answer = await choice.recall(asked.recall, now=NOW)
    assert answer.missing == ()
    return world.of(each.item.id for each in answer.items)


async def contexts(world: World, store: VectorStore, asked: Asked) -> Told:
    request = ContextRequest(
        asked.who.tenant,
        asked.who.owner,
        ReadSession(asked.who.user, asked.session or "s1"),
        asked.groups,
        asked.cue,
        switches=frozenset(("tasks", "profile", "digest", "semantic", "working", "episodic", "turns")),
        ceiling=asked.ceiling,
        as_of=asked.as_of,
        known_at=asked.known_at,
    )
    return await shown_by(world, store, asked, request)


async def contexts_by_slot(world: World, store: VectorStore, asked: Asked) -> Told:
    slots = select_slots(("likes",), MemoryPolicy())
    request = ContextRequest(
        asked.who.tenant,
        asked.who.owner,
        groups=asked.groups,
        cue=asked.cue,
        switches=frozenset(("profile", "semantic")),
        ceiling=asked.ceiling,
        as_of=asked.as_of,
        known_at=asked.known_at,
        slots=slots,
    )
    return await shown_by(world, store, asked, request)


async def shown_by(world: World, store: VectorStore, asked: Asked, request: ContextRequest) -> Told:
    reader = RecordReader(store=store)
    service = ContextService(
        recall=world.recall(store, asked.profile),
        digests=reader,
        held=reader,
        store=store,
        profiles=ProfileReader(store=store, policies=TenantPolicies(MemoryPolicy())),
    )
    context = await service.context(request, now=NOW)
    return world.of(each for shown in context.shown.values() for each in shown)


async def profile(world: World, store: VectorStore, asked: Asked) -> Told:
    request = ProfileRequest(
        asked.who.tenant,
        asked.who.owner,
        asked.groups,
        asked.subject or "user",
        ("other",),
        ceiling=asked.ceiling,
        as_of=asked.as_of,
        known_at=asked.known_at,
    )
    reader = ProfileReader(store=store, policies=TenantPolicies(MemoryPolicy()))
    found = await reader.profile(request, now=NOW)
    return world.of(value.fact_id for slot in found.slots for value in (*slot.values, *slot.denied))


def pages(read: str, told: Callable[[Any], Iterable[tuple[str, str]]]) -> Read:
    """All pages from the cursor on, which may have been given to another."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        found: Told = []
        page: Page[Any] = Page((), asked.cursor)
        for _ in range(20):
            method = getattr(RecordReader(store=store), read)
            page = await method(asked.wanted, limit=min(asked.limit, 50), cursor=page.next)
            found += [each for item in page.items for each in told(item)]
            if page.next is None:
                break
        return found

    return reading


def every(read: str, told: Callable[[Any], tuple[str, str]]) -> Read:
    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        return [told(each) for each in await getattr(RecordReader(store=store), read)(asked.wanted)]

    return reading


def turn_told(turn: Any) -> Told:
    return [row_told(each) for each in turn.messages]


async def one_fact(world: World, store: VectorStore, asked: Asked) -> Told:
    ref = world.ref(asked)
    fact = await RecordReader(store=store).fact(ref.tenant_id, ref.fact_id, sees=ref.sees, ceiling=ref.ceiling)
    return [] if fact is None else [fact_told(fact)]


async def facts_by_id(world: World, store: VectorStore, asked: Asked) -> Told:
    ref = world.ref(asked)
    found = await RecordReader(store=store).facts_by_id(
        ref.tenant_id, [ref.fact_id], sees=ref.sees, ceiling=ref.ceiling
    )
    return [fact_told(each) for each in found.values()]


async def one_episode(world: World, store: VectorStore, asked: Asked) -> Told:
    ref = world.gist(asked)
    episode = await RecordReader(store=store).episode(ref.tenant_id, ref.episode_id, sees=ref.sees, ceiling=ref.ceiling)
    return [] if episode is None else [fact_told(episode)]


def by_id(read: str, collection: str) -> Read:
    """Somebody's procedure or task, asked for by its id."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        ref = world.ref(asked)
        _, key = world.memory.whose[ref.fact_id]
        make = ids.procedure_id if collection == "procedures" else ids.task_id
        method = getattr(RecordReader(store=store), read)
        found = await method(asked.who.tenant, make(key, CONTENTS[0]), sees=ref.sees, ceiling=asked.ceiling)
        return [] if found is None else [fact_told(found)]

    return reading


async def one_procedure(world: World, store: VectorStore, asked: Asked) -> Told:
    owner = asked.who.owner
    found = await RecordReader(store=store).procedure(asked.who.tenant, owner, CONTENTS[0], ceiling=asked.ceiling)
    return [] if found is None else [fact_told(found)]


def named(read: str) -> Read:
    """Of the owner who asks, by name."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        wanted = [NamedRecord(name=CONTENTS[0], owner=asked.who.owner)]
        found = await getattr(RecordReader(store=store), read)(asked.who.tenant, wanted, ceiling=asked.ceiling)
        return [fact_told(each) for each in found]

    return reading


async def holdings(world: World, store: VectorStore, asked: Asked) -> Told:
    held = await RecordReader(store=store).holdings(
        asked.who.tenant, asked.who.user, asked.session or "s1", ceiling=asked.ceiling
    )
    owner = Owner(scope="user", id=asked.who.user)
    if held is None or not held.blocks:
        return []
    assert [block.value for block in held.blocks] == [f"{asked.who.tenant} {asked.who.user}"]
    return [(held.tenant_id, owner.key(held.tenant_id))]


async def pending(world: World, store: VectorStore, asked: Asked) -> Told:
    found = await RecordReader(store=store).pending_tasks(asked.who.tenant, asked.who.owner, ceiling=asked.ceiling)
    return [fact_told(each) for each in found]


def group_told(group: Any) -> tuple[str, str]:
    (member,) = group.members
    return (group.tenant_id, member.key(group.tenant_id))


async def groups_of(world: World, store: VectorStore, asked: Asked) -> Told:
    found = await RecordReader(store=store).groups_of(asked.who.tenant, asked.who.owner)
    return [group_told(each) for each in found]


async def procedures_for(world: World, store: VectorStore, asked: Asked) -> Told:
    reader = RecordReader(store=store)
    found = await reader.procedures_for(asked.who.tenant, asked.who.owner, ceiling=asked.ceiling)
    return [fact_told(each) for each in found]


async def left_groups(world: World, store: VectorStore, asked: Asked) -> Told:
    """Of the clubs, each with its one member: all but one's own are left."""
    clubs = {f"club of {user} in {tenant}": (tenant, user) for tenant in TENANTS for user in USERS}
    left = await RecordReader(store=store).left_groups(asked.who.tenant, asked.who.owner, clubs)
    mine, others = asked.who.tenant, {user for user in USERS if user != asked.who.user}
    assert left == {name for name, (tenant, user) in clubs.items() if tenant == mine and user in others}
    return [(asked.who.tenant, asked.who.owner.key(asked.who.tenant))]


async def shared(world: World, store: VectorStore, asked: Asked) -> Told:
    recall = SharedRecall(inner=world.recall(store, asked.profile), groups=RecordReader(store=store))
    answer = await recall.recall(replace(asked.recall, groups=()), now=NOW)
    return world.of(each.item.id for each in answer.items)


async def one_digest(world: World, store: VectorStore, asked: Asked) -> Told:
    digest = await RecordReader(store=store).digest(asked.who.tenant, asked.who.owner, ceiling=asked.ceiling)
    return [] if digest is None else [fact_told(digest)]


async def rehydrated(world: World, store: VectorStore, asked: Asked) -> Told:
    found = await world.rehydrating(store).rehydrate(world.gist(asked), now=NOW)
    if found is None:
        return []
    assert found.content is not None
    return world.of([found.episode_id])


async def traced_fact(world: World, store: VectorStore, asked: Asked) -> Told:
    fact = await world.tracing(store).fact(world.ref(asked))
    return [] if fact is None else [fact_told(fact)]


async def history(world: World, store: VectorStore, asked: Asked) -> Told:
    found = await world.tracing(store).history(world.ref(asked), limit=min(asked.limit, 200))
    return [] if found is None else [fact_told(each) for each in (found.fact, *(event.fact for event in found.events))]


async def trace(world: World, store: VectorStore, asked: Asked) -> Told:
    chain = await world.tracing(store).trace(world.ref(asked))
    if chain is None:
        return []
    told = [fact_told(chain.fact), *(fact_told(event.fact) for event in chain.events)]
    session = {ids.session_key(asked.who.tenant, user, "s1"): user for user in USERS}
    for seen in chain.observations:
        of_turn = [
            user
            for key, user in session.items()
            if ids.observation_id(key, seen.turn_id, "user", seen.observation.content)
            == seen.observation.observation_id
        ]
        assert of_turn == [seen.user_id], "this tenant's, and the user's who said it"
    return told + [row_told(each) for each in chain.turns]


async def page_trace(world: World, store: VectorStore, asked: Asked) -> Told:
    page = await RecordReader(store=store).log(replace(asked.wanted, owner=None))
    tracer = TurnTracer(store=store, log=world.log, deployment=MemoryPolicy())
    found = await tracer.trace_page(asked.who.tenant, page.items, ceiling=asked.ceiling)
    seen = [each.observed for each in found.turns if each.observed is not None]
    told = [row_told(message) for turn in found.turns for message in turn.messages]
    return told + [(each.tenant_id, each.owner.key(each.tenant_id)) for each in seen]


async def turn_trace(world: World, store: VectorStore, asked: Asked) -> Told:
    chain = await world.tracing(store).trace(world.ref(asked))
    told: list[Any] = []
    for turn_id in {each.turn_id for each in chain.turns} if chain is not None else ():
        user = asked.who.user if asked.by_owner else None
        ref = TurnRef(tenant_id=asked.who.tenant, turn_id=turn_id, user_id=user, ceiling=asked.ceiling)
        found = await TurnTracer(store=store, log=world.log, deployment=MemoryPolicy()).trace(ref)
        told += [row_told(message) for turn in found.turns for message in turn.messages]
    return told


# ------------------------------------------------------------------------------------------------ exports
async def exported(world: World, store: VectorStore, asked: Asked) -> Told:
    owner = asked.who.owner if asked.by_owner else None
    request = ExportRequest(asked.who.tenant, owner, asked.ceiling, removed=True)
    exporter = MemoryExporter(
        store=store,
        log=world.log,
        embedder="hashing",
        may_show=world.rehydrating(store).may_be_shown,
        now=lambda: LATER,
    )
    pages = exporter.pages(request, await exporter.begin(request))
    return [each async for page in pages for line in page.lines for each in line_told(line)]


async def exported_over_http(world: World, store: VectorStore, asked: Asked) -> Told:
    app = app_over(log=world.log, store=store, credentials=CREDENTIALS)
    async with called(app, token=token_of(asked, *SECRETS, "memory:admin")) as client:
        answer = await client.get("/v1/export", params={"ceiling": asked.ceiling})
    assert answer.status_code == 200, answer.text
    lines = [ExportLine.read(line) for line in answer.text.splitlines()]
    assert lines[-1].kind == "end"
    return [each for line in lines for each in line_told(line)]


def line_told(line: ExportLine) -> Told:
    record: Any = line.record
    match line.kind:
        case "export" | "end":
            return []
        case "turn":
            return [row_told(each) for each in record.messages]
        case "holdings":
            return [(record.tenant_id, Owner(scope="user", id=record.user_id).key(record.tenant_id))]
        case "group":
            return [group_told(record)]
        case "links" | "working" | "archive":
            return [row_told(record)]
        case "fact_change":
            return [fact_told(record), fact_told(record.fact)]
        case _:
            return [fact_told(record)]


# ------------------------------------------------------------------------------------------------ over HTTP
def over_http(path: str, *, told: str, takes: str, all_owners: bool = False, method: str = "GET") -> Read:
    """Asked with a token of the tenant; with `by_owner` a token of the user alone. `told`: the field where ids stand;
    `takes`: the parameters; `all_owners`: whether it can be asked of everybody in the tenant."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        recall = world.recall(store, asked.profile)
        app = app_over(log=world.log, store=store, recall=recall, credentials=CREDENTIALS)
        given = {
            "user": asked.who.user if asked.by_owner or not all_owners else None,
            "session": asked.session,
            "cue": asked.cue,
            "limit": min(asked.limit, 50),
            "state": asked.state,
            "subject": asked.subject,
            "as_of": None if asked.as_of is None else asked.as_of.isoformat(),
            "known_at": None if asked.known_at is None else asked.known_at.isoformat(),
            "ceiling": asked.ceiling,
            "cursor": asked.cursor,
            "preset": "full",
            "slot": "other",
        }
        asking = {name: given[name] for name in takes.split() if given[name] is not None}
        where = path.format(
            fact_id=world.ref(asked).fact_id,
            episode_id=world.gist(asked).episode_id,
            session_id=asked.session or "s1",
            turn_id="t1",
        )
        async with called(app, token=token_of(asked, *SECRETS)) as client:
            if method == "POST":
                answer = await client.post(where, json=asking)
            else:
                answer = await client.get(where, params=asking)
        if answer.status_code in (404, 422):  # not for who asks; another's cursor
            return []
        assert answer.status_code == 200, answer.text
        return world.of(ids_in(answer.json(), told))

    return reading


def letters_over_http(path: str) -> Read:
    """Dead letters and parked keys, asked with a token of the tenant; with `by_owner` a token of the user alone."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        app = app_over(log=world.log, store=store, credentials=CREDENTIALS)
        told: Told = []
        async with called(app, token=token_of(asked, *SECRETS)) as client:
            for place in world.letters if "{" in path else world.letters[:1]:
                answer = await client.get(
                    path.format(**{name: getattr(place, name) for name in ("topic", "partition", "offset")})
                )
                found = answer.json()
                for each in [found["letter"]] if "letter" in found else found.get("items", ()):
                    user = each.get("user_id") or each["owner"]["id"]
                    told.append((each["tenant_id"], Owner(scope="user", id=user).key(each["tenant_id"])))
        return told

    return reading


async def by_tool(world: World, store: VectorStore, asked: Asked) -> Told:
    """Asked by an agent, of a user alone: tools know no other."""
    recall = world.recall(store, asked.profile)
    app = app_over(log=world.log, store=store, recall=recall, credentials=CREDENTIALS)
    headers = {"X-Memstream-Session": asked.session or "s1"}
    async with called(app, token=token_of(replace(asked, by_owner=True), "memory:read")) as client:
        answer = await client.post("/v1/tools/recall", json={"query": asked.cue or "Stripe"}, headers=headers)
    assert answer.status_code == 200, answer.text
    return world.of(each.removeprefix("mt_") for each in ids_in(answer.json(), "id"))


def ids_in(answer: Any, name: str) -> list[str]:
    """Every value of a field, wherever it stands; of `shown` the ids of each section."""
    if isinstance(answer, dict):
        if name == "shown":
            return [each for section in answer[name].values() for each in section]
        own = [answer[name]] if isinstance(answer.get(name), str) else []
        return own + [each for value in answer.values() for each in ids_in(value, name)]
    return [each for value in answer for each in ids_in(value, name)] if isinstance(answer, list) else []


LATER = NOW + timedelta(days=1)
RECORDS = "user session limit subject as_of known_at ceiling cursor"
RECALL = "user session cue limit subject as_of known_at ceiling"


# ------------------------------------------------------------------------------------------------ changes of facts
async def heard(world: World, store: VectorStore, asked: Asked) -> Told:
    """What the event stream of HTTP selects."""
    audience = Audience(asked.who.tenant, asked.who.owner if asked.by_owner else None, asked.ceiling)
    records = [record async for record in world.log.read(FACTS_UPDATED.name) if audience.hears(record)]
    return [fact_told(FactUpdated.read(record.value or b"").fact) for record in records]


def subscribed(after: str, count: int) -> Read:
    """What the client's subscription tells, of an owner `count` updates."""

    async def reading(world: World, store: VectorStore, asked: Asked) -> Told:
        owner = asked.who.owner if asked.by_owner else None
        updates = LogUpdates(log=world.log).updates(after=after, tenant_id=asked.who.tenant, owner=owner)
        found: Told = []
        async with aclosing(updates):
            async for update in updates:
                found.append(fact_told(update.fact))
                if len(found) == count * (1 if owner else 4):
                    return found
        return found

    return reading


READS: dict[str, Read] = {
    "RecallService.recall": recalled,
    "ModelChoice.recall": chosen,
    "ContextService.context": contexts,
    "ContextService.context by slot": contexts_by_slot,
    "ProfileReader.profile": profile,
    "MemoryExporter.pages": exported,
    "GET /v1/export": exported_over_http,
    "RecordReader.facts": pages("facts", lambda fact: [fact_told(fact)]),
    "RecordReader.episodes": pages("episodes", lambda episode: [fact_told(episode)]),
    "RecordReader.working": pages("working", lambda row: [row_told(row)]),
    "RecordReader.log": pages("log", turn_told),
    "RecordReader.procedures": pages("procedures", lambda procedure: [fact_told(procedure)]),
    "RecordReader.blocks": pages("blocks", lambda block: [fact_told(block)]),
    "RecordReader.tasks": pages("tasks", lambda task: [fact_told(task)]),
    "RecordReader.blocks_by_name": named("blocks_by_name"),
    "RecordReader.procedures_by_name": named("procedures_by_name"),
    "RecordReader.holdings": holdings,
    "RecordReader.pending_tasks": pending,
    "RecordReader.procedures_for": procedures_for,
    "RecordReader.left_groups": left_groups,
    "RecordReader.groups": pages("groups", lambda group: [group_told(group)]),
    "RecordReader.groups_of": groups_of,
    "SharedRecall.recall": shared,
    "RecordReader.fact": one_fact,
    "RecordReader.facts_by_id": facts_by_id,
    "RecordReader.episode": one_episode,
    "RecordReader.procedure": one_procedure,
    "RecordReader.procedure_by_id": by_id("procedure_by_id", "procedures"),
    "RecordReader.task": by_id("task", "tasks"),
    "RecordReader.digest": one_digest,
    "RecordReader.every_digest": every("every_digest", fact_told),
    "RecordReader.every_fact": every("every_fact", fact_told),
    "RecordReader.every_episode": every("every_episode", fact_told),
    "RecordReader.every_entry": every("every_entry", row_told),
    "RecordReader.every_message": every("every_message", row_told),
    "VerbatimReader.rehydrate": rehydrated,
    "FactTracer.fact": traced_fact,
    "FactTracer.history": history,
    "FactTracer.trace": trace,
    "TurnTracer.trace": turn_trace,
    "TurnTracer.trace_page": page_trace,
    "GET /v1/recall": over_http("/v1/recall", told="id", takes=RECALL),
    "POST /v1/recall": over_http("/v1/recall", told="id", takes=RECALL, method="POST"),
    "POST /v1/context": over_http(
        "/v1/context", told="shown", takes="user session cue as_of known_at ceiling preset", method="POST"
    ),
    "GET /v1/profile": over_http("/v1/profile", told="fact_id", takes="user subject as_of known_at ceiling slot"),
    "GET /v1/facts": over_http("/v1/facts", told="fact_id", takes=f"{RECORDS} state", all_owners=True),
    "GET /v1/facts by slot": over_http("/v1/facts", told="fact_id", takes=f"{RECORDS} state slot", all_owners=True),
    "GET /v1/facts/{fact_id}": over_http("/v1/facts/{fact_id}", told="fact_id", takes="ceiling"),
    "GET /v1/facts/{fact_id}/history": over_http("/v1/facts/{fact_id}/history", told="fact_id", takes="ceiling limit"),
    "GET /v1/facts/{fact_id}/trace": over_http("/v1/facts/{fact_id}/trace", told="fact_id", takes="ceiling"),
    "GET /v1/episodes": over_http("/v1/episodes", told="episode_id", takes=RECORDS, all_owners=True),
    "GET /v1/episodes/{episode_id}/verbatim": over_http(
        "/v1/episodes/{episode_id}/verbatim", told="episode_id", takes="ceiling"
    ),
    "GET /v1/digest": over_http("/v1/digest", told="digest_id", takes="user ceiling"),
    "GET /v1/turns/{turn_id}": over_http("/v1/turns/{turn_id}", told="message_id", takes="user session ceiling"),
    "GET /v1/sessions/{session_id}/turns": over_http(
        "/v1/sessions/{session_id}/turns", told="message_id", takes="user limit ceiling cursor"
    ),
    "GET /v1/sessions/{session_id}/working": over_http(
        "/v1/sessions/{session_id}/working", told="entry_id", takes="user ceiling"
    ),
    "GET /v1/sessions/{session_id}/holdings": over_http(
        "/v1/sessions/{session_id}/holdings", told="value", takes="user ceiling"
    ),
    "GET /v1/blocks": over_http("/v1/blocks", told="block_id", takes="user limit ceiling cursor", all_owners=True),
    "GET /v1/procedures": over_http(
        "/v1/procedures", told="procedure_id", takes="user limit ceiling cursor", all_owners=True
    ),
    "GET /v1/groups": over_http("/v1/groups", told="group_id", takes="user limit ceiling cursor", all_owners=True),
    "GET /v1/tasks": over_http("/v1/tasks", told="task_id", takes="user limit ceiling cursor", all_owners=True),
    "POST /v1/tools/{name}": by_tool,
    "GET /v1/dead-letters": letters_over_http("/v1/dead-letters"),
    "GET /v1/dead-letters/{topic}/{partition}/{offset}": letters_over_http(
        "/v1/dead-letters/{topic}/{partition}/{offset}"
    ),
    "GET /v1/parked-keys": letters_over_http("/v1/parked-keys"),
    "GET /v1/facts/updates": heard,
    "LogUpdates.updates": subscribed(BEGINNING, 6),
    "LogUpdates.updates after the state": subscribed(STATE, 2),
}
