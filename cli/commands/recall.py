"""`memstream recall`: what memory has for a cue, ranked across the tiers, each item with the parts of its score."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime

import click

from ...adapters.ports import Embedder, EmbedderIdentity
from ...memory.policies import MemoryPolicy
from ...recall.collection_cache import CollectionCache
from ...recall.deadline import UnansweredPart
from ...recall.recall_events import AnsweredRecall, answered, records_of, send
from ...recall.request import LIMIT_MAX, ReadSession, RecallRequest
from ...recall.search import COLLECTION_OF
from ...recall.service import RecalledMemory, RecallResult, RecallService, TierFilter
from ...schemas.cloudevents import rfc3339
from ...schemas.errors import Fatal, Transient
from ...schemas.topics import RECALLED
from ...schemas.turns import Owner
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..wiring.broker import opened_log
from ..wiring.ports import NoUsage, new_embedder, new_store, reader_identity, tried_folders
from ..wiring.reranker import new_reranker
from ..wiring.settings import Settings

COLD_PATIENCE = 30.0
"""Seconds for each part: this process starts its embedder and its connections for one read."""
TELL_SECONDS = 2.0
"""For telling the log what was recalled, after the answer is out."""
COLUMNS = ("score", "tier", "subject", "content", "parts")


@click.command()
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="Whose memory.")
@click.option("--session", type=options.GIVEN_ID, help="With the working set of this session.")
@click.option("--cue", help="What is looked for. [default: what counts most]")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), help="At most N items. [default: 10]")
@click.option("--as-of", type=options.MOMENT, help="What was valid then. [default: now]")
@click.option("--known-at", type=options.MOMENT, help="What was believed then. [default: now]")
@options.as_json
@pass_context
def recall(
    context: CommandContext,
    tenant: str,
    user: str,
    session: str | None,
    cue: str | None,
    limit: int | None,
    as_of: datetime | None,
    known_at: datetime | None,
    as_json: bool,
) -> None:
    """Recall what is remembered of a user, best first: facts, episodes, the session's working set, and with a cue the
    messages themselves. Exit code 1 says that a part of memory did not answer; stderr names it."""
    try:
        request = RecallRequest(
            tenant_id=tenant,
            owner=Owner(scope="user", id=user),
            session=None if session is None else ReadSession(user, session),
            cue=cue,
            limit=context.policy.recall.limit if limit is None else limit,
            as_of=as_of,
            known_at=known_at,
        )
    except ValueError as error:
        raise usage(str(error)) from error
    recalled = run(_recalled(context.settings, context.policy, request))
    if as_json:
        for each in recalled.items:
            archived_at = None if each.archived_at is None else rfc3339(each.archived_at)
            console.line({**each.item.to_payload(), "archived_at": archived_at})
    else:
        console.table(COLUMNS, [_cells(each) for each in recalled.items], empty=f"nothing remembered of {user} fits")
    if context.policy.hygiene.enabled:
        run(_tell(context.settings, answered(request, recalled.items, datetime.now(UTC))))
    if recalled.missing:
        raise CommandFailed(Exit.PARTLY, _told(recalled.missing))


async def _recalled(settings: Settings, policy: MemoryPolicy, request: RecallRequest) -> RecallResult:
    async with AsyncExitStack() as stack:
        embedder: Embedder = new_embedder(settings, sink=NoUsage())
        stack.push_async_callback(embedder.close)
        identity: EmbedderIdentity | None = None
        try:
            identity = embedder.identity if request.search_text else None
        except Transient as away:
            embedder = AwayEmbedder(away)
        folders = await stack.enter_async_context(tried_folders(settings, purpose="recall"))
        store = await new_store(settings, identity=identity or reader_identity(settings), folders=folders)
        stack.push_async_callback(store.close)
        existing = CollectionCache(store=store)
        there = [name for name in COLLECTION_OF.values() if await existing.has(name)]
        if identity is not None and there:
            await store.ensure(*there)  # refuses an embedder that did not fill them
        reranker = new_reranker(settings, policy, sink=NoUsage()) if request.search_text else None
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        service = RecallService(
            store=store,
            embedder=embedder,
            policy=dataclasses.replace(policy.recall, patience=COLD_PATIENCE),
            reranker=reranker,
        )
        return await TierFilter(service, policy.tiers).recall(request, now=datetime.now(UTC))


async def _tell(settings: Settings, answer: AnsweredRecall) -> None:
    """As well as can be: a log that is away, or of an older version, is not told."""
    records = records_of(answer)
    if not records:
        return
    with suppress(TimeoutError, Transient, Fatal):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(TELL_SECONDS))
            await stack.enter_async_context(tried_folders(settings, purpose="recall"))
            log = await stack.enter_async_context(opened_log(settings, make_topics=False))
            if await log.partitions(RECALLED.name) is not None:
                for record in records:
                    await send(record, to=log)


class AwayEmbedder:
    """`Embedder` of a server that did not answer when it was asked what it is: words are looked for all the same."""

    def __init__(self, away: Transient) -> None:
        self._away = away

    @property
    def identity(self) -> EmbedderIdentity:
        raise self._away

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        raise self._away

    async def close(self) -> None:
        return None


def _cells(each: RecalledMemory) -> tuple[str, ...]:
    parts = " ".join(f"{name} {value:.2f}" for name, value in each.item.parts.items())
    subject = each.item.subject or each.role or ""
    gist = " (a gist)" if each.archived_at is not None else ""
    return (f"{each.item.score:.2f}", each.item.tier, subject, each.item.content + gist, parts)


def _told(missing: Sequence[UnansweredPart]) -> str:
    return "\n".join(f"missing: {each.part}: {each.why}" for each in missing)
