"""How `demo` and `chat` tell what happens: turns, what was observed, what was kept, replaced and why, and the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Literal

from rich.markup import escape
from rich.table import Table

from ...adapters.ports import VectorStore
from ...recall.record_filters import ALL, RecordSelection
from ...recall.record_reader import RecordReader
from ...schemas.episodes import EpisodesRecorded
from ...schemas.facts import Fact, FactState, FactUpdated
from ...schemas.observations import Observed
from ...schemas.turns import Owner
from .console import console, printable
from .event_feed import Person, Seen
from .fact_format import about, change_line

INDENT = " " * 9


def text(value: str) -> str:
    return escape(printable(value))


def tell(seen: Seen) -> None:
    """One record, as it comes."""
    out = console()
    if isinstance(seen, Observed):
        for each in seen.observations:
            out.print(
                f"{INDENT}[blue]observed[/blue]    {text(about(each.subject, each.content))}  "
                f"[dim]{each.category}, {each.durability}, importance {each.importance:.1f}"
                f"{', replaces an earlier one' if each.replaces_observation_id else ''}"
                f"{', a correction' if each.is_correction else ''}[/dim]",
                soft_wrap=True,
            )
        if not seen.observations:
            out.print(f"{INDENT}[dim]nothing worth remembering[/dim]")
    elif isinstance(seen, FactUpdated):
        out.print(INDENT + change_line(seen), soft_wrap=True)
    elif isinstance(seen, EpisodesRecorded) and seen.episodes:
        count = len(seen.episodes)
        out.print(f"{INDENT}[dim]kept as {count} episode{'s' if count > 1 else ''}[/dim]")


async def facts_of(store: VectorStore, person: Person, *, state: FactState | Literal["all"] = "active") -> list[Fact]:
    """A person's facts, oldest first."""
    owner = Owner(scope="user", id=person.user_id)
    return await RecordReader(store=store).every_fact(
        RecordSelection(person.tenant_id, owner=owner, state=state, ceiling="secret")
    )


async def tell_working_set(store: VectorStore, person: Person, session_id: str) -> None:
    """What the agent attends to at the end of a session."""
    session = RecordSelection(person.tenant_id, user_id=person.user_id, session_id=session_id, ceiling="secret")
    entries = await RecordReader(store=store).every_entry(session)
    table = Table("salience", "what", "subject", "lasting", box=None, pad_edge=False, header_style="bold")
    for entry in entries:
        table.add_row(f"{entry.salience:.2f}", text(entry.content), text(entry.subject), entry.durability)
    out = console()
    out.print(f"\n[bold]Working set of {text(session_id)}[/bold]  [dim]what is on its mind, fading by turns[/dim]")
    out.print(table if entries else "  (empty)")


async def tell_facts(store: VectorStore, person: Person) -> list[Fact]:
    """What is believed, and what was believed before. Returns all of them."""
    facts = await facts_of(store, person, state=ALL)
    by_id = {fact.fact_id: fact for fact in facts}
    table = Table("", "what", "subject", "state", "why", box=None, pad_edge=False, header_style="bold")
    for fact in sorted(facts, key=lambda fact: (fact.state != "active", fact.recorded_at)):
        quote = f"“{fact.evidence[-1].quote}”" if fact.evidence else "consolidated"
        why = quote
        if fact.superseded_by in by_id:
            why = f"now: {by_id[fact.superseded_by].content}"
        style = "" if fact.state == "active" else "dim"
        mark = "[green]●[/green]" if fact.state == "active" else "○"
        table.add_row(
            mark, text(fact.content), text(fact.subject), f"{fact.state} v{fact.version}", text(why), style=style
        )
    out = console()
    out.print("\n[bold]Facts[/bold]  [dim]● believed now  ○ history[/dim]")
    out.print(table if facts else "  (none)")
    return facts


def program() -> str:
    """How this command was called, so that what is advised can be typed as it stands."""
    called = sys.argv[0]
    if os.sep not in called or not os.path.exists(called):
        return "memstream"
    if any(os.path.join(folder, "memstream") == called for folder in os.get_exec_path()):
        return "memstream"
    return os.path.relpath(called)


def tell_next(lines: Sequence[tuple[str, str]]) -> None:
    out = console()
    out.print("\n[bold]What next[/bold]")
    width = max(len(command) for command, _ in lines)
    for command, why in lines:
        out.print(f"  [cyan]{escape(command):<{width}}[/cyan]  [dim]{escape(why)}[/dim]", soft_wrap=True)
