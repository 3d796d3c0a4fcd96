"""Context for a prompt: render memories as text within a token limit (docs/design/context.md).

The sections have this order: due tasks, blocks, profile, digest, facts by subject, focus, episodes, messages. A
statement about a subject other than the user is shown with the name of that subject. A piece of text that does not fit
is left out whole. The module is pure: the caller recalls and ranks the memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from itertools import groupby
from typing import Final, Literal, get_args

from ...schemas import ids
from ...schemas.facts import Trust
from ...schemas.observations import Category
from ...schemas.turns import Sensitivity, up_to
from ..trust.rendered_text import is_unsafe, safe_heading, safe_prose
from .context_lines import USER, day, imitates_structure, lines_of, one_plain_line, since, subject_name
from .prompt_framing import frame

Section = Literal["tasks", "blocks", "profile", "digest", "semantic", "working", "episodic", "turns"]
ORDER: Final[tuple[Section, ...]] = get_args(Section)
DEFAULT_SECTIONS: frozenset[Section] = frozenset(("tasks", "blocks", "digest", "semantic", "working", "turns"))
FULL_SECTIONS: frozenset[Section] = DEFAULT_SECTIONS | {"episodic"}
"""Sections of the preset `full`."""
SMALL_SECTIONS: frozenset[Section] = frozenset(("digest", "working"))
"""Sections of the preset `small`."""
PROSE: frozenset[Section] = frozenset(("blocks", "digest"))
SHARES: Final[Mapping[Section, int]] = {"profile": 3, "turns": 5}
"""If the text has no room for every piece, the profile gets at most a third of the tokens, and messages at most a
fifth. The rest is for the other sections, if there are any."""
CHOSEN: Final[tuple[Section, ...]] = (
    "tasks",
    "blocks",
    "profile",
    "digest",
    "turns",
    "semantic",
    "working",
    "episodic",
)
"""The order in which pieces are chosen when there is no room for every piece. Messages come before facts: a mature
memory has facts for every number of tokens, and messages have what no fact says."""


@dataclass(frozen=True, slots=True)
class WorkingBlock:
    """A compiled working block."""

    name: str
    text: str
    sensitivity: Sensitivity = "internal"
    id: str = ""
    by_person: bool = False
    """True when a person wrote the block. Such a block may contain instructions to the assistant."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One memory to show in a section. The category is shown for facts only."""

    content: str
    subject: str = USER
    category: Category | None = None
    sensitivity: Sensitivity = "internal"
    id: str = ""
    since: datetime | None = None
    """Start of a fact; None when the speaker gave no start."""
    confirmed: datetime | None = None
    """The last confirmation of a fact. It is shown when the fact has no start."""
    day: datetime | None = None
    """For an episode, the time when it happened or was said. For a task, the time when it is due."""
    by_person: bool = False
    """True when a person said, approved or added the memory. Such a memory may contain instructions to the
    assistant."""
    trust: Trust = USER
    """Origin of the memory. What the assistant or a tool said is marked."""


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """A passage of a message that no statement covers. `speaker`: the result of `said_before.speaker_of`."""

    passage: str
    speaker: str
    day: datetime
    sensitivity: Sensitivity = "internal"
    id: str = ""


