"""Cause of an observation: model, prompt, and the policy that raised its importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...adapters.ports import Completion
from ...memory.policies import CapturePolicy
from ...memory.working_set.entries import EntryCandidate
from ...memory.working_set.importance import boosted_importance
from ...schemas.observations import (
    REFUSED_MAX,
    REFUSED_TEXT_MAX,
    AppliedPolicy,
    Emotion,
    Observation,
    ObservedBy,
    OverCap,
    RefusedStatement,
    RefusedStatements,
    TokenUsage,
    TurnCut,
)
from ...schemas.turns import SENSITIVITIES, Sensitivity, UnreadMessage
from ..common.structured_output import ParsedItems
from .answer_schema import ObservationItem
from .prompt import ObservePrompt


def importance_of(item: ObservationItem, policy: CapturePolicy) -> float:
    """Return the importance of an item, raised as the policy requires."""
    return boosted_importance(
        item.importance,
        category=item.category,
        is_correction=item.is_correction,
        emotion=emotion_of(item),
        policy=policy,
    )


def emotion_of(item: ObservationItem) -> Emotion | None:
    given = item.emotion
    return None if given is None else Emotion(valence=given.valence, arousal=given.arousal)


def raised(candidates: Sequence[EntryCandidate], given: Sequence[float]) -> frozenset[str]:
    """Return the ids of observations whose importance was raised. `given`: the importances from the model."""
    return frozenset(
        each.observation.observation_id
        for each, importance in zip(candidates, given, strict=True)
        if each.observation.importance > importance
    )


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item of the answer that was refused, and the name of the reason. `turn`: short id of the turn."""

    turn: str
    item: ObservationItem
    why: str


def refused_statements(refused: Sequence[RefusedItem], *, floor: Sensitivity) -> RefusedStatements | None:
    """Return the summary of the refused items of one turn for the record, or None when none was refused. `floor`: the
    sensitivity of the turn."""
    if not refused:
        return None
    listed: list[RefusedStatement] = []
    for each in refused:
        level = max(each.item.sensitivity, floor, key=SENSITIVITIES.index)
        if level != "secret" and len(listed) < REFUSED_MAX:
            content = each.item.content[:REFUSED_TEXT_MAX]
            listed.append(RefusedStatement(subject=each.item.subject, content=content, why=each.why, sensitivity=level))
    return RefusedStatements(statements=len(refused), listed=tuple(listed))


def applied_policy(
    by_policy: AppliedPolicy | None, recorded: Sequence[Observation], raised_ids: frozenset[str]
) -> AppliedPolicy | None:
    """Return the policy's changes for a turn, including the observations with raised importance."""
    boosted = tuple(each.observation_id for each in recorded if each.observation_id in raised_ids)
    if not boosted:
        return by_policy
    return (by_policy or AppliedPolicy(settings={})).model_copy(update={"boosted": boosted})


def cause_of(
    prompt: ObservePrompt,
    answer: Completion[ParsedItems[ObservationItem]] | None,
    *,
    with_usage: bool,
    applied: AppliedPolicy | None,
    cut: TurnCut | None,
    over_cap: OverCap | None,
    refused: RefusedStatements | None,
    unread: tuple[UnreadMessage, ...],
    repaired_characters: int,
) -> ObservedBy:
    """Return the cause of a turn's observations.

    `with_usage`: True for the first turn of a call, so that the call's tokens are counted once.
    """
    read = ObservedBy(applied=applied, unread=unread, repaired_characters=repaired_characters)
    if answer is None:
        return read
    used = answer.usage
    usage = TokenUsage(calls=used.calls, input_tokens=used.input_tokens, output_tokens=used.output_tokens)
    return read.model_copy(
        update={
            "model": answer.model,
            "prompt": prompt.name,
            "usage": usage if with_usage else None,
            "cut": cut,
            "over_cap": over_cap,
            "refused": refused,
        }
    )
