"""Changes of facts as text for people: the action, the fact, its owner, version and reason."""

from __future__ import annotations

from rich.markup import escape

from ...memory.facts.reasons import sentence
from ...memory.facts.reopening import STAGE as RESTORED
from ...schemas.facts import FactUpdated
from .console import printable, wrapped

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
    """Return a statement with its subject in front, unless the subject is the user."""
    return content if subject == "user" else f"{subject}: {content}"


def show_change(event: FactUpdated, *, indent: str = "") -> None:
    """Print a change of a fact."""
    wrapped(*change_markup(event, indent=indent))


def change_markup(event: FactUpdated, *, indent: str = "") -> tuple[str, str]:
    """Return the action, padded to a column, and the rest of the line, both as rich markup."""
    restored = event.decision is not None and event.decision.stage == RESTORED and event.fact.state == "active"
    colour, word = ("green", "restored") if restored else _STYLES.get(event.action, ("white", event.action))
    owner = f"{event.owner.scope} {event.owner.id}"
    text = _text(about(event.fact.subject, event.fact.content))
    if event.fact.state != "active":
        text += f" [dim]({event.fact.state})[/dim]"
    reason = f" · {_text(sentence(event.reason))}" if event.reason else ""
    body = f"{text}  [dim]{_text(owner)} · v{event.fact.version}{reason}[/dim]"
    return f"{indent}[{colour}]{word:<11}[/{colour}] ", body


def _text(text: str) -> str:
    return escape(printable(text))
