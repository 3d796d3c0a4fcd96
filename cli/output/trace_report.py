"""Report of `trace` for people: the messages, observations, decisions and omissions behind a fact or a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue
from rich.markup import escape

from ...recall.provenance import ProvenanceChain, SourceTurn
from ...recall.statement_outcomes import StatementOutcome
from ...recall.turn_trace import TurnOutcome
from ...schemas.cloudevents import rfc3339
from ...schemas.facts import Decision, Fact, FactUpdated
from .console import printable, say, wrapped
from .fact_format import about, show_change

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
        why = "not recorded yet, taken back, or older than session_log.retention_days"
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
    """Print a turn, the outcome of each statement, and the parts that were left out."""
    _line("", f"turn {turn.turn_id} of session {turn.session_id}, user {turn.user_id}  ({turn.stage})")
    say("\nwhat was said")
    for message in turn.messages:
        who = message.role if message.name is None else f"{message.role} ({message.name})"
        _line(f"  {rfc3339(message.occurred_at)} {who}: ", message.content)
    if not turn.messages:
        _line("  ", "its text is not stored (not recorded yet, taken back, or older than session_log.retention_days)")
    say("\nwhat became of it")
    if turn.why is not None and turn.observed is None:
        _line("  ", turn.why)
    for statement in turn.statements:
        _show_statement(statement)
    if turn.observed is None:
        return
    cause = turn.observed.cause
    if not turn.statements:
        _line("  ", f"nothing: {turn.why or 'no statement is listed'}")
    if turn.unlisted:
        _line("  ", f"and {turn.unlisted} refused statements that the record does not list")
    if cause.cut is not None:
        _line("  ", f"the model did not see {cause.cut.tokens} tokens of {cause.cut.messages} messages")
    for unread in cause.unread:
        _line("  ", f"message {unread.index + 1} was not read: {unread.why}")
    if cause.repaired_characters:
        _line("  ", f"broken characters that were replaced or removed: {cause.repaired_characters}")


def _show_statement(statement: StatementOutcome) -> None:
    _line(f"  {statement.status:<{len(INDENT) - 2}}", about(statement.subject or "user", statement.content))
    if statement.quote:
        _line(INDENT, f"“{statement.quote}”")
    _line(INDENT, statement.why)
    if statement.fact_id is not None:
        _line(INDENT, f"fact {statement.fact_id}")
    if statement.other_fact_id is not None:
        _line(INDENT, f"{'waits for' if statement.status == 'waiting' else 'closed by'} fact {statement.other_fact_id}")
    for closed in statement.closes:
        _line(INDENT, f"closes fact {closed}")


def _show_decided(events: Iterable[FactUpdated]) -> None:
    say("\nwhat was decided")
    for event in events:
        show_change(event)
        if event.decision is not None:
            _line(INDENT, _decided(event.decision))
        if event.cause.command_id is not None:
            by = f" of {event.cause.issued_by}" if event.cause.issued_by else ""
            _line(INDENT, f"by command {event.cause.command_id}{by}")


def _decided(decision: Decision) -> str:
    """Describe the basis of a decision: stage, compared fact, similarity and zone."""
    basis = [f"decided by: {decision.stage}"]
    if decision.other_fact_id is not None:
        basis.append(f"compared with fact {decision.other_fact_id}")
    if decision.similarity is not None:
        basis.append(f"similarity {decision.similarity:.2f}")
    if decision.zone is not None:
        basis.append(f"zone {decision.zone}")
    return ", ".join(basis)


def _line(label: str, text: str) -> None:
    wrapped(escape(printable(label)), escape(printable(text)))


def _pairs(settings: Mapping[str, JsonValue]) -> list[str]:
    return [f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]
