"""Edits of existing episodes (docs/reference/edits.md). The functions return writes; the caller executes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue
from qdrant_client import models

from ....adapters.ports import Payload
from ....adapters.vectors.conditions import equals, is_empty
from ....memory.facts.trust_order import TRUST, outranks
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....schemas import ids
from ....schemas.base import CONTENT_MAX, TAGS_MAX
from ....schemas.cloudevents import rfc3339
from ....schemas.collections import ARCHIVE, DIGESTS, EPISODES
from ....schemas.edits.episodes import (
    EpisodeEdit,
    EpisodeEdited,
    EpisodeForget,
    EpisodesMark,
    EpisodesMarked,
    EpisodesMerge,
    EpisodesMerged,
)
from ....schemas.edits.turns import EpisodesRetract, EpisodesRetracted
from ....schemas.episodes import SUMMARY, Episode, StoredEpisode
from ....schemas.facts import Trust
from ....schemas.outcomes import DeletePoints, OutPoint, PutPoints, SetFields, Write
from ....schemas.turns import SENSITIVITIES
from .scope import UpkeepEditResult, UpkeepEditScope, refused


async def update(args: EpisodeEdit, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Change text, tags or importance. A changed text is hashed and embedded again."""
    episode = (await _episodes([args.episode_id], scope)).get(args.episode_id)
    if episode is None:
        return _unknown(args.episode_id)
    given = {"content": args.content, "tags": args.tags, "importance": args.importance}
    changed = {name: value for name, value in given.items() if value is not None and getattr(episode, name) != value}
    if not changed:
        return UpkeepEditResult(result=EpisodeEdited(episode_id=episode.episode_id, changed=False))
    edited = EpisodeEdited(episode_id=episode.episode_id, changed=True)
    if (unsafe := find_unsafe_text(Episode, changed)) is not None:
        return refused(unsafe.code, unsafe.message)
    if "content" not in changed:
        fields = {name: [*value] if isinstance(value, tuple) else value for name, value in changed.items()}
        return UpkeepEditResult(result=edited, writes=(_set((episode.episode_id,), fields, scope),))
    if outranks(episode, args):
        message = f"the episode has the trust {episode.trust}, the new words have {args.trust}: add an episode instead"
        return refused("own_word", message)
    assert args.content is not None  # `changed` contains the new content
    reworded = _reworded(episode.model_copy(update=changed), args.content, args.trust, scope)
    return UpkeepEditResult(result=edited, writes=(await _put(reworded, scope),))


