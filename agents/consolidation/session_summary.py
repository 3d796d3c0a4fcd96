"""Summaries of a session's turns, for the steps Summary and Compact: the choice of turns, and the model's answer.

A model does not see secret messages, turns with a sensitivity label, or turns that are the source of a secret episode
or fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ...adapters.vectors.conditions import any_of, equals
from ...memory.language.locales import locales
from ...memory.policies import CapturePolicy
from ...memory.secrets.secret_filter import at_least
from ...memory.upkeep.digest import truncate_to_tokens
from ...memory.upkeep.source_words import supported_sentences
from ...memory.upkeep.summaries import SummaryBacklog, SummaryTurn, to_summary_turns
from ...schemas import ids
from ...schemas.base import CONTENT_MAX
from ...schemas.collections import EPISODES, FACTS, LABELS, TURNS
from ...schemas.commands import SummaryProposal
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ...schemas.labels import TurnLabel
from ...schemas.observations import TokenUsage
from ...schemas.turns import SENSITIVITIES
from ...schemas.working_set import StoredMessage
from ..common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..common.seen_ids import SeenIds
from .owner_reads import OwnerReader, of_owner
from .prompts.summary import TASK, SummaryPrompt
from .prompts.text_answer import SCHEMA, parse
from .rows import SUMMARISED_KEPT, Summary
from .step import RunRequest

SUMMARY_TOKENS: Final = 300


@dataclass(frozen=True, slots=True)
class TurnsSummary:
    """The model's answer. `summary` is None when nothing in the turns is worth remembering."""

    summary: Summary | None
    usage: TokenUsage
    left_out: str = "empty"
    """Why there is no summary: `empty`, or `weak_evidence` when the turns support no sentence of the answer."""


def may_read_turns(capture: CapturePolicy) -> bool:
    """Return whether a model may see the text of turns.

    Return False when capture is off, or when the operator's own function decides which text of a turn is shown.
    """
    return capture.enabled and not capture.source


async def logged_turns(
    request: RunRequest, session: SummaryBacklog, *, reader: OwnerReader, capture: CapturePolicy
) -> tuple[SummaryTurn, ...]:
    """Read the turns of `session` that the recorder has stored in the session log so far, in order."""
    where = models.Filter(
        must=[
            of_owner(request),
            equals("user_id", session.user_id),
            equals("session_id", session.session_id),
            _of(session),
        ]
    )
    found = await reader.calls.call(
        "store", lambda: reader.store.select(TURNS, tenant_id=request.tenant_id, where=where)
    )
    return to_summary_turns(session.turn_ids, (StoredMessage.from_payload(each.payload) for each in found), capture)


async def without_secrets(
    request: RunRequest, session: SummaryBacklog, turns: Sequence[SummaryTurn], *, reader: OwnerReader
) -> tuple[SummaryTurn, ...]:
    """Return the turns that have text and no secret."""
    secret = await _secret_turns(request, session, reader=reader)
    return tuple(each for each in turns if each.said and each.turn_id not in secret)


async def _secret_turns(request: RunRequest, session: SummaryBacklog, *, reader: OwnerReader) -> frozenset[str]:
    """Return the turns that have a label or are the source of a secret episode or fact.

    Labels are read from their own collection, because a label exists there before consolidation receives the turn. The
    messages in the session log may get the label later.
    """
    store, calls, tenant_id = reader.store, reader.calls, request.tenant_id
    secret = equals("sensitivity", "secret")
    of_episodes = models.Filter(must=[of_owner(request), secret, _of(session)])
    of_facts = models.Filter(must=[of_owner(request), secret, _of(session, "evidence[].turn_id")])
    episodes = await calls.call("store", lambda: store.select(EPISODES, tenant_id=tenant_id, where=of_episodes))
    facts = await calls.call("store", lambda: store.select(FACTS, tenant_id=tenant_id, where=of_facts))
    secret_episodes = [StoredEpisode.from_payload(each.payload) for each in episodes]
    secret_facts = [StoredFact.from_payload(each.payload) for each in facts]
    session_key = ids.session_key(tenant_id, *session.session)
    label_ids = [ids.label_id(session_key, each) for each in session.turn_ids]
    labels = await calls.call("store", lambda: store.get(LABELS, tenant_id=tenant_id, ids=label_ids))
    return frozenset(
        [TurnLabel.from_payload(each.payload).turn_id for each in labels.values()]
        + [each.turn_id for each in secret_episodes if each.session_id == session.session_id]
        + [each.turn_id for fact in secret_facts for each in fact.evidence if each.session_id == session.session_id]
    )


async def summarise_turns(
    request: RunRequest, session: SummaryBacklog, shown: Sequence[SummaryTurn], *, caller: ModelCaller, packs: str
) -> TurnsSummary | CallStopped:
    """Ask the model for a summary of `shown`, which must not be empty. Sentences that the turns do not support are left
    out. `packs`: names of the language packs for this check."""
    prompt = SummaryPrompt(shown)
    answer = await caller.ask(request.tenant_id, ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse))
    if isinstance(answer, CallStopped):
        return answer
    usage = token_usage(answer.usage)
    said = [f"{role}: {text}" for turn in shown for role, text in turn.said]
    given = truncate_to_tokens(answer.value, SUMMARY_TOKENS)[:CONTENT_MAX]
    text = supported_sentences(given, said, locales(packs))
    if not text:
        return TurnsSummary(None, usage, "weak_evidence" if given else "empty")
    summary = Summary(
        user_id=session.user_id,
        session_id=session.session_id,
        turn_ids=tuple(each.turn_id for each in shown),
        content=text,
        began_at=shown[0].occurred_at,
        occurred_at=shown[-1].occurred_at,
        sensitivity=at_least(
            max((each.sensitivity for each in shown), key=SENSITIVITIES.index), caller.secrets.label(text)
        ),
        trust=min((each.trust for each in shown), key=("assistant", "user").index),
        model=answer.model,
        prompt=prompt.name,
    )
    return TurnsSummary(summary, usage)


def summary_proposal(summary: Summary, *, significance: float) -> SummaryProposal:
    """Return the proposal for the reflector. Its importance is the minimum importance of an episode."""
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


def with_summarised(
    before: SeenIds, request: RunRequest, session: SummaryBacklog, shown: Sequence[SummaryTurn]
) -> SeenIds:
    """Add the shown turns to the ids of summarised turns, which are stored in the owner's row."""
    for each in shown:
        before = before.add(summarised_id(request, session, each.turn_id), kept=SUMMARISED_KEPT)
    return before


def summarised_id(request: RunRequest, session: SummaryBacklog, turn_id: str) -> str:
    """Return the id by which the owner's row records a summarised turn."""
    return ids.turn_cause(ids.session_key(request.tenant_id, *session.session), turn_id)


def _of(session: SummaryBacklog, field: str = "turn_id") -> models.FieldCondition:
    return any_of(field, session.turn_ids)
