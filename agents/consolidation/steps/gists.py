"""Old episodes that nobody recalls get a gist; their words go to the archive, and from there when nobody has asked for
them in their time (memory-model §8). A part of the janitor's visit; docs/design/gist.md.

The archive is written before the episode: there is no moment at which its words are in neither place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from qdrant_client import models

from ....adapters.ports import Completion
from ....adapters.vectors.conditions import is_empty, until
from ....memory.language.locales import Locale
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
from .base import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class Gist:
    """`answer`: what a model said, also when it was not taken."""

    text: str
    answer: Completion[str] | None = None


@dataclass(frozen=True, slots=True)
class GistsStep:
    lookup: OwnerReader
    asking: ModelCaller
    policy: GistPolicy
    pack: Locale
    part: PartName = "hygiene"

    async def run(self, asked: RunRequest, row: ProgressRow, *, leaving: Collection[str] = ()) -> StepResult:
        """`leaving`: episodes that this visit culls."""
        chosen = [each for each in await self._old(asked) if each.episode_id not in leaving][: self.policy.at_once]
        over = await self._over(asked)
        gists = await self._gists(chosen, asked)
        writes = [write for each in chosen for write in _compressed(each, gists[each.episode_id].text, asked)]
        writes += _let_go(over, asked)
        counts = {"compressed": len(chosen), "archive_over": len(over)}
        answers = [each.answer for each in gists.values() if each.answer is not None]
        usages = [token_usage(each.usage) for each in answers]
        usage = TokenUsage(
            calls=sum(each.calls for each in usages),
            input_tokens=sum(each.input_tokens for each in usages),
            output_tokens=sum(each.output_tokens for each in usages),
        )
        model = answers[0].model if answers else None
        return StepResult("done" if writes else "nothing", row, counts, writes=tuple(writes), model=model, usage=usage)

    async def _gists(self, chosen: Sequence[StoredEpisode], asked: RunRequest) -> dict[str, Gist]:
        """By episode. A model that may not be asked, is away, or has no use is not asked again in this visit: what is
        extracted needs nobody. What is secret is shown to none."""
        gists: dict[str, Gist] = {}
        calls = self.policy.calls if self.policy.by == "model" else 0
        for episode in chosen:
            answer: Completion[str] | CallStopped | None = None
            if calls and episode.sensitivity in SHOWN:
                prompt = GistPrompt(episode, self.policy.chars)
                question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
                answer = await self.asking.ask(asked.tenant_id, question)
                calls = 0 if isinstance(answer, CallStopped) else calls - 1
            gists[episode.episode_id] = self._gist(episode, answer)
        return gists

    def _gist(self, episode: StoredEpisode, answer: Completion[str] | CallStopped | None) -> Gist:
        """The model's where it holds, else what can be extracted; what was answered is paid for in any case."""
        chars = self.policy.chars
        given = answer if isinstance(answer, Completion) else None
        if given is not None:
            text = one_line(given.value)
            if is_faithful(text, episode.content, chars=chars, pack=self.pack):
                return Gist(text, given)
        return Gist(extract_gist(episode.content, chars=chars), given)

    async def _old(self, asked: RunRequest) -> Sequence[StoredEpisode]:
        """The oldest first."""
        if not self.policy.enabled:
            return ()
        store = self.lookup.store
        where = models.Filter(
            must=[
                of_owner(asked),
                is_empty("deleted_at"),
                is_empty("archived_at"),
                until("occurred_at", asked.now - timedelta(days=self.policy.days)),
            ],
            must_not=[is_empty("consolidated_at")],
        )
        found = await self.lookup.calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=asked.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        episodes = (as_episode(each) for each in found)
        return [each for each in episodes if needs_gist(each, now=asked.now, policy=self.policy)]

    async def _over(self, asked: RunRequest) -> Sequence[str]:
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


def _compressed(episode: StoredEpisode, gist: str, asked: RunRequest) -> Iterator[Write]:
    """In this order."""
    row = archive_row(episode, at=asked.now)
    yield InsertPoints(collection=ARCHIVE, points=(OutPoint(id=row.archive_id, payload=row.to_payload()),))
    yield SetFields(
        collection=EPISODES,
        tenant_id=asked.tenant_id,
        ids=(episode.episode_id,),
        fields={"content": gist, "archived_at": rfc3339(asked.now)},
    )


def _let_go(rows: Sequence[str], asked: RunRequest) -> list[Write]:
    return [DeletePoints(collection=ARCHIVE, tenant_id=asked.tenant_id, ids=tuple(rows))] if rows else []
