"""Erasure of a session from an owner's episodes, procedures and digest (docs/design/retraction.md). The function
returns writes; the caller executes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qdrant_client import models

from ....adapters.ports import StoredPoint
from ....adapters.vectors.conditions import equals
from ....schemas import ids
from ....schemas.collections import ARCHIVE, DIGESTS, EPISODES, PROCEDURES
from ....schemas.edits.sessions import EpisodesErase, EpisodesErased
from ....schemas.outcomes import DeletePoints, OutPoint, PutPoints, Write
from ....schemas.procedures import StoredProcedure
from ..rows import ProgressRow
from .episodes import stored_ids
from .scope import UpkeepEditResult, UpkeepEditScope


async def erase_episodes(args: EpisodesErase, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Delete the session's episodes with their archived texts, the procedures that rest on them alone, and the digest
    if it may contain the session."""
    named = (("user_id", args.user_id), ("session_id", args.session_id))
    episodes = tuple(each.id for each in await _records(EPISODES, [equals(*each) for each in named], scope))
    archived = await stored_ids(ARCHIVE, [ids.archive_id(each) for each in episodes], scope) if episodes else ()
    procedures = [StoredProcedure.from_payload(each.payload) for each in await _records(PROCEDURES, (), scope)]
    sources = frozenset(episodes)
    changed = {each.procedure_id: _without(each, sources) for each in procedures if _is_from(each, sources)}
    gone = tuple(procedure_id for procedure_id, left in changed.items() if left is None)
    kept = tuple(OutPoint(id=key, payload=left.to_payload()) for key, left in changed.items() if left is not None)
    digest_ids = [ids.digest_id(scope.owner_key)] if episodes or args.facts else []
    digest = await stored_ids(DIGESTS, digest_ids, scope) if digest_ids else ()
    deleted = ((EPISODES, episodes), (ARCHIVE, archived), (PROCEDURES, gone), (DIGESTS, digest))
    writes: list[Write] = [
        DeletePoints(collection=name, tenant_id=scope.command.tenant_id, ids=each) for name, each in deleted if each
    ]
    if kept:
        writes.append(PutPoints(collection=PROCEDURES, points=kept))
    return UpkeepEditResult(
        result=EpisodesErased(episodes=len(episodes), procedures=len(gone), digest=bool(digest)),
        writes=tuple(writes),
        row=_without_session(scope.row, args),
    )


def _is_from(procedure: StoredProcedure, episodes: Collection[str]) -> bool:
    """Return whether a version of the procedure names one of the episodes."""
    versions = (procedure.source_episode_ids, *(each.source_episode_ids for each in procedure.earlier))
    return any(each in episodes for sources in versions for each in sources)


def _without(procedure: StoredProcedure, episodes: Collection[str]) -> StoredProcedure | None:
    """Return the procedure without these sources and without the earlier versions that rest on them alone, or None if
    the present version rests on them alone."""
    sources = _others(procedure.source_episode_ids, episodes)
    if procedure.source_episode_ids and not sources:
        return None
    earlier = (
        each.model_copy(update={"source_episode_ids": _others(each.source_episode_ids, episodes)})
        for each in procedure.earlier
        if not each.source_episode_ids or _others(each.source_episode_ids, episodes)
    )
    return procedure.model_copy(update={"source_episode_ids": sources, "earlier": tuple(earlier)})


def _others(sources: Sequence[str], episodes: Collection[str]) -> tuple[str, ...]:
    return tuple(each for each in sources if each not in episodes)


def _without_session(row: ProgressRow, args: EpisodesErase) -> ProgressRow:
    """Return the row without the session's summaries, and without its turns that wait for a summary."""
    session = args.user_id, args.session_id
    return row.model_copy(
        update={
            "summaries": tuple(each for each in row.summaries if each.session != session),
            "unsummarised": tuple(each for each in row.unsummarised if each.session != session),
        }
    )


async def _records(collection: str, named: Sequence[models.Condition], scope: UpkeepEditScope) -> Sequence[StoredPoint]:
    """Return the owner's records that meet the conditions."""
    store, calls, tenant_id = scope.reader.store, scope.reader.calls, scope.command.tenant_id
    if not await calls.call("store", lambda: store.exists(collection)):
        return ()
    where = models.Filter(must=[equals("owner_key", scope.owner_key), *named])
    return await calls.call("store", lambda: store.select(collection, tenant_id=tenant_id, where=where))
