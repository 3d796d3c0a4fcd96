"""`memstream recall`: items of memory for a cue, ranked across tiers, each with the parts of its score."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import get_args

import click

from ...adapters.ports import Embedder, EmbedderIdentity
from ...memory.policies import MemoryPolicy
from ...memory.policies.recall import LIMIT_MAX
from ...recall.collection_cache import CollectionCache
from ...recall.deadline import UnansweredPart
from ...recall.recall_events import AnsweredRecall, answered, records_of, send
from ...recall.record_conditions import MetadataCondition, RecordConditions
from ...recall.record_reader import RecordReader
from ...recall.request import ReadSession, RecallRequest
from ...recall.search import COLLECTION_OF
from ...recall.service import RecalledMemory, RecallResult, RecallService, TierFilter
from ...recall.shared import SharedRecall
from ...recall.slots import select_slots, tiers_with_slots
from ...schemas.cloudevents import rfc3339
from ...schemas.errors import Fatal, Transient
from ...schemas.facts import Trust
from ...schemas.observations import Category
from ...schemas.recall import TIERS
from ...schemas.topics import RECALLED
from ...schemas.turns import Owner
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..process.policy_reader import read_policies
from ..wiring.broker import has_memory, opened_log, require_memory
from ..wiring.ports import NoUsage, new_embedder, new_store, reader_identity, tried_folders
from ..wiring.reranker import new_reranker
from ..wiring.settings import Settings

COLD_PATIENCE = 30.0
"""Time limit for each part of memory, in seconds. It is long, because this process loads its embedder and opens its
connections for one read."""
POLICY_SECONDS = 2.0
"""Time limit for reading the tenant's policy, in seconds."""
PUBLISH_SECONDS = 2.0
"""Time limit for publishing the recall event, in seconds. At that time, the answer is already printed."""
COLUMNS = ("score", "tier", "subject", "content", "parts")


