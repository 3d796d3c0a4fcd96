"""Report of `trace` for people: the fact, then what was said, what was observed, and what was decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue
from rich.markup import escape

from ...recall.provenance import ProvenanceChain, SourceTurn
from ...schemas.facts import Fact, FactUpdated
from .console import printable, say, wrapped
from .fact_format import about, show_change
from .reasons import decided

INDENT: Final = " " * 12
"""Width of the column that has what happened."""


def show_chain(chain: ProvenanceChain) -> None:
    """Print a chain."""
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
        _line(f"  {session_id}/{turn_id}: ", f"no words of it are kept ({why})")
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
        if seen.applied is not None:
            by = "the tenant's policy" if seen.applied.persona is None else f"the persona {seen.applied.persona}"
            more = ["counted more", *_pairs(seen.applied.settings)] if seen.boosted else _pairs(seen.applied.settings)
            _line("      ", f"by {by}: {', '.join(more)}")
    if none:
        _line("  ", "nothing: no observation is behind this fact")


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
