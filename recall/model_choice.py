"""Answers of the tool `recall`, chosen by a chat model (docs/design/recall.md).

One model call chooses among facts, episodes and messages. The messages contain the words of the cue as a phrase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from ..adapters.ports import Embedder, RerankCandidate, VectorStore
from ..memory.policies import RecallPolicy
from ..memory.recall.selection import ScoredMemory
from ..memory.recall.shortlist import SHORTLIST_TIERS, ExactPhrase, excerpt, shortlist
from ..schemas.errors import Poison
from ..schemas.turns import SENSITIVITIES, Sensitivity
from .deadline import DeadlineReads, UnansweredPart
from .llm_reranker import CHARS_MAX, TASK, LlmReranker, SelectionAnswer
from .request import RecallRequest
from .service import RecalledMemory, RecallPort, RecallResult, RecallService

log = structlog.get_logger(__name__)

PART: Final = TASK
"""Name of the missing part when the model gave no usable answer."""
SHOWN_CEILING: Final[Sensitivity] = "internal"
"""The highest sensitivity shown to the model, even if the reader may see more. A chosen answer is therefore never
secret."""


class ModelChoice:
    """`RecallPort` with answers chosen by a model. It returns only the records that the model names, in the model's
    order. An item is cut to `CHARS_MAX` characters and keeps its score from ranking.

    The port `ranked` answers instead when the request has no cue, when it has no tier of facts or episodes, or when no
    record is found. `ranked` also answers when the model fails: it is unreachable, gives no answer within
    `tool.patience` seconds, is over its budget, or gives an unusable answer. Only when the model fails, `missing`
    contains `selection`.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        ranked: RecallPort,
        selector: LlmReranker,
        policy: RecallPolicy,
        locale: str = "en",
    ) -> None:
        """`ranked`: the port that answers when the model does not choose. It must read the same store."""
        wide = replace(policy, pool=max(policy.pool, policy.tool.facts, policy.tool.episodes))
        self._candidates = RecallService(store=store, embedder=embedder, policy=wide, locale=locale)
        self._ranked = ranked
        self._selector = selector
        self._policy = policy

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        """Answer a recall with at most `request.limit` items, best first. Raises Fatal for a broken invariant."""
        cue = request.search_text
        phrase = ExactPhrase(cue or "")
        tiers = tuple(tier for tier in SHORTLIST_TIERS if tier in request.tiers)
        if cue is None or tiers in ((), ("turns",)):
            return await self._by_rank(request, phrase, now)

        def pick(ordered: Sequence[ScoredMemory]) -> tuple[ScoredMemory, ...]:
            return shortlist(ordered, phrase=phrase, item_characters=CHARS_MAX, policy=self._policy)

        ceiling = min(request.ceiling, SHOWN_CEILING, key=SENSITIVITIES.index)
        found = await self._candidates.shortlist(replace(request, tiers=tiers, ceiling=ceiling), pick, now=now)
        if found.silent:
            return found
        if not found.items:
            return await self._by_rank(request, phrase, now)
        shown = [_cut(each, phrase) for each in found.items]
        parts = DeadlineReads(patience=self._policy.tool.patience)
        answer = await parts.ask(PART, lambda: self._selected(cue, shown, tenant_id=request.tenant_id))
        if answer is None:
            log.warning("recall_not_chosen", why=[each.why for each in parts.missing])
            return await self._by_rank(request, phrase, now, missing=parts.missing)
        named = answer.places[: request.limit]
        items = tuple(replace(shown[place], reranked=rank) for rank, place in enumerate(named))
        return RecallResult(items, found.missing)

    async def _selected(self, cue: str, shown: Sequence[RecalledMemory], *, tenant_id: str) -> SelectionAnswer:
        """Ask the model. An answer that names only unknown ids is unusable."""
        candidates = [RerankCandidate(each.item.tier, each.item.content, each.item.subject) for each in shown]
        answer = await self._selector.select(cue, candidates, tenant_id=tenant_id)
        if answer.dropped and not answer.places:
            raise Poison("refused_by_model", f"the model named {answer.dropped} ids, and none of them was shown")
        return answer

    async def _by_rank(
        self, request: RecallRequest, phrase: ExactPhrase, now: datetime, *, missing: Sequence[UnansweredPart] = ()
    ) -> RecallResult:
        ranked = await self._ranked.recall(request, now=now)
        items = tuple(_cut(each, phrase) for each in ranked.items)
        return replace(ranked, items=items, missing=(*ranked.missing, *missing))


def _cut(found: RecalledMemory, phrase: ExactPhrase) -> RecalledMemory:
    content = excerpt(found.item.content, phrase, characters=CHARS_MAX)
    return replace(found, item=found.item.model_copy(update={"content": content}))
