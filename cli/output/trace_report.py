"""Report of `trace` for people: the messages, observations, decisions and omissions behind a fact or a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue
from rich.markup import escape

from ...recall.provenance import ProvenanceChain, SourceTurn
from ...recall.turn_trace import TurnOutcome
from ...schemas.cloudevents import rfc3339
from ...schemas.facts import Fact, FactUpdated
from ...schemas.observations import OverCap
from .console import printable, say, wrapped
from .fact_format import about, show_change
from .reasons import decided

INDENT: Final = " " * 12
"""Indent with the width of the action column."""


def show_chain(chain: ProvenanceChain) -> None:
    """Print the provenance chain of a fact."""
    _show_fact(chain.fact)
    _show_said(chain)
    _show_observed(chain.observations)
    _show_decided(chain.events)


def _show_fact(fact: Fact) -> None:
    _line("", f"{about(fact.subject, fact.content)}  ({fact.state}, version {fact.version})")
    _line("  ", f"{fact.owner.scope} {fact.owner.id} · {fact.category} · confidence {fact.confidence:.2f}")


def _show_said(chain: ProvenanceChain) -> None:
    say("\nwhat was said")
    for message in chain.turns:
        _line(f"  {message.session_id}/{message.turn_id} {message.role}: ", message.content)
    for session_id, turn_id in chain.turns_gone:
        why = "not recorded yet, or older than session_log.retention_days"
        _line(f"  {session_id}/{turn_id}: ", f"its text is not stored ({why})")
    if not chain.turns and not chain.turns_gone:
        _line("  ", "nothing: no turn is behind this fact")


def _show_observed(observations: Iterable[SourceTurn]) -> None:
    say("\nwhat was observed")
    none = True
    for seen in observations:
        none = False
        _line(f"  {seen.session_id}/{seen.turn_id}: ", seen.observation.content)
        _line("      ", f"“{seen.observation.evidence}”")
        if seen.cut is not None:
            _line(
                "      ",
                f"the model did not see {seen.cut.tokens} tokens of this turn, of {seen.cut.messages} messages",
            )
        if seen.over_cap is not None:
            by_turn = f"`memstream trace --turn {seen.turn_id}` names them"
            _line("      ", f"other statements of this turn were left out: {seen.over_cap.observations}; {by_turn}")
        if seen.applied is not None:
            by = "the tenant's policy" if seen.applied.persona is None else f"the persona {seen.applied.persona}"
            more = ["counted more", *_pairs(seen.applied.settings)] if seen.boosted else _pairs(seen.applied.settings)
            _line("      ", f"by {by}: {', '.join(more)}")
    if none:
        _line("  ", "nothing: no observation is behind this fact")


def show_turn(turn: TurnOutcome) -> None:
    """Print a turn, its observations, and the statements that were left out."""
    _line("", f"turn {turn.turn_id} of session {turn.session_id}, user {turn.user_id}")
    say("\nwhat was said")
    for message in turn.messages:
        who = message.role if message.name is None else f"{message.role} ({message.name})"
        _line(f"  {rfc3339(message.occurred_at)} {who}: ", message.content)
    if not turn.messages:
        _line("  ", "its text is not stored (not recorded yet, or older than session_log.retention_days)")
    say("\nwhat was observed")
    if turn.observed is None:
        _line("  ", "nothing yet, or the record is older than the retention of memory.observations")
        return
    for seen in turn.observations:
        _line("  ", about(seen.subject, seen.content))
        _line("      ", f"“{seen.evidence}”")
    if not turn.observations:
        _line("  ", "nothing")
    cause = turn.observed.cause
    if cause.cut is not None:
        _line("  ", f"the model did not see {cause.cut.tokens} tokens of {cause.cut.messages} messages")
    for unread in cause.unread:
        _line("  ", f"message {unread.index + 1} was not read: {unread.why}")
    if cause.repaired_characters:
        _line("  ", f"broken characters that were replaced or removed: {cause.repaired_characters}")
    if cause.over_cap is not None:
        _show_over_cap(cause.over_cap)


def _show_over_cap(over: OverCap) -> None:
    say("\nwhat was left out")
    caps = "capture.max_per_message, capture.observation_tokens"
    _line("  ", f"statements beyond the caps of the policy ({caps}): {over.observations}")
    for statement in over.statements:
        _line("  ", statement)
    if (unnamed := over.observations - len(over.statements)) > 0:
        _line("  ", f"and {unnamed} more that the record does not list")


def _show_decided(events: Iterable[FactUpdated]) -> None:
    say("\nwhat was decided")
    for event in events:
        show_change(event)
        if event.decision is not None:
            _line(INDENT, decided(event.decision))
        if event.cause.command_id is not None:
            by = f" of {event.cause.issued_by}" if event.cause.issued_by else ""
            _line(INDENT, f"by command {event.cause.command_id}{by}")


def _line(label: str, text: str) -> None:
    wrapped(escape(printable(label)), escape(printable(text)))


def _pairs(settings: Mapping[str, JsonValue]) -> list[str]:
    return [f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]