async def forget(args: EpisodeForget, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Delete an episode. No read returns it, but it stays in the store."""
    episode = (await _episodes([args.episode_id], scope, deleted=True)).get(args.episode_id)
    if episode is None:
        return _unknown(args.episode_id)
    gone = episode.deleted_at is not None
    result = EpisodeEdited(episode_id=episode.episode_id, changed=not gone)
    writes = () if gone else (_set((episode.episode_id,), {"deleted_at": rfc3339(scope.now)}, scope),)
    return UpkeepEditResult(result=result, writes=writes)


async def merge(args: EpisodesMerge, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Merge episodes into the first episode. The other episodes are deleted and refer to the first."""
    if len(set(args.episode_ids)) < len(args.episode_ids):
        return refused("same", "an episode cannot be merged with itself: name each once")
    known = await _episodes(args.episode_ids, scope)
    missing = next((each for each in args.episode_ids if each not in known), None)
    if missing is not None:
        return _unknown(missing)
    episodes = [known[each] for each in args.episode_ids]
    content = args.content or ". ".join(dict.fromkeys(each.content.rstrip(".") for each in episodes))
    if len(content) > CONTENT_MAX:
        message = f"their texts have {len(content)} characters together; at most {CONTENT_MAX} fit: give a text"
        return refused("too_long", message)
    if (unsafe := find_unsafe_text(Episode, {"content": content})) is not None:
        return refused(unsafe.code, unsafe.message)
    first, *others = episodes
    survivor = first.model_copy(
        update={
            "tags": tuple(dict.fromkeys(tag for each in episodes for tag in each.tags))[:TAGS_MAX],
            "strength": max(each.strength for each in episodes),
            "importance": max(each.importance for each in episodes),
            "trust": _lowest(*(each.trust for each in episodes)),
            "sensitivity": max((each.sensitivity for each in episodes), key=SENSITIVITIES.index),
        }
    )
    gone = tuple(each.episode_id for each in others)
    fields: dict[str, JsonValue] = {"deleted_at": rfc3339(scope.now), "merged_into": first.episode_id}
    return UpkeepEditResult(
        result=EpisodesMerged(episode_id=first.episode_id, merged_episode_ids=gone),
        writes=(
            await _put(_reworded(survivor, content, args.trust if args.content else survivor.trust, scope), scope),
            _set(gone, fields, scope),
        ),
    )


async def mark_consolidated(args: EpisodesMark, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Mark episodes so that no later run reads them."""
    known = await _episodes(args.episode_ids, scope)
    missing = next((each for each in args.episode_ids if each not in known), None)
    if missing is not None:
        return _unknown(missing)
    marked = tuple(each for each in dict.fromkeys(args.episode_ids) if known[each].consolidated_at is None)
    writes = (_set(marked, {"consolidated_at": rfc3339(scope.now)}, scope),) if marked else ()
    return UpkeepEditResult(result=EpisodesMarked(episode_ids=marked), writes=writes)


async def retract_episodes(args: EpisodesRetract, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Delete the episodes of a turn that was taken back, the summaries that include it, their archived texts, and the
    digest if it may contain the turn."""
    gone = await _of_turn(args, scope)
    tenant_id, digest_id = scope.command.tenant_id, ids.digest_id(scope.owner_key)
    writes: list[Write] = []
    if gone:
        writes.append(_set(gone, {"deleted_at": rfc3339(scope.now)}, scope))
        archived = await stored_ids(ARCHIVE, [ids.archive_id(each) for each in gone], scope)
        writes += [DeletePoints(collection=ARCHIVE, tenant_id=tenant_id, ids=archived)] if archived else []
    digest = await stored_ids(DIGESTS, [digest_id], scope) if gone or args.facts else ()
    writes += [DeletePoints(collection=DIGESTS, tenant_id=tenant_id, ids=digest)] if digest else []
    result = EpisodesRetracted(episodes=len(gone), digest=bool(digest))
    return UpkeepEditResult(result=result, writes=tuple(writes))


async def stored_ids(collection: str, wanted: Sequence[str], scope: UpkeepEditScope) -> tuple[str, ...]:
    """Return the ids of the records that the store has."""
    store, calls, tenant_id = scope.reader.store, scope.reader.calls, scope.command.tenant_id
    exists = await calls.call("store", lambda: store.exists(collection))
    if not exists:
        return ()
    return tuple(await calls.call("store", lambda: store.get(collection, tenant_id=tenant_id, ids=wanted)))


async def _of_turn(args: EpisodesRetract, scope: UpkeepEditScope) -> tuple[str, ...]:
    """Return the ids of the turn's episodes that are not deleted, and of the summaries that include the turn."""
    store, calls, tenant_id = scope.reader.store, scope.reader.calls, scope.command.tenant_id
    exists = await calls.call("store", lambda: store.exists(EPISODES))
    if not exists:
        return ()
    of_session: list[models.Condition] = [
        equals("owner_key", scope.owner_key),
        equals("user_id", args.user_id),
        equals("session_id", args.session_id),
        is_empty("deleted_at"),
        models.Filter(should=[equals("turn_id", args.turn_id), equals("tags", SUMMARY)]),
    ]
    found = await calls.call(
        "store",
        lambda: store.select(
            EPISODES,
            tenant_id=tenant_id,
            where=models.Filter(must=of_session),
            fields=("turn_id", "turn_ids", "command_id"),
        ),
    )
    return tuple(each.id for each in found if _is_of_turn(each.payload, args.turn_id))


def _is_of_turn(payload: Payload, turn_id: str) -> bool:
    """Return whether an episode is from the turn. The `turn_id` of an episode that a command added matches no turn."""
    turns = payload.get("turn_ids")
    included = isinstance(turns, list) and turn_id in turns
    return payload.get("command_id") is None and (included or payload.get("turn_id") == turn_id)


async def _episodes(
    episode_ids: Sequence[str], scope: UpkeepEditScope, *, deleted: bool = False
) -> Mapping[str, StoredEpisode]:
    """Read the owner's episodes with these ids, including deleted episodes if `deleted`."""
    known = await scope.reader.episodes_by_id(scope.command.tenant_id, scope.owner_key, episode_ids)
    return {each: episode for each, episode in known.items() if deleted or episode.deleted_at is None}


def _reworded(episode: StoredEpisode, content: str, trust: Trust, scope: UpkeepEditScope) -> StoredEpisode:
    """Return the episode with another text. Its trust is the lower of the old trust and the trust of the new text. An
    episode that was reduced to a gist is a full episode again."""
    label = scope.secrets.label(content, episode.subject)
    return episode.model_copy(
        update={
            "content": content,
            "content_hash": ids.content_hash(content),
            "sensitivity": at_least(episode.sensitivity, label),
            "trust": _lowest(episode.trust, trust),
            "archived_at": None,
            "edited_at": scope.now,
        }
    )


async def _put(episode: StoredEpisode, scope: UpkeepEditScope) -> Write:
    vector = await scope.embed(episode.content)
    point = OutPoint(id=episode.episode_id, payload=episode.to_payload(), dense=vector, text=episode.content)
    return PutPoints(collection=EPISODES, points=(point,))


def _set(episode_ids: tuple[str, ...], fields: Mapping[str, object], scope: UpkeepEditScope) -> Write:
    return SetFields(collection=EPISODES, tenant_id=scope.command.tenant_id, ids=episode_ids, fields=dict(fields))


def _lowest(*trusts: Trust) -> Trust:
    return min(trusts, key=TRUST.index)


def _unknown(episode_id: str) -> UpkeepEditResult:
    return refused("unknown", f"there is no episode {episode_id} of this owner")
