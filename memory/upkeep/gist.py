"""Gists of old episodes, and the archive of their words; pure.

A gist replaces the text of an episode. Before that, the text is written to the archive with its SHA-256. The archive
returns a text only when every byte is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from ...schemas import ids
from ...schemas.archive import ArchivedText
from ...schemas.cloudevents import rfc3339
from ...schemas.episodes import StoredEpisode
from ..decay import latest
from ..facts.similarity import overlap, words
from ..language.locales import Locale
from ..language.text import one_line
from ..language.tokenizer import tokens
from ..policies import GistPolicy
from .hygiene import current_strength
from .source_words import NUMBER, SENTENCE_END

ELLIPSIS: Final = " …"
OWN_WORDS: Final = 0.8
"""Minimum share of the words of a model's gist that also occur in the text."""


def needs_gist(episode: StoredEpisode, *, now: datetime, policy: GistPolicy) -> bool:
    """Return whether an episode must be compressed: it is old, faded, long, not compressed yet, and already
    consolidated.

    Consolidation comes first, because facts are made from the original text, not from a gist.
    """
    return (
        policy.enabled
        and episode.archived_at is None
        and episode.deleted_at is None
        and episode.consolidated_at is not None
        and now - episode.occurred_at >= timedelta(days=policy.days)
        and current_strength(episode, now=now) < policy.strength
        and len(episode.content) > policy.longer_than
        and ids.content_hash(episode.content) == episode.content_hash  # else `is_whole` refuses the archived text
    )


def archive_row(episode: StoredEpisode, *, at: datetime) -> ArchivedText:
    """Return the archive row with the text of an episode. The episode must not have a gist yet."""
    return ArchivedText(
        archive_id=ids.archive_id(episode.episode_id),
        episode_id=episode.episode_id,
        observation_id=episode.observation_id,
        tenant_id=episode.tenant_id,
        owner=episode.owner,
        owner_key=episode.owner_key,
        user_id=episode.user_id,
        session_id=episode.session_id,
        turn_id=episode.turn_id,
        content=episode.content,
        sha256=ids.text_hash(episode.content),
        archived_at=at,
        accessed_at=at,
        sensitivity=episode.sensitivity,
    )


def is_whole(row: ArchivedText, episode: StoredEpisode) -> bool:
    """Return whether the archive row contains the unchanged text of this episode."""
    return (
        row.episode_id == episode.episode_id
        and row.owner_key == episode.owner_key
        and ids.text_hash(row.content) == row.sha256
        and ids.content_hash(row.content) == episode.content_hash
    )


def archive_expiry(row: ArchivedText, policy: GistPolicy) -> datetime:
    """Return the time after which the janitor deletes the archived text."""
    return row.accessed_at + timedelta(days=policy.retention_days)


def access_fields(row: ArchivedText, *, at: datetime) -> dict[str, JsonValue]:
    """Return the fields of a row after one more access. The values are absolute, so writing them again changes
    nothing."""
    return {"accessed_at": rfc3339(latest(row.accessed_at, at)), "access_count": row.access_count + 1}


# ------------------------------------------------------------------------------------------------ making a gist
def extract_gist(text: str, *, chars: int) -> str:
    """Return at most `chars` characters of the beginning: whole sentences when the first one fits, else whole words and
    an ellipsis.

    The same text gives the same gist, and the gist says nothing that the text does not say.
    """
    text = one_line(text)
    sentences = _while_they_fit(SENTENCE_END.split(text), chars)
    if sentences:
        return sentences
    room = chars - len(ELLIPSIS)
    return (_while_they_fit(text.split(), room) or text[:room]) + ELLIPSIS


def _while_they_fit(parts: Iterable[str], chars: int) -> str:
    kept = ""
    for part in parts:
        longer = f"{kept} {part}" if kept else part
        if len(longer) > chars:
            break
        kept = longer
    return kept


def is_faithful(gist: str, text: str, *, chars: int, pack: Locale) -> bool:
    """Return whether a model's gist may replace the text: it is short enough, uses the words of the text, adds no
    numbers, and has the same negations."""
    return (
        0 < len(gist) <= chars
        and overlap(words(gist), words(text)) >= OWN_WORDS
        and set(NUMBER.findall(gist)) <= set(NUMBER.findall(text))
        and _denied(gist, pack) == _denied(text, pack)
    )


def _denied(text: str, pack: Locale) -> frozenset[str]:
    """Return the phrases of a text that negate or end something."""
    said = f" {' '.join(each.text for each in tokens(text, pack))} "
    markers = pack.markers
    return frozenset(each for each in (*markers.negations, *markers.never, *markers.endings) if f" {each} " in said)
