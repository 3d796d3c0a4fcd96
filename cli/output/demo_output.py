"""Output of `demo` and `chat`: observations, episodes and changes of facts as they happen, and the final memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Literal

from rich.markup import escape

from ...adapters.ports import VectorStore
from ...recall.record_filters import ALL, RecordSelection
from ...recall.record_reader import RecordReader
from ...recall.statement_outcomes import refusal_sentence
from ...schemas.episodes import EpisodesRecorded
from ...schemas.facts import Fact, FactState, FactUpdated
from ...schemas.observations import Observed
from ...schemas.turns import Owner
from .console import console, printable, table, wrapped
from .event_feed import Person, Seen
from .fact_format import about, show_change

INDENT = " " * 9


def text(value: str) -> str:
    """Return text escaped for rich markup, without control characters."""
    return escape(printable(value))


def show(seen: Seen) -> None:
    """Print one record."""
    out = console()
    if isinstance(seen, Observed):
        for each in seen.observations:
            wrapped(
                f"{INDENT}[blue]observed[/blue]    ",
                f"{text(about(each.subject, each.content))}  "
                f"[dim]{each.category}, {each.durability}, importance {each.importance:.1f}"
                f"{', replaces an earlier one' if each.replaces_observation_id else ''}"
                f"{', a correction' if each.is_correction else ''}[/dim]",
            )
        for refused in () if seen.cause.refused is None else seen.cause.refused.listed:
            why = f"[dim]{text(refusal_sentence(refused.why))}[/dim]"
            wrapped(f"{INDENT}[yellow]refused[/yellow]     ", f"{text(about(refused.subject, refused.content))}  {why}")
        if not seen.observations:
            out.print(f"{INDENT}[dim]nothing worth remembering[/dim]")
    elif isinstance(seen, FactUpdated):
        show_change(seen, indent=INDENT)
    elif isinstance(seen, EpisodesRecorded) and seen.episodes:
        count = len(seen.episodes)
        out.print(f"{INDENT}[dim]kept as {count} episode{'s' if count > 1 else ''}[/dim]")


async def facts_of(store: VectorStore, person: Person, *, state: FactState | Literal["all"] = "active") -> list[Fact]:
    """Read a person's facts, oldest first."""
    owner = Owner(scope="user", id=person.user_id)
    return await RecordReader(store=store).every_fact(
        RecordSelection(person.tenant_id, owner=owner, state=state, ceiling="secret")
    )


def show_beliefs(title: str, facts: Sequence[Fact]) -> None:
    """Print what memory believes at the start of a command, each fact with its subject."""
    wrapped(f"[bold]{title}[/bold]")
    for fact in facts:
        wrapped("  [green]●[/green] ", text(about(fact.subject, fact.content)))


async def show_working_set(store: VectorStore, person: Person, session_id: str) -> None:
    """Print the working set of a session, most salient entry first."""
    session = RecordSelection(person.tenant_id, user_id=person.user_id, session_id=session_id, ceiling="secret")
    entries = await RecordReader(store=store).every_entry(session)
    rows = [(f"{entry.salience:.2f}", entry.content, entry.subject, entry.durability) for entry in entries]
    console().print()
    wrapped(f"[bold]Working set of {text(session_id)}[/bold]  [dim]entries fade from turn to turn[/dim]")
    if rows:
        table(("salience", "content", "subject", "durability"), rows, empty="")
    else:
        console().print("  (empty)")


async def show_facts(store: VectorStore, person: Person) -> list[Fact]:
    """Print active facts, then the history. Return all facts."""
    facts = await facts_of(store, person, state=ALL)
    by_id = {fact.fact_id: fact for fact in facts}
    rows, styles = [], []
    for fact in sorted(facts, key=lambda fact: (fact.state != "active", fact.recorded_at)):
        quote = f"“{fact.evidence[-1].quote}”" if fact.evidence else "consolidated"
        source = quote
        if fact.superseded_by in by_id:
            source = f"now: {by_id[fact.superseded_by].content}"
        mark, style = ("●", "") if fact.state == "active" else ("○", "dim")
        rows.append((mark, fact.content, fact.subject, f"{fact.state} v{fact.version}", source))
        styles.append(style)
    console().print("\n[bold]Facts[/bold]  [dim]● believed now  ○ history[/dim]")
    if rows:
        table(("", "fact", "subject", "state", "source"), rows, empty="", styles=styles)
    else:
        console().print("  (none)")
    return facts


def program() -> str:
    """Return the command as the user called it, so that suggested commands work as printed."""
    called = sys.argv[0]
    if os.sep not in called or not os.path.exists(called):
        return "memstream"
    if any(os.path.join(folder, "memstream") == called for folder in os.get_exec_path()):
        return "memstream"
    return os.path.relpath(called)


def show_next(lines: Sequence[tuple[str, str]]) -> None:
    """Print commands to try, each with its purpose on the line before."""
    out = console()
    out.print("\n[bold]What next[/bold]")
    for command, purpose in lines:
        wrapped("  ", f"[dim]{escape(purpose)}[/dim]")
        out.print(f"    [cyan]{escape(command)}[/cyan]", soft_wrap=True)
