"""Gist step, a part of the janitor's visit: replaces old, unrecalled episodes by gists; see docs/design/gist.md.

The gist replaces the episode's text, and the text moves to the archive. A text that is not read for the retention
period is deleted from the archive. The archive is written before the episode, so the text is always in the archive, in
the episode or in both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from qdrant_client import models

from ....adapters.ports import Completion
from ....adapters.vectors.conditions import is_empty, until
from ....memory.language.identification import pack_of
from ....memory.language.text import one_line
from ....memory.policies import GistPolicy
from ....memory.upkeep.digest import SHOWN
from ....memory.upkeep.gist import archive_row, extract_gist, is_faithful, needs_gist
from ....schemas.cloudevents import rfc3339
from ....schemas.collections import ARCHIVE, EPISODES
from ....schemas.episodes import StoredEpisode
from ....schemas.observations import TokenUsage
from ....schemas.outcomes import DeletePoints, InsertPoints, OutPoint, SetFields, Write
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import READ_MAX, OwnerReader, as_episode, of_owner
from ..prompts.gist import TASK, GistPrompt
from ..prompts.text_answer import SCHEMA, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class Gist:
    """A gist. `answer`: the model's answer, even when its text is not used."""

    text: str
    answer: Completion[str] | None = None


@dataclass(frozen=True, slots=True)
class GistsStep:
    """A step that creates gists and deletes expired archive texts. `locales`: language packs for checking a gist."""

    reader: OwnerReader
    caller: ModelCaller
    policy: GistPolicy
    locales: str
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow, *, leaving: Collection[str] = ()) -> StepResult:
        """Create gists and delete expired archive texts. `leaving`: ids of episodes that this visit deletes."""
        chosen = [each for each in await self._old_episodes(request) if each.episode_id not in leaving][
            : self.policy.at_once
        ]
        expired = await self._expired_texts(request)
        gists = await self._gists(chosen, request)
        writes = [write for each in chosen for write in _compress(each, gists[each.episode_id].text, request)]
        writes += _expire(expired, request)
        counts = {"compressed": len(chosen), "archive_over": len(expired)}
        answers = [each.answer for each in gists.values() if each.answer is not None]
        usages = [token_usage(each.usage) for each in answers]
        usage = TokenUsage(
            calls=sum(each.calls for each in usages),
            input_tokens=sum(each.input_tokens for each in usages),
            output_tokens=sum(each.output_tokens for each in usages),
        )
        model = answers[0].model if answers else None
        return StepResult("done" if writes else "nothing", row, counts, writes=tuple(writes), model=model, usage=usage)

    async def _gists(self, chosen: Sequence[StoredEpisode], request: RunRequest) -> dict[str, Gist]:
        """Return the gist of each episode, by id.

        After a call without an answer, this visit calls no model again. It extracts the remaining gists from the texts.
        No model sees secret episodes.
        """
        gists: dict[str, Gist] = {}
        calls = self.policy.calls if self.policy.by == "model" else 0
        for episode in chosen:
            answer: Completion[str] | CallStopped | None = None
            if calls and episode.sensitivity in SHOWN:
                prompt = GistPrompt(episode, self.policy.chars)
                question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
                answer = await self.caller.ask(request.tenant_id, question)
                calls = 0 if isinstance(answer, CallStopped) else calls - 1
            gists[episode.episode_id] = self._gist(episode, answer)
        return gists

    def _gist(self, episode: StoredEpisode, answer: Completion[str] | CallStopped | None) -> Gist:
        """Return the model's gist when it is faithful to the text, otherwise an extracted gist.

        Both keep the model's answer, because its tokens are counted.
        """
        chars = self.policy.chars
        given = answer if isinstance(answer, Completion) else None
        if given is not None:
            text = one_line(given.value)
            if is_faithful(text, episode.content, chars=chars, pack=pack_of(episode.content, self.locales)):
                return Gist(text, given)
        return Gist(extract_gist(episode.content, chars=chars), given)

    async def _old_episodes(self, request: RunRequest) -> Sequence[StoredEpisode]:
        """Return the episodes that need a gist, oldest first."""
        if not self.policy.enabled:
            return ()
        store = self.reader.store
        where = models.Filter(
            must=[
                of_owner(request),
                is_empty("deleted_at"),
                is_empty("archived_at"),
                until("occurred_at", request.now - timedelta(days=self.policy.days)),
            ],
            must_not=[is_empty("consolidated_at")],
        )
        found = await self.reader.calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=request.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        episodes = (as_episode(each) for each in found)
        return [each for each in episodes if needs_gist(each, now=request.now, policy=self.policy)]

    async def _expired_texts(self, request: RunRequest) -> Sequence[str]:
        """Return the ids of archived texts whose retention period is over."""
        store = self.reader.store
        last = request.now - timedelta(days=self.policy.retention_days)
        where = models.Filter(must=[of_owner(request), until("accessed_at", last)])
        found = await self.reader.calls.call(
            "store",
            lambda: store.select(
                ARCHIVE, tenant_id=request.tenant_id, where=where, limit=READ_MAX, fields=("accessed_at",)
            ),
        )
        return [each.id for each in found]


def _compress(episode: StoredEpisode, gist: str, request: RunRequest) -> Iterator[Write]:
    """Yield two writes in this order: archive the text, then replace it."""
    row = archive_row(episode, at=request.now)
    yield InsertPoints(collection=ARCHIVE, points=(OutPoint(id=row.archive_id, payload=row.to_payload()),))
    yield SetFields(
        collection=EPISODES,
        tenant_id=request.tenant_id,
        ids=(episode.episode_id,),
        fields={"content": gist, "archived_at": rfc3339(request.now)},
    )


def _expire(rows: Sequence[str], request: RunRequest) -> list[Write]:
    return [DeletePoints(collection=ARCHIVE, tenant_id=request.tenant_id, ids=tuple(rows))] if rows else []
