"""Reason why the observer found no statement in a turn, as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..schemas.observations import Observed
from ..schemas.working_set import StoredMessage

OFFLINE: Final = "offline-rules/"
"""Beginning of the name of the offline model. Only its rules can be asked again for a reason."""
EARLIER: Final = 3
"""Number of earlier turns of the session that show whether a game or a story is still going on."""
REASONS: Final = {
    "QUESTION": "the message is a question, a request or a wish",
    "QUOTED": "the message is a greeting, a quotation or a text to work on",
    "MADE_UP": "the message is a part of a game or a story",
    "REPORTED": "the message has another person's words",
    "UNCERTAIN": "the message is a plan or a guess",
    "UNKNOWN": "the rules of the offline model do not understand the message; a language model might have",
}
"""Reasons by the name of a `Silence` of the offline model."""


def is_silent(observed: Observed) -> bool:
    """Return whether the observer found no statement, and refused none."""
    return not observed.observations and observed.cause.refused is None and observed.cause.over_cap is None


def is_by_rules(observed: Observed) -> bool:
    """Return whether the offline model observed the turn."""
    return (observed.cause.model or "").startswith(OFFLINE)


def reason_of_silence(observed: Observed, said: Sequence[StoredMessage], earlier: Sequence[str]) -> str:
    """Return the reason without its full stop.

    `said`: the messages of the turn that the caller may see. `earlier`: the texts of the user before the turn, oldest
    first.
    """
    if observed.cause.model is None:
        return "no model was asked about it"
    texts = texts_of_user(said)
    if not is_by_rules(observed) or not texts:
        return "the model found nothing in it that lasts; questions, small talk, quotations and guesses teach nothing"
    from ..adapters.completions.offline import why_silent as by_rules  # its patterns take time to compile

    found = [by_rules(text, [*earlier, *texts[:place]]) for place, text in enumerate(texts)]
    return "; ".join(dict.fromkeys(REASONS[each.name] for each in found))


def texts_of_user(said: Sequence[StoredMessage]) -> list[str]:
    return [each.content for each in said if each.role == "user" and each.content.strip()]
