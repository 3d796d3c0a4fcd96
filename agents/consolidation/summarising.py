"""Light phase: a session's turns that no summary has taken yet are summarised. Standard phase: a summary becomes an
episode, which the reflector adds (`episodes.record`).

A summary waits in the owner's row from one phase to the other, so that a tier without a standard phase loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from qdrant_client import models

from ...memory.digesting import within
from ...memory.policies import CapturePolicy, ConsolidationPolicy
from ...memory.summaries import Told, Unsummarised, as_told, by_need, that_fit, without
from ...schemas.base import CONTENT_MAX
from ...schemas.collections import EPISODES, FACTS, TURNS
from ...schemas.commands import SUMMARIES_MAX, SummaryProposal
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ...schemas.turns import SENSITIVITIES
from ...schemas.working import StoredMessage
from .asking import Asking, Question, Stopped, token_usage
from .looking import Lookup, is_, of_owner
from .prose import SCHEMA, parse
from .rows import OwnerRow, PartName, Summary
from .steps import Asked, Did
from .summary_prompt import TASK, SummaryPrompt

SUMMARY_TOKENS: Final = 300
SESSIONS_LOOKED_AT: Final = 3
"""Of an owner, in one run: turns of the first may not be in the session log yet."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """One session, the one with most turns that wait, in one question. Nothing where no model may be asked: the turns
    wait. Nothing either where a source decides what of a turn is shown, or nothing is: their words are not for us."""

    lookup: Lookup
    asking: Asking
    policy: ConsolidationPolicy
    capture: CapturePolicy
    part: PartName = "light"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        open_to_us = self.capture.enabled and not self.capture.source
        if not open_to_us or len(row.summaries) == SUMMARIES_MAX or self.asking.spending.paused(TASK) is not None:
            return Did("nothing", row)
        for session in by_need(row.unsummarised, at_least=self.policy.summary_turns)[:SESSIONS_LOOKED_AT]:
            turns = await self._turns(asked, session)
            if len(turns) >= self.policy.summary_turns:
                return await self._summarised(asked, row, session, turns)
        return Did("nothing", row)

    async def _summarised(self, asked: Asked, row: OwnerRow, session: Unsummarised, turns: Sequence[Told]) -> Did:
        secret = await self._secret(asked, session)
        tellable = [each for each in turns if each.said and each.turn_id not in secret]
        shown = that_fit(tellable, self.policy.summary_tokens)
        taken = [each.turn_id for each in turns]
        if len(shown) < len(tellable):  # what is too much for this question waits for the next one
            taken = taken[: taken.index(tellable[len(shown)].turn_id)]
        row_after = row.model_copy(update={"unsummarised": without(row.unsummarised, session, taken)})
        if not shown:
            return Did("nothing", row_after)
        prompt = SummaryPrompt(shown)
        answer = await self.asking.ask(asked.tenant_id, Question(TASK, prompt.name, prompt.messages(), SCHEMA, parse))
        if isinstance(answer, Stopped):  # one of no use would be of no use again
            return Did.stopped(answer, row_after if answer.status == "failed" else row, turns=len(shown))
        usage = token_usage(answer.usage)
        text = within(answer.value, SUMMARY_TOKENS)[:CONTENT_MAX]
        if not text:
            return Did("nothing", row_after, {"turns": len(shown)}, {"empty": 1}, usage=usage)
        made = Summary(
            user_id=session.user_id,
            session_id=session.session_id,
            turn_ids=tuple(each.turn_id for each in shown),
            content=text,
            began_at=shown[0].occurred_at,
            occurred_at=shown[-1].occurred_at,
            sensitivity=max((each.sensitivity for each in shown), key=SENSITIVITIES.index),
            trust=min((each.trust for each in shown), key=("assistant", "user").index),
            model=answer.model,
            prompt=prompt.name,
        )
        row_after = row_after.model_copy(update={"summaries": (*row.summaries, made)})
        return Did("done", row_after, {"summarised": len(shown)}, usage=usage)

    async def _turns(self, asked: Asked, session: Unsummarised) -> tuple[Told, ...]:
        """Of those that wait, those that the recorder has put into the session log by now."""
        where = models.Filter(
            must=[of_owner(asked), is_("user_id", session.user_id), is_("session_id", session.session_id), _of(session)]
        )
        store = self.lookup.store
        found = await self.lookup.calls.call(
            "store", lambda: store.select(TURNS, tenant_id=asked.tenant_id, where=where)
        )
        messages = (StoredMessage.from_payload(each.payload) for each in found)
        return as_told(session.turn_ids, messages, self.capture)

    async def _secret(self, asked: Asked, session: Unsummarised) -> frozenset[str]:
        """Turns in which something secret was told, as far as an episode or a fact says so."""
        store, calls, tenant_id = self.lookup.store, self.lookup.calls, asked.tenant_id
        secret = is_("sensitivity", "secret")
        of_episodes = models.Filter(must=[of_owner(asked), secret, _of(session)])
        of_facts = models.Filter(must=[of_owner(asked), secret, _of(session, "evidence[].turn_id")])
        episodes = await calls.call("store", lambda: store.select(EPISODES, tenant_id=tenant_id, where=of_episodes))
        facts = await calls.call("store", lambda: store.select(FACTS, tenant_id=tenant_id, where=of_facts))
        told = [StoredEpisode.from_payload(each.payload) for each in episodes]
        known = [StoredFact.from_payload(each.payload) for each in facts]
        return frozenset(
            [each.turn_id for each in told if each.session_id == session.session_id]
            + [each.turn_id for fact in known for each in fact.evidence if each.session_id == session.session_id]
        )


@dataclass(frozen=True, slots=True)
class EpisodesFromSummaries:
    """What was summarised is proposed as episodes, each as significant as the least of episodes."""

    significance: float
    part: PartName = "standard"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        if not row.summaries:
            return Did("nothing", row)
        row_after = row.model_copy(update={"summaries": ()})
        by_origin = [
            Did(
                "done",
                row_after,
                {"formed": len(summaries)},
                summaries=tuple(self._proposed(each) for each in summaries),
                model=model,
                prompt=prompt,
            )
            for (model, prompt), found in groupby(row.summaries, key=lambda each: (each.model, each.prompt))
            if (summaries := tuple(found))
        ]
        return Did("done", row_after, also=tuple(by_origin))

    def _proposed(self, summary: Summary) -> SummaryProposal:
        return SummaryProposal(
            user_id=summary.user_id,
            session_id=summary.session_id,
            turn_ids=summary.turn_ids,
            content=summary.content,
            importance=self.significance,
            began_at=summary.began_at,
            occurred_at=summary.occurred_at,
            sensitivity=summary.sensitivity,
            trust=summary.trust,
        )


def _of(session: Unsummarised, field: str = "turn_id") -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(session.turn_ids)))
