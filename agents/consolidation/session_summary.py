"""Turns of a session, told again in short: what of them a model may be shown, and its answer. What Summarise and
Compact share.

Left out are messages and turns that are secret, or in which an episode or a fact is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ...adapters.vectors.conditions import any_of, equals
from ...memory.policies import CapturePolicy
from ...memory.upkeep.digest import truncate_to_tokens
from ...memory.upkeep.summaries import SummaryBacklog, SummaryTurn, to_summary_turns
from ...schemas import ids
from ...schemas.base import CONTENT_MAX
from ...schemas.collections import EPISODES, FACTS, TURNS
from ...schemas.commands import SummaryProposal
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ...schemas.observations import TokenUsage
from ...schemas.turns import SENSITIVITIES
from ...schemas.working_set import StoredMessage
from ..common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..common.seen_ids import SeenIds
from .owner_reads import OwnerReader, of_owner
from .prompts.summary import TASK, SummaryPrompt
from .prompts.text_answer import SCHEMA, parse
from .rows import RETOLD_KEPT, Summary
from .steps.base import RunRequest

SUMMARY_TOKENS: Final = 300


@dataclass(frozen=True, slots=True)
class TurnsSummary:
    """An answer. `summary` None: nothing in these turns is worth remembering."""

    summary: Summary | None
    usage: TokenUsage


def may_be_read(capture: CapturePolicy) -> bool:
    """Not where a source decides what of a turn is shown, or nothing is: their words are not for us."""
    return capture.enabled and not capture.source


async def logged(
    asked: RunRequest, session: SummaryBacklog, *, lookup: OwnerReader, capture: CapturePolicy
) -> tuple[SummaryTurn, ...]:
    """Of these turns those that the recorder has put into the session log by now, in their order."""
    where = models.Filter(
        must=[
            of_owner(asked),
            equals("user_id", session.user_id),
            equals("session_id", session.session_id),
            _of(session),
        ]
    )
    found = await lookup.calls.call("store", lambda: lookup.store.select(TURNS, tenant_id=asked.tenant_id, where=where))
    return to_summary_turns(session.turn_ids, (StoredMessage.from_payload(each.payload) for each in found), capture)


async def tellable(
    asked: RunRequest, session: SummaryBacklog, turns: Sequence[SummaryTurn], *, lookup: OwnerReader
) -> tuple[SummaryTurn, ...]:
    """Of these turns those that have words, and in which nothing secret was told."""
    secret = await _secret(asked, session, lookup=lookup)
    return tuple(each for each in turns if each.said and each.turn_id not in secret)


async def _secret(asked: RunRequest, session: SummaryBacklog, *, lookup: OwnerReader) -> frozenset[str]:
    """Turns in which something secret was told, as far as an episode or a fact says so."""
    store, calls, tenant_id = lookup.store, lookup.calls, asked.tenant_id
    secret = equals("sensitivity", "secret")
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


async def summarise_turns(
    asked: RunRequest, session: SummaryBacklog, shown: Sequence[SummaryTurn], *, asking: ModelCaller
) -> TurnsSummary | CallStopped:
    """One question about `shown`, of which there is at least one."""
    prompt = SummaryPrompt(shown)
    answer = await asking.ask(asked.tenant_id, ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse))
    if isinstance(answer, CallStopped):
        return answer
    usage = token_usage(answer.usage)
    text = truncate_to_tokens(answer.value, SUMMARY_TOKENS)[:CONTENT_MAX]
    if not text:
        return TurnsSummary(None, usage)
    summary = Summary(
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
    return TurnsSummary(summary, usage)


def proposed(summary: Summary, *, significance: float) -> SummaryProposal:
    """For the reflector; as significant as the least of episodes."""
    return SummaryProposal(
        user_id=summary.user_id,
        session_id=summary.session_id,
        turn_ids=summary.turn_ids,
        content=summary.content,
        importance=significance,
        began_at=summary.began_at,
        occurred_at=summary.occurred_at,
        sensitivity=summary.sensitivity,
        trust=summary.trust,
    )


def summary_with(before: SeenIds, asked: RunRequest, session: SummaryBacklog, shown: Sequence[SummaryTurn]) -> SeenIds:
    for each in shown:
        before = before.add(summary_as(asked, session, each.turn_id), kept=RETOLD_KEPT)
    return before


def summary_as(asked: RunRequest, session: SummaryBacklog, turn_id: str) -> str:
    """How the owner's row remembers a turn that was shown."""
    return ids.turn_cause(ids.session_key(asked.tenant_id, *session.session), turn_id)


def _of(session: SummaryBacklog, field: str = "turn_id") -> models.FieldCondition:
    return any_of(field, session.turn_ids)
