"""Old episodes that nobody recalls get a gist; their words go to the archive, and from there when nobody has asked for
them in their time (memory-model §8). A part of the janitor's visit; docs/design/gist.md.

The archive is written before the episode: there is no moment at which its words are in neither place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from qdrant_client import models

from ...memory.gist import archived, extracted, worth_a_gist
from ...memory.policies import GistPolicy
from ...schemas.cloudevents import rfc3339
from ...schemas.collections import ARCHIVE, EPISODES
from ...schemas.episodes import StoredEpisode
from ...schemas.outcomes import DeletePoints, InsertPoints, OutPoint, SetFields, Write
from .looking import READ_MAX, Lookup, as_episode, empty, of_owner, until
from .rows import OwnerRow, PartName
from .steps import Asked, Did


@dataclass(frozen=True, slots=True)
class Gists:
    lookup: Lookup
    policy: GistPolicy
    part: PartName = "hygiene"

    async def take(self, asked: Asked, row: OwnerRow, *, leaving: Collection[str] = ()) -> Did:
        """`leaving`: episodes that this visit culls."""
        chosen = [each for each in await self._old(asked) if each.episode_id not in leaving][: self.policy.at_once]
        over = await self._over(asked)
        writes = [
            write
            for each in chosen
            for write in _compressed(each, extracted(each.content, chars=self.policy.chars), asked)
        ]
        writes += _let_go(over, asked)
        counts = {"compressed": len(chosen), "archive_over": len(over)}
        return Did("done" if writes else "nothing", row, counts, writes=tuple(writes))

    async def _old(self, asked: Asked) -> Sequence[StoredEpisode]:
        """The oldest first."""
        if not self.policy.enabled:
            return ()
        store = self.lookup.store
        where = models.Filter(
            must=[
                of_owner(asked),
                empty("deleted_at"),
                empty("archived_at"),
                until("occurred_at", asked.now - timedelta(days=self.policy.days)),
            ],
            must_not=[empty("consolidated_at")],
        )
        found = await self.lookup.calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=asked.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        episodes = (as_episode(each) for each in found)
        return [each for each in episodes if worth_a_gist(each, now=asked.now, policy=self.policy)]

    async def _over(self, asked: Asked) -> Sequence[str]:
        """Rows of the archive whose time is over."""
        store = self.lookup.store
        last = asked.now - timedelta(days=self.policy.retention_days)
        where = models.Filter(must=[of_owner(asked), until("accessed_at", last)])
        found = await self.lookup.calls.call(
            "store",
            lambda: store.select(
                ARCHIVE, tenant_id=asked.tenant_id, where=where, limit=READ_MAX, fields=("accessed_at",)
            ),
        )
        return [each.id for each in found]


def _compressed(episode: StoredEpisode, gist: str, asked: Asked) -> Iterator[Write]:
    """In this order."""
    row = archived(episode, at=asked.now)
    yield InsertPoints(collection=ARCHIVE, points=(OutPoint(id=row.archive_id, payload=row.to_payload()),))
    yield SetFields(
        collection=EPISODES,
        tenant_id=asked.tenant_id,
        ids=(episode.episode_id,),
        fields={"content": gist, "archived_at": rfc3339(asked.now)},
    )


def _let_go(rows: Sequence[str], asked: Asked) -> list[Write]:
    return [DeletePoints(collection=ARCHIVE, tenant_id=asked.tenant_id, ids=tuple(rows))] if rows else []
