"""The score of a dialogue's memory against its gold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from memstream.memory.language.text import quote_found
from memstream.schemas.facts import Fact

from .dialogues import Dialogue, Gold
from .matching import matches


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one dialogue, or the sum of several. Only active facts count."""

    facts: int = 0
    right: int = 0
    """Facts that match a valid gold item, and match no gold item that has ended."""
    wanted: int = 0
    """Gold items that are valid at the end and not optional."""
    found: int = 0
    ended: int = 0
    """Gold items that have ended."""
    stale: int = 0
    """Gold items that have ended but that a fact still states."""
    doubled: int = 0
    """Further facts that match the same gold item."""
    proven: int = 0
    """Facts with a quote that occurs in the quoted turn."""
    forbidden: int = 0
    """Facts that must not be remembered."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def precision(self) -> float:
        return _share(self.right, self.facts)

    @property
    def recall(self) -> float:
        return _share(self.found, self.wanted)

    @property
    def stale_rate(self) -> float:
        return _share(self.stale, self.ended, nothing=0.0)

    @property
    def duplicate_rate(self) -> float:
        return _share(self.doubled, self.facts, nothing=0.0)

    @property
    def evidence_rate(self) -> float:
        return _share(self.proven, self.facts)


@dataclass(frozen=True, slots=True)
class Score:
    counts: Counts
    wrong: tuple[str, ...]
    """A line for each wrong fact and each gold item that is missing, outdated or doubled."""


def score(dialogue: Dialogue, facts: Sequence[Fact]) -> Score:
    """Score the active facts of the dialogue's person."""
    holding = [gold for gold in dialogue.facts if gold.state == "active"]
    ended = [gold for gold in dialogue.facts if gold.state != "active"]
    wanted = [gold for gold in holding if not gold.optional]
    said = {(turn.session_id, turn.turn_id): turn.text for turn in dialogue.turns}
    stale = [gold for gold in ended if _saying(gold, facts)]
    missed = [gold for gold in wanted if not _saying(gold, facts)]
    outdated = {fact.fact_id for gold in stale for fact in _saying(gold, facts)}
    true = {fact.fact_id for gold in holding for fact in _saying(gold, facts)} - outdated
    doubles = {gold.id: _saying(gold, facts) for gold in holding if len(_saying(gold, facts)) > 1}
    doubled = {fact.fact_id for saying in doubles.values() for fact in saying[1:]}
    forbidden = {fact.fact_id: never for fact in facts for never in dialogue.never if _says_never(fact, dialogue)}
    unproven = [fact for fact in facts if not _proven(fact, said)]
    counts = Counts(
        facts=len(facts),
        right=len(true),
        wanted=len(wanted),
        found=len(wanted) - len(missed),
        ended=len(ended),
        stale=len(stale),
        doubled=len(doubled),
        proven=len(facts) - len(unproven),
        forbidden=len(forbidden),
    )
    wrong = [
        *(f"missed: {gold.subject}: {gold.content}" for gold in missed),
        *(f"stale: {gold.subject}: {gold.content}" for gold in stale),
        *(f"doubled: {' | '.join(fact.content for fact in saying)}" for saying in doubles.values()),
        *(f"not in the gold: {_shown(fact)}" for fact in facts if fact.fact_id not in true | outdated),
        *(f"without evidence: {_shown(fact)}" for fact in unproven),
    ]
    return Score(counts, tuple(f"{dialogue.id}: {each}" for each in wrong))


def total(scores: Iterable[Score]) -> Counts:
    return sum((each.counts for each in scores), Counts())


def says(gold: Gold, *, subject: str, content: str) -> bool:
    return any(matches(wording, subject=subject, content=content) for wording in gold.wordings)


def _saying(gold: Gold, facts: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in facts if says(gold, subject=fact.subject, content=fact.content)]


def _says_never(fact: Fact, dialogue: Dialogue) -> bool:
    return any(matches(each.wording, subject=fact.subject, content=fact.content) for each in dialogue.never)


def _proven(fact: Fact, said: Mapping[tuple[str, str], str]) -> bool:
    return any(quote_found(each.quote, said.get((each.session_id, each.turn_id), "")) for each in fact.evidence)


def _shown(fact: Fact) -> str:
    return f"{fact.subject}: {fact.content}"


def _share(part: int, whole: int, *, nothing: float = 1.0) -> float:
    return part / whole if whole else nothing