@dataclass(frozen=True, slots=True)
class ContextValue:
    """One value of the user's profile, with the statement of its fact."""

    slot: str
    content: str
    value: str = ""
    """Empty: the fact has no value. Then its statement is shown."""
    qualifier: str = ""
    denied: bool = False
    sensitivity: Sensitivity = "internal"
    id: str = ""
    since: datetime | None = None
    """Start of the fact; None when the speaker gave no start."""
    trust: Trust = USER


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories to render. Each list has the best memory first."""

    tasks: Sequence[ContextItem] = ()
    """Tasks that are due, and tasks with a condition that the cue meets."""
    blocks: Sequence[WorkingBlock] = ()
    profile: Sequence[ContextValue] = ()
    digest: str | None = None
    digest_id: str = ""
    digested: Sequence[ContextItem] = ()
    """Statements that the digest is based on. If the policy shows no facts, the sections after the digest leave out
    these statements."""
    pinned: Sequence[ContextItem] = ()
    """Facts that a person pinned. They come before the other facts."""
    facts: Sequence[ContextItem] = ()
    more_facts: bool = False
    """True when memory may contain facts that are not in `facts`."""
    focus: Sequence[ContextItem] = ()
    episodes: Sequence[ContextItem] = ()
    said: Sequence[QuotedMessage] = ()


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """Limits of a context. `ceiling` is the highest sensitivity that is shown. The caller checks the right to see
    `secret`."""

    max_tokens: int = 2_000
    sections: frozenset[Section] = field(default=DEFAULT_SECTIONS)
    ceiling: Sensitivity = "internal"
    zone: tzinfo = UTC
    """The time zone of days and months in the text."""
    spare_digest: bool = False
    """True: leave out the digest when the text has room for every fact. False: show the digest whenever the text has
    room for it."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"context.max_tokens must be 1 or more, not {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory that the text shows."""

    section: Section
    id: str
    """The id of the record; empty when the memory has no id."""


OmittedPiece = Literal["repeated", "tokens", "unsafe", "in_facts"]
"""Reason why a memory is not in the text. `repeated`: another piece says it. `tokens`: it has no room. `unsafe`: its
text looks like an instruction or a part of a prompt. `in_facts`: the text has room for every fact of the digest."""


@dataclass(frozen=True, slots=True)
class UnshownMemory:
    """A memory that the text does not show."""

    section: Section
    id: str
    reason: OmittedPiece


@dataclass(frozen=True, slots=True)
class RenderedContext:
    text: str
    shown: tuple[ShownMemory, ...] = ()
    unshown: tuple[UnshownMemory, ...] = ()
    section_tokens: Mapping[Section, int] = field(default_factory=dict)
    """Tokens of each section of the text, with its headings and without the frame."""


Statement = tuple[str, str]
"""Subject and canonical text of a statement. Equal texts about different subjects are different statements."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of text that is shown whole or not at all."""

    section: Section
    under: str
    """The name of a block, or the subject of a statement."""
    text: str
    says: frozenset[Statement]
    """The statements in the piece. Later sections leave out these statements."""
    id: str = ""
    pinned: bool = False
    """True for a fact that is chosen before what memory ranks."""


def tokens(text: str) -> int:
    """Estimate the number of tokens without the vocabulary of a model: one token for each four bytes of UTF-8.

    Four bytes are four characters in English and fewer characters in many other scripts. The tokens of models are also
    shorter in these scripts.
    """
    return -(-len(text.encode()) // 4)


def render(
    memories: Memories, policy: ContextPolicy, *, mark: str, count: Callable[[str], int] = tokens
) -> RenderedContext:
    """Return the context as framed text; the text is empty when no memory is shown.

    The text has at most `policy.max_tokens` tokens, counted by `count`. `mark` is the random mark of the frame
    (`prompt_framing.frame`). The pieces are added in the order of the sections; the order of the facts is the order of
    `memories.pinned`, then of `memories.facts`. A piece that does not fit is left out, and the next piece is tried. If
    not all pieces fit, the profile and the messages get only their shares of the tokens.
    """

    def fits(pieces: Sequence[_Piece]) -> bool:
        return count(frame(_text(pieces), mark=mark)) <= policy.max_tokens

    def has_room(pieces: Sequence[_Piece]) -> bool:
        section = pieces[-1].section
        share = SHARES[section] if policy.sections != {section} else 1
        return count("\n".join(piece.text for piece in pieces)) <= policy.max_tokens // share

    every = [*_pieces(memories, policy)]
    pieces = [each for each in every if each.text]
    if policy.spare_digest and not memories.more_facts and "semantic" in policy.sections:
        without = [each for each in pieces if each.section != "digest"]
        facts = [each for each in without if each.section in ("tasks", "blocks", "profile", "semantic")]
        pieces = without if facts and fits(_without_repetitions(facts)) else pieces
    chosen = _without_repetitions(pieces)
    if chosen and not fits(chosen):
        pieces.sort(key=_choice)
        chosen = _without_repetitions(pieces, fits=fits, has_room=has_room)
    unshown = tuple(_unshown(every, pieces, chosen))
    if not chosen:
        return RenderedContext("", unshown=unshown)
    ordered = _ordered(chosen)
    text = frame(_text(ordered), mark=mark)
    by_section = groupby(ordered, key=lambda piece: piece.section)
    return RenderedContext(
        text,
        tuple(ShownMemory(piece.section, piece.id) for piece in ordered),
        unshown,
        {section: count(_text([*group])) for section, group in by_section},
    )


def _choice(piece: _Piece) -> int:
    """Return the place in the order of choice. Pinned facts come after blocks, which people write, too."""
    return CHOSEN.index("blocks" if piece.pinned else piece.section)


def _unshown(
    every: Sequence[_Piece], considered: Sequence[_Piece], chosen: Sequence[_Piece]
) -> Iterator[UnshownMemory]:
    """Yield the memories that the text does not show, with the reason. `considered` are the pieces without an unsafe
    text and without a spared digest."""
    said = frozenset[Statement]().union(*(each.says for each in chosen))
    shown, tried = {id(each) for each in chosen}, {id(each) for each in considered}
    for each in every:
        if id(each) in shown or not each.id:
            continue
        if not each.text:
            yield UnshownMemory(each.section, each.id, "unsafe")
        elif id(each) not in tried:
            yield UnshownMemory(each.section, each.id, "in_facts")
        else:
            repeated = each.section not in PROSE and each.says <= said
            yield UnshownMemory(each.section, each.id, "repeated" if repeated else "tokens")


# ------------------------------------------------------------------------------------------------ pieces
def _pieces(memories: Memories, policy: ContextPolicy) -> Iterator[_Piece]:
    """Yield the pieces of the sections that the policy shows. Memories above the policy's ceiling are left out."""
    allowed = up_to(policy.ceiling)
    if "tasks" in policy.sections:
        for task in memories.tasks:
            if task.sensitivity in allowed:
                yield _item("tasks", task, policy.zone)
    if "blocks" in policy.sections:
        for block in sorted(memories.blocks, key=lambda each: each.name):
            if block.sensitivity in allowed:
                text = safe_prose(block.text, by_person=block.by_person)
                yield _prose("blocks", safe_heading(one_plain_line(block.name)), text, block.id)
    if "profile" in policy.sections:
        for value in memories.profile:
            if value.sensitivity in allowed:
                yield _value(value, policy.zone)
    if "digest" in policy.sections:
        digest = _prose("digest", "Summary", safe_prose(memories.digest or ""), memories.digest_id)
        facts_are_off = "semantic" not in policy.sections
        held = frozenset(_statement(each) for each in memories.digested)
        yield _Piece("digest", digest.under, digest.text, (digest.says | held) if facts_are_off else frozenset(),
                     digest.id)  # fmt: skip
    listed: tuple[tuple[Section, Sequence[ContextItem]], ...] = (
        ("semantic", memories.facts),
        ("working", memories.focus),
        ("episodic", memories.episodes),
    )
    if "semantic" in policy.sections:
        for fact in memories.pinned:
            if fact.sensitivity in allowed:
                yield replace(_item("semantic", fact, policy.zone), pinned=True)
    for section, statements in listed:
        if section in policy.sections:
            for statement in statements:
                if statement.sensitivity in allowed:
                    yield _item(section, statement, policy.zone)
    if "turns" in policy.sections:
        for message in memories.said:
            if message.sensitivity in allowed:
                yield _message(message, policy.zone)


def _message(message: QuotedMessage, zone: tzinfo) -> _Piece:
    passage = one_plain_line(message.passage)
    text = f"- {day(message.day, zone)}, {message.speaker}: “{passage}”"
    return _Piece("turns", USER, text if passage else "", frozenset(((message.speaker, passage),)), message.id)


def _prose(section: Section, under: str, text: str, identity: str = "") -> _Piece:
    """Make a piece from a text of several lines.

    Each line counts as a statement about the user, so that later sections do not repeat it. A line that looks like a
    heading, a role, a boundary or a bullet is joined to the previous line, so that it cannot imitate the structure of
    the context.
    """
    shown: list[str] = []
    for line in lines_of(text):
        if not imitates_structure(line):
            shown.append(line)
        elif shown:
            shown[-1] = f"{shown[-1]} {line}"
        else:
            shown.append(f"… {line}")
    says = frozenset((USER, ids.canonical(line.removeprefix("- "))) for line in lines_of(text))
    return _Piece(section, under, "\n".join(shown), says, identity)


def _item(section: Section, statement: ContextItem, zone: tzinfo) -> _Piece:
    content, subject = one_plain_line(statement.content), subject_name(statement.subject)
    if is_unsafe(statement.subject, content, by_person=statement.by_person):
        content = ""
    match section:
        case "semantic":
            kind = f"[{statement.category}] " if statement.category else ""
            limits = [*_dated(statement, zone), *_origin(statement.trust)]
            text = f"{kind}{content} ({'; '.join(limits)})" if limits else f"{kind}{content}"
        case _:
            on = f"{day(statement.day, zone)}: " if statement.day else ""
            whose = "" if subject == USER else f"{subject}: "
            by = f" ({origin})" if (origin := "; ".join(_origin(statement.trust))) else ""
            text = f"{on}{whose}{content}{by}"
    says = frozenset((_statement(statement),)) if content else frozenset[Statement]()
    return _Piece(section, subject, f"- {text}" if content else "", says, statement.id)


def _dated(fact: ContextItem, zone: tzinfo) -> Iterator[str]:
    """Yield the month of the begin of a fact, or else of its last confirmation."""
    if fact.since is not None:
        yield f"since {since(fact.since, zone)}"
    elif fact.confirmed is not None:
        yield f"as of {since(fact.confirmed, zone)}"


def _origin(trust: Trust) -> list[str]:
    """Return the mark of a memory that did not come from the user."""
    return {"user": [], "assistant": ["said by the assistant"], "tool": ["from a tool"]}[trust]


def _value(value: ContextValue, zone: tzinfo) -> _Piece:
    """Make a line of the profile from a value.

    The evidence of a fact was checked for its statement only. So a value is shown only if the statement contains it;
    otherwise, and for a denied value, the statement is shown. If one of the texts is unsafe, the piece is empty.
    """
    content, named = one_plain_line(value.content), one_plain_line(value.value)
    slot, qualifier = one_plain_line(value.slot).replace("_", " "), one_plain_line(value.qualifier)
    stated = bool(named) and ids.canonical(named) in ids.canonical(content)
    limits = [qualifier] if qualifier and stated and not value.denied else []
    limits += [f"since {since(value.since, zone)}"] if value.since else []
    limits += _origin(value.trust)
    shown = f"{slot}: {named if stated and not value.denied else content}"
    text = f"- {shown} ({'; '.join(limits)})" if limits else f"- {shown}"
    if not content or any(is_unsafe(USER, each) for each in (content, named, qualifier, slot, text) if each):
        return _Piece("profile", value.slot, "", frozenset(), value.id)
    return _Piece("profile", value.slot, text, frozenset(((USER, ids.canonical(content)),)), value.id)


def _statement(item: ContextItem) -> Statement:
    return subject_name(item.subject), ids.canonical(one_plain_line(item.content))


def _always(pieces: Sequence[_Piece]) -> bool:
    return True


def _without_repetitions(
    pieces: Iterable[_Piece],
    *,
    fits: Callable[[Sequence[_Piece]], bool] = _always,
    has_room: Callable[[Sequence[_Piece]], bool] = _always,
) -> list[_Piece]:
    """Choose the pieces that fit. Drop statements that an earlier piece already contains.

    Blocks and digests are never dropped as repetitions. A value of the profile that does not fit drops nothing: the
    section of facts may show its fact. `has_room` decides about the pieces of a section with a share.
    """
    said: set[Statement] = set()
    chosen: list[_Piece] = []
    for piece in pieces:
        if piece.section not in PROSE and piece.says <= said:
            continue
        shared = piece.section in SHARES
        before = [each for each in chosen if each.section == piece.section] if shared else []
        shown = (not shared or has_room([*before, piece])) and fits([*chosen, piece])
        if shown:
            chosen.append(piece)
        if shown or not shared:
            said |= piece.says
    return chosen


# ------------------------------------------------------------------------------------------------ text
def _ordered(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Sort the pieces by section. Facts are grouped by subject: first the user, then the other subjects by name. Within
    a subject the order does not change."""

    def place(piece: _Piece) -> tuple[int, bool, str]:
        by_subject = piece.section == "semantic"
        return ORDER.index(piece.section), by_subject and piece.under != USER, piece.under if by_subject else ""

    return sorted(pieces, key=place)


def _text(pieces: Iterable[_Piece]) -> str:
    """Join the pieces to a text. Each section or subject is a paragraph with a heading; empty lines separate the
    paragraphs."""
    ordered = _ordered(pieces)
    flat = all(piece.under == USER for piece in ordered if piece.section == "semantic")
    paragraphs = groupby(ordered, key=lambda piece: _heading(piece, flat_facts=flat))
    return "\n\n".join("\n".join((heading, *(piece.text for piece in group))) for heading, group in paragraphs)


def _heading(piece: _Piece, *, flat_facts: bool) -> str:
    match piece.section:
        case "tasks":
            return "To do:"
        case "profile":
            return "Known profile:"
        case "blocks" | "digest":
            return f"{piece.under}:"
        case "semantic":
            return "Known facts:" if flat_facts else f"About {piece.under}:"
        case "working":
            return "Current focus:"
        case "episodic":
            return "Recent episodes:"
        case "turns":
            return "Said before:"
