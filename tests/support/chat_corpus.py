"""Chats of people as they type, what memory should believe at their end, and the score of what it believes.

tests/corpora/chats has one conversation a line: `sessions` with messages, and what is wanted. A fact counts for a
wanted item when its subject is one of `subject`, each word of `must_contain` begins a word of it, one of `any_of` does,
and none of `unless`. `active`: must be believed. `fine`: may be. `not_active`: is out of date, unless it is told as
past. `never`: in no fact. tune.jsonl tunes the rules of the offline
model, test.jsonl measures. A hash of the id decided the half of w01 to w52; x01 to x20 came later and tune. Of y01 to
y48 the odd ones tune, and the even ones are in unseen.jsonl: nobody reads their faults.

`python -m tests.support.chat_corpus [FILE…]` prints what is missing and wrong, and the figures.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memstream.adapters.completions.offline import OfflineCompletions
from memstream.adapters.ports import CompletionRequest
from memstream.agents.common.turn_routing import TurnReading
from memstream.agents.observer.answer_schema import TASK
from memstream.agents.observer.batch import BatchTurn, conclude, prompt_for
from memstream.agents.observer.rows import SessionRow
from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.routing import route
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.statements import statement_from_observation
from memstream.memory.facts.transitions import READABLE, Stamp
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.secrets.turns import protect_turn
from memstream.schemas.facts import StoredFact
from memstream.schemas.observations import Observed
from memstream.schemas.topics import TURNS
from memstream.schemas.turns import Owner, Turn
from memstream.streams.log.port import Position, Record
from tests.support.completion_requests import Ledger

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "chats"
_WORD_OF_A_FACT = r"(?<![^\W_])"


@dataclass(frozen=True, slots=True)
class Wanted:
    subjects: frozenset[str]
    words: tuple[str, ...]
    any_of: tuple[str, ...]
    unless: tuple[str, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Wanted:
        said = row.get("subject", ())
        subjects = [said] if isinstance(said, str) else said
        return cls(
            frozenset(each.casefold() for each in subjects),
            tuple(row.get("must_contain", ())),
            tuple(row.get("any_of", ())),
            tuple(row.get("unless", ())),
        )

    def is_told_by(self, subject: str, content: str) -> bool:
        if self.subjects and subject.casefold() not in self.subjects:
            return False
        return (
            all(_begins_a_word(each, content) for each in self.words)
            and (not self.any_of or any(_begins_a_word(each, content) for each in self.any_of))
            and not any(_begins_a_word(each, content) for each in self.unless)
        )

    def __str__(self) -> str:
        return " ".join([*self.words, "|".join(self.any_of)]).strip()


def _begins_a_word(word: str, content: str) -> bool:
    return re.search(_WORD_OF_A_FACT + re.escape(word.casefold()), content.casefold()) is not None


@dataclass(frozen=True, slots=True)
class Chat:
    id: str
    sessions: tuple[tuple[datetime, tuple[tuple[str, str], ...]], ...]
    active: tuple[Wanted, ...]
    fine: tuple[Wanted, ...]
    stale: tuple[Wanted, ...]
    never: tuple[Wanted, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Chat:
        sessions = tuple(
            (
                datetime.fromisoformat(each["date"]).replace(hour=10, tzinfo=UTC),
                tuple((message["role"], message["content"]) for message in each["messages"]),
            )
            for each in row["sessions"]
        )
        lists = (tuple(Wanted.of(each) for each in row[name]) for name in ("active", "fine", "not_active", "never"))
        return cls(row["id"], sessions, *lists)

    def turns(self) -> Iterable[Turn]:
        """The turns in their order: a message of the user with the answer to it."""
        for number, (at, messages) in enumerate(self.sessions, 1):
            starts = [place for place, (role, _) in enumerate(messages) if role == "user"]
            for place, start in enumerate(starts):
                end = starts[place + 1] if place + 1 < len(starts) else len(messages)
                yield Turn.model_validate(
                    {
                        "tenant_id": "chats",
                        "user_id": self.id,
                        "session_id": f"s{number}",
                        "turn_id": f"s{number}-t{place + 1}",
                        "occurred_at": at + timedelta(minutes=place),
                        "messages": [{"role": role, "content": text} for role, text in messages[start:end]],
                    }
                )


@dataclass(frozen=True, slots=True)
class Score:
    facts: int = 0
    right: int = 0
    """Facts that match `active` or `fine`."""
    wanted: int = 0
    found: int = 0
    stale: int = 0
    never: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def precision(self) -> float:
        return self.right / self.facts if self.facts else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.wanted if self.wanted else 1.0

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.2f} ({self.right} of {self.facts}), recall {self.recall:.2f} "
            f"({self.found} of {self.wanted}), stale {self.stale}, never {self.never}"
        )


def chats(path: Path) -> list[Chat]:
    return [Chat.of(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def score(chat: Chat, facts: Iterable[tuple[str, str, str]]) -> tuple[Score, list[str]]:
    """Score the facts (state, subject, content); also return a line for each fault."""
    every = list(facts)
    active = [(subject, content) for state, subject, content in every if state == "active"]
    wrong = [each for each in active if not any(item.is_told_by(*each) for item in (*chat.active, *chat.fine))]
    missing = [item for item in chat.active if not any(item.is_told_by(*each) for each in active)]
    stale = [each for each in active if any(item.is_told_by(*each) for item in chat.stale)]
    never = [each[1:] for each in every if any(item.is_told_by(*each[1:]) for item in chat.never)]
    told = [
        f"{chat.id} {name} {' '.join(each)}"
        for name, found in (("WRONG", wrong), ("STALE", stale), ("NEVER", never))
        for each in found
    ]
    told += [f"{chat.id} missing {item}" for item in missing]
    counts = Score(
        facts=len(active),
        right=len(active) - len(wrong),
        wanted=len(chat.active),
        found=len(chat.active) - len(missing),
        stale=len(stale),
        never=len(never),
    )
    return counts, told


class MemoryFacts:
    """The facts of one user in a dictionary. The conflict pipeline decides on each observation, with hashing."""

    def __init__(self, policy: MemoryPolicy) -> None:
        self.facts: dict[str, StoredFact] = {}
        self._policy = policy

    def take(self, observed: Observed) -> None:
        stamp = Stamp(now=observed.occurred_at + timedelta(seconds=1), cause=observed.turn_id, embedder="hashing")
        for observation in observed.observations:
            makes_fact = route(observation, self._policy).semantic
            replaced = self._of_observation(observation.replaces_observation_id)
            if not makes_fact and replaced is None:
                continue
            said = statement_from_observation(observed, observation, self._policy)
            known = [each for each in self.facts.values() if each.state in READABLE and each.subject == said.subject]
            equal = next((each for each in known if each.content_hash == said.content_hash), None)
            near = tuple(NearFact(each) for each in known) if makes_fact and equal is None else ()
            neighbours = Neighbours(replaced=replaced, equal=equal if makes_fact else None, near=near)
            resolution = resolve(said, neighbours, self._policy, now=stamp.now, makes_fact=makes_fact)
            for made in carry_out(resolution, said, stamp, self._policy):
                self.facts[made.fact.fact_id] = made.fact

    def _of_observation(self, observation_id: str | None) -> StoredFact | None:
        named = [
            fact
            for fact in self.facts.values()
            if fact.state in READABLE and any(each.observation_id == observation_id for each in fact.evidence)
        ]
        return max(named, key=lambda each: each.recorded_at, default=None)


async def remembered(chat: Chat, *, show: bool = False) -> list[StoredFact]:
    """Take a chat through the observer's own functions and the conflict pipeline, without a log or a store."""
    standard = MemoryPolicy()
    policy = replace(standard, conflict=replace(standard.conflict, lexical=True))
    secrets = SecretFilter(policy.privacy)
    model, facts = OfflineCompletions(sink=Ledger()), MemoryFacts(policy)
    owner, session, name = Owner(scope="user", id=chat.id), SessionRow(), ""
    for number, turn in enumerate(chat.turns()):
        if turn.session_id != name:
            session, name = SessionRow(), turn.session_id
        record = Record(Position(TURNS.name, 0, number), b"", json.dumps(turn.to_payload()).encode())
        pending = [BatchTurn.of(protect_turn(turn, secrets), owner, record, policy.capture, reading=TurnReading())]
        prompt = prompt_for(session, pending, policy)
        request = CompletionRequest(
            task=TASK,
            tenant_id=turn.tenant_id,
            messages=prompt.messages(),
            json_schema=prompt.form.schema(1),
            parse=prompt.form.parse,
        )
        batch = conclude(session, pending, prompt, await model.complete(request), policy, secrets=secrets)
        session = batch.session
        for observed in batch.observed:
            if show:
                for each in observed.observations:
                    print(f"    {observed.turn_id} {each.subject}: {each.content}  <{each.evidence}>")
            facts.take(observed)
    return list(facts.facts.values())


async def measured(chosen: Sequence[Chat], *, show: bool = False) -> tuple[Score, list[str]]:
    total, told = Score(), list[str]()
    for chat in chosen:
        if show:
            print(chat.id)
        facts = await remembered(chat, show=show)
        counts, faults = score(chat, ((fact.state, fact.subject, fact.content) for fact in facts))
        total, told = total + counts, [*told, *faults]
    return total, told


if __name__ == "__main__":
    for each in sys.argv[1:] or [str(FOLDER / "tune.jsonl")]:
        result, faults = asyncio.run(measured(chats(Path(each)), show=True))
        print(*faults, result, sep="\n")
