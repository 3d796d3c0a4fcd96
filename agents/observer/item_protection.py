"""Protection of model answers: contents are masked and labelled, and quotes are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...adapters.ports import Completion
from ...memory.secrets.quotes import cut_quote
from ...memory.secrets.secret_filter import SecretFilter, at_least
from ...memory.trust.rendered_text import unsafe_text
from ...memory.working_set.entries import EntryCandidate
from ...schemas.base import CONTENT_MAX, SUBJECT_MAX
from ...schemas.slots import QUALIFIER_MAX, VALUE_MAX
from ..common.structured_output import ParsedItems
from .answer_schema import ObservationItem

Answer = Completion[ParsedItems[ObservationItem]]


def without_secrets(answer: Answer | None, secrets: SecretFilter) -> Answer | None:
    """Return the answer with masked and labelled statements. A statement without remaining content is dropped.

    Quotes are not masked here: they must occur in the turn, and the turn is masked already.
    """
    if answer is None:
        return None
    kept: list[tuple[int, ObservationItem]] = []
    for place, item in answer.value.items:
        content, subject = secrets.text(item.content), secrets.text(item.subject)
        if content.text.strip() and subject.text.strip():
            label = secrets.label(item.content, item.subject, item.value, item.qualifier)
            update = {
                "content": content.text[:CONTENT_MAX],
                "subject": subject.text[:SUBJECT_MAX],
                "value": _shown(item.value, secrets, VALUE_MAX),
                "qualifier": _shown(item.qualifier, secrets, QUALIFIER_MAX),
                "sensitivity": at_least(item.sensitivity, label),
            }
            kept.append((place, item.model_copy(update=update)))
    dropped = answer.value.dropped + len(answer.value.items) - len(kept)
    return replace(answer, value=ParsedItems(tuple(kept), dropped, answer.value.faults))


def _shown(text: str | None, secrets: SecretFilter, most: int) -> str | None:
    """Return a value or a qualifier with masked secrets, or None when it must not be shown or is too long."""
    masked = "" if text is None else secrets.text(text).text.strip()
    return masked if 0 < len(masked) <= most and unsafe_text("statement", masked) is None else None


def with_cut_quotes(candidates: Sequence[EntryCandidate], secrets: SecretFilter) -> list[EntryCandidate]:
    """Return the observations of one turn. Quotes of non-secret observations are cut, so that they reveal no secret."""
    told = [each.observation.evidence for each in candidates if each.observation.sensitivity == "secret"]
    return [each if each.observation.sensitivity == "secret" else _cut(each, secrets, told) for each in candidates]


def _cut(candidate: EntryCandidate, secrets: SecretFilter, told: Sequence[str]) -> EntryCandidate:
    observation = candidate.observation
    quote = cut_quote(observation.evidence, observation.content, secrets, told=told)
    return replace(candidate, observation=observation.model_copy(update={"evidence": quote}))