@click.command()
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="The user whose memory is read.")
@click.option("--session", type=options.GIVEN_ID, help="Include the working set of this session.")
@click.option("--cue", help="Text to search for. [default: the most significant items]")
@click.option("--slot", "slots", multiple=True, help="Only facts of this slot; may be repeated.")
@click.option("--subject", help="Only facts and episodes about this subject.")
@click.option("--category", type=click.Choice(get_args(Category)), help="Only facts and episodes of this category.")
@click.option("--tag", "tags", multiple=True, help="Only records with this tag; may be repeated.")
@click.option("--metadata", multiple=True, metavar="NAME:TEXT", help="Only records with this pair; may be repeated.")
@click.option("--since", type=options.MOMENT, help="Only records that were said at this time or later.")
@click.option("--until", type=options.MOMENT, help="Only records that were said until this time.")
@click.option("--of-session", type=options.GIVEN_ID, help="Only records that were said in this session.")
@click.option("--of-agent", type=options.GIVEN_ID, help="Only records of turns of this agent.")
@click.option(
    "--trust",
    multiple=True,
    type=click.Choice(get_args(Trust)),
    help="Only records from this origin; may be repeated.",
)
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), help="Return at most N items. [default: 10]")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Leave out items with a lower score. [default: 0, leave out none]",
)
@click.option(
    "--as-of",
    type=options.MOMENT,
    help=f"Recall memory that was valid at this time. {options.END_OF_DAY} [default: now]",
)
@click.option(
    "--known-at",
    type=options.MOMENT,
    help=f"Recall memory as it was believed at this time. {options.END_OF_DAY} [default: now]",
)
@click.option("--agent", type=options.GIVEN_ID, help="The agent that asks. Its persona may change the default limit.")
@options.as_json
@pass_context
def recall(
    context: CommandContext,
    tenant: str,
    user: str,
    session: str | None,
    cue: str | None,
    slots: tuple[str, ...],
    subject: str | None,
    category: Category | None,
    tags: tuple[str, ...],
    metadata: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    of_session: str | None,
    of_agent: str | None,
    trust: tuple[Trust, ...],
    limit: int | None,
    min_score: float,
    as_of: datetime | None,
    known_at: datetime | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Recall a user's memory, best item first: facts, episodes, the session's working set and, with a cue, messages.

    Exit 1 if a part of memory did not answer; stderr names the part.
    """
    policy = run(tenant_policy(context.settings, context.policy, tenant, agent))
    try:
        selection = select_slots(slots, policy)
        request = RecallRequest(
            tenant_id=tenant,
            owner=Owner(scope="user", id=user),
            session=None if session is None else ReadSession(user, session),
            cue=cue,
            limit=policy.recall.limit if limit is None else limit,
            tiers=tiers_with_slots(TIERS, selection),
            subject=subject,
            category=category,
            conditions=RecordConditions(
                tags=tags,
                metadata=tuple(_pair(each) for each in metadata),
                session_id=of_session,
                agent_id=of_agent,
                trust=trust,
                since=since,
                until=until,
            ),
            slots=selection,
            min_score=min_score,
            as_of=as_of,
            known_at=known_at,
        )
    except ValueError as error:
        raise usage(str(error)) from error
    recalled = run(_recalled(context.settings, policy, request))
    if as_json:
        for each in recalled.items:
            archived_at = None if each.archived_at is None else rfc3339(each.archived_at)
            console.line({**each.item.to_payload(), "archived_at": archived_at})
    else:
        rows = [_cells(each) for each in recalled.items]
        console.table(COLUMNS, rows, empty=f"no memory of {user} matches", text="content")
    if policy.hygiene.enabled:
        run(_publish(context.settings, answered(request, recalled.items, datetime.now(UTC))))
    if recalled.missing:
        raise CommandFailed(Exit.PARTLY, _missing_lines(recalled.missing))


def _pair(text: str) -> MetadataCondition:
    """Return the condition of a pair. Raises ValueError without a colon."""
    name, colon, value = text.partition(":")
    if not colon:
        raise ValueError(f"--metadata {text}: expected NAME:TEXT")
    return MetadataCondition(name, (value,))


async def tenant_policy(settings: Settings, policy: MemoryPolicy, tenant_id: str, agent_id: str | None) -> MemoryPolicy:
    """Return the tenant's policy with the effects of the agent's persona.

    If the log does not answer in time, print a warning and return the deployment's policy.
    """
    if settings.broker_folder is not None and not has_memory(settings.broker_folder):
        return policy
    try:
        async with asyncio.timeout(POLICY_SECONDS), opened_log(settings, make_topics=False) as log:
            return (await read_policies(log, policy)).of(tenant_id, agent_id)
    except (TimeoutError, Transient) as error:
        console.advice(f"the tenant's policy was not read ({error or 'no answer'}): the deployment's applies")
        return policy


async def _recalled(settings: Settings, policy: MemoryPolicy, request: RecallRequest) -> RecallResult:
    require_memory(settings.qdrant_folder)
    async with AsyncExitStack() as stack:
        embedder: Embedder = new_embedder(settings, sink=NoUsage())
        stack.push_async_callback(embedder.close)
        identity: EmbedderIdentity | None = None
        try:
            identity = embedder.identity if request.search_text else None
        except Transient as error:
            embedder = UnavailableEmbedder(error)
        folders = await stack.enter_async_context(tried_folders(settings, purpose="recall"))
        store = await new_store(settings, identity=identity or reader_identity(settings), folders=folders)
        stack.push_async_callback(store.close)
        existing = CollectionCache(store=store)
        names = [name for name in COLLECTION_OF.values() if await existing.has(name)]
        if identity is not None and names:
            await store.ensure(*names)  # fails if another embedder filled the collections
        reranker = new_reranker(settings, policy, sink=NoUsage()) if request.search_text else None
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        service = RecallService(
            store=store,
            embedder=embedder,
            policy=dataclasses.replace(policy.recall, patience=COLD_PATIENCE),
            reranker=reranker,
            locale=policy.conflict.locale,
        )
        shared = SharedRecall(inner=TierFilter(service, policy.tiers), groups=RecordReader(store=store))
        return await shared.recall(request, now=datetime.now(UTC))


async def _publish(settings: Settings, answer: AnsweredRecall) -> None:
    """Publish the recall event. Publish nothing if the log is missing or unavailable, or if it lacks the topic."""
    records = records_of(answer)
    if not records or (settings.broker_folder is not None and not has_memory(settings.broker_folder)):
        return
    with suppress(TimeoutError, Transient, Fatal):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(PUBLISH_SECONDS))
            await stack.enter_async_context(tried_folders(settings, purpose="recall"))
            log = await stack.enter_async_context(opened_log(settings, make_topics=False))
            if await log.partitions(RECALLED.name) is not None:
                for record in records:
                    await send(record, to=log)


class UnavailableEmbedder:
    """`Embedder` that replaces an embedder whose server did not answer. Every call fails, so recall searches only by
    words."""

    def __init__(self, error: Transient) -> None:
        self._error = error

    @property
    def identity(self) -> EmbedderIdentity:
        raise self._error

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        raise self._error

    async def close(self) -> None:
        return None


def _cells(each: RecalledMemory) -> tuple[str, ...]:
    parts = " ".join(f"{name} {value:.2f}" for name, value in each.item.parts.items())
    subject = each.item.subject or each.role or ""
    gist = " (a gist)" if each.archived_at is not None else ""
    return (f"{each.item.score:.2f}", each.item.tier, subject, each.item.content + gist, parts)


def _missing_lines(missing: Sequence[UnansweredPart]) -> str:
    return "\n".join(f"missing: {each.part}: {each.why}" for each in missing)
