"""A context for a prompt: chosen memories as text, within a token limit (docs/design/context.md).

Sections come in this order: blocks, digest, facts by subject, focus, episodes. What does not fit is left out whole,
from the end. Pure: its memories were recalled and ranked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from ...schemas import ids
from ...schemas.observations import Category
from ...schemas.turns import Sensitivity, up_to
from ..language.text import one_line
from .prompt_framing import frame, remove_controls

Section = Literal["blocks", "digest", "semantic", "working", "episodic"]
DEFAULT_SECTIONS: frozenset[Section] = frozenset(("blocks", "digest", "working"))
FULL_SECTIONS: frozenset[Section] = DEFAULT_SECTIONS | {"semantic", "episodic"}
"""The preset `full`."""
PROSE: frozenset[Section] = frozenset(("blocks", "digest"))
USER = "user"


@dataclass(frozen=True, slots=True)
class WorkingBlock:
    """A compiled working block."""

    name: str
    text: str
    sensitivity: Sensitivity = "internal"
    id: str = ""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One memory as its section shows it. Only facts show their category."""

    content: str
    subject: str = USER
    category: Category | None = None
    sensitivity: Sensitivity = "internal"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories to render, each list best first."""

    blocks: Sequence[WorkingBlock] = ()
    digest: str | None = None
    digest_id: str = ""
    facts: Sequence[ContextItem] = ()
    focus: Sequence[ContextItem] = ()
    episodes: Sequence[ContextItem] = ()


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """Limits of a context. `ceiling`: the most sensitive level that is shown; `secret` needs a caller with the
    right."""

    max_tokens: int = 2_000
    sections: frozenset[Section] = field(default=DEFAULT_SECTIONS)
    ceiling: Sensitivity = "internal"

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"context.max_tokens must be 1 or more, not {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory in the text. `RenderedContext.shown` keeps their order."""

    section: Section
    id: str
    """The record's id; empty where it has none."""


@dataclass(frozen=True, slots=True)
class RenderedContext:
    text: str
    shown: tuple[ShownMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of text that is shown whole or not at all."""

    section: Section
    under: str
    """The name of a block, or the subject of a statement."""
    text: str
    says: frozenset[str]
    """Its statements in canonical form: lower sections do not repeat them."""
    id: str = ""


def tokens(text: str) -> int:
    """Estimate tokens without a model's vocabulary: four bytes of UTF-8 each.

    In English that is four characters; in scripts that tokenizers split into smaller parts, fewer.
    """
    return -(-len(text.encode()) // 4)


def render(
    memories: Memories, policy: ContextPolicy, *, mark: str, count: Callable[[str], int] = tokens
) -> RenderedContext:
    """Return the framed text with at most `max_tokens` by `count`; empty when nothing is shown. `mark`: see
    prompt_framing.py."""
    pieces = _unsaid(_pieces(memories, policy))
    for shown in range(len(pieces), 0, -1):
        text = frame(_text(pieces[:shown]), mark=mark)
        if count(text) <= policy.max_tokens:
            return RenderedContext(text, tuple(ShownMemory(piece.section, piece.id) for piece in pieces[:shown]))
    return RenderedContext("")


# ------------------------------------------------------------------------------------------------ pieces
def _pieces(memories: Memories, policy: ContextPolicy) -> Iterator[_Piece]:
    """Yield the pieces of the sections that are on, up to the ceiling, in order."""
    allowed = up_to(policy.ceiling)
    if "blocks" in policy.sections:
        for block in sorted(memories.blocks, key=lambda each: each.name):
            if block.sensitivity in allowed:
                yield _prose("blocks", one_line(remove_controls(block.name)), block.text, block.id)
    if "digest" in policy.sections:
        yield _prose("digest", "Summary", memories.digest or "", memories.digest_id)
    listed: tuple[tuple[Section, Sequence[ContextItem]], ...] = (
        ("semantic", sorted(memories.facts, key=lambda each: (each.subject != USER, each.subject))),
        ("working", memories.focus),
        ("episodic", memories.episodes),
    )
    for section, statements in listed:
        if section in policy.sections:
            for statement in statements:
                if statement.sensitivity in allowed:
                    yield _item(section, statement)


def _prose(section: Section, under: str, text: str, identity: str = "") -> _Piece:
    """Make a piece of several lines. Each line may be a statement that a lower section has too."""
    shown = remove_controls(text).strip()
    lines = (ids.canonical(line.strip().removeprefix("- ")) for line in shown.splitlines())
    return _Piece(section, under, shown, frozenset(line for line in lines if line), identity)


def _item(section: Section, statement: ContextItem) -> _Piece:
    content = one_line(remove_controls(statement.content))
    kind = f"[{statement.category}] " if section == "semantic" and statement.category else ""
    says = frozenset((ids.canonical(content),)) if content else frozenset[str]()
    return _Piece(section, one_line(remove_controls(statement.subject)), f"- {kind}{content}", says, statement.id)


def _unsaid(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Drop empty pieces, and statements that stand above in the same or a higher section."""
    said: set[str] = set()
    kept: list[_Piece] = []
    for piece in pieces:
        if piece.says and not (piece.section not in PROSE and piece.says <= said):
            kept.append(piece)
            said |= piece.says
    return kept


# ------------------------------------------------------------------------------------------------ text
def _text(pieces: Sequence[_Piece]) -> str:
    """Join paragraphs under their headings, with an empty line between them."""
    flat = all(piece.under == USER for piece in pieces if piece.section == "semantic")
    paragraphs = groupby(pieces, key=lambda piece: _heading(piece, flat_facts=flat))
    return "\n\n".join("\n".join((heading, *(piece.text for piece in group))) for heading, group in paragraphs)


def _heading(piece: _Piece, *, flat_facts: bool) -> str:
    match piece.section:
        case "blocks" | "digest":
            return f"{piece.under}:"
        case "semantic":
            return "Known facts:" if flat_facts else f"About {piece.under}:"
        case "working":
            return "Current focus:"
        case "episodic":
            return "Recent episodes:"
