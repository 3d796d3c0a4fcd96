"""A change of a fact as a person reads it: what is believed now, what it was before, and why."""

from __future__ import annotations

from rich.markup import escape

from ...schemas.facts import FactUpdated
from .console import console, printable

_STYLES = {
    "new": ("green", "learnt"),
    "reinforced": ("green", "heard again"),
    "approved": ("green", "approved"),
    "promoted": ("green", "promoted"),
    "updated": ("cyan", "reworded"),
    "merged": ("cyan", "merged"),
    "superseded": ("yellow", "replaced"),
    "invalidated": ("red", "corrected"),
    "pruned": ("dim", "pruned"),
    "expired": ("dim", "expired"),
    "forgotten": ("dim", "forgotten"),
    "quarantined": ("red", "quarantined"),
}


def about(subject: str, content: str) -> str:
    """A statement as one reads it: whom it is about stands before it, unless it is the user."""
    return content if subject == "user" else f"{subject}: {content}"


def change_line(event: FactUpdated) -> str:
    """One line of rich markup."""
    colour, word = _STYLES.get(event.action, ("white", event.action))
    owner = f"{event.owner.scope} {event.owner.id}"
    text = f"[{colour}]{word:<11}[/{colour}] {_text(about(event.fact.subject, event.fact.content))}"
    if event.fact.state != "active":
        text += f" [dim]({event.fact.state})[/dim]"
    reason = f" · {_text(event.reason)}" if event.reason else ""
    return f"{text}  [dim]{_text(owner)} · v{event.fact.version}{reason}[/dim]"


def show_change(event: FactUpdated) -> None:
    console().print(change_line(event), soft_wrap=True)


def _text(text: str) -> str:
    return escape(printable(text))
