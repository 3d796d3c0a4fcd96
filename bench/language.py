"""Processor time of the language work that a turn costs: `python -m bench.language`.

Each line is a function or the work of one stage. Each column is a kind of text: everyday sentences, long messages, and
texts that are built to be slow or hostile. No text occurs twice, so caches by text do not help: only words, patterns
and packs are cached.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from memstream.memory.facts.routing import route
from memstream.memory.facts.statements import statement_from_observation
from memstream.memory.language.identification import pack_of
from memstream.memory.language.locales import locales
from memstream.memory.language.parsing import full_names, read
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets import BuiltInDetector
from memstream.memory.secrets.quotes import cut_quote
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.secrets.turns import protect_turn
from memstream.memory.trust.evidence import judge_evidence
from memstream.memory.trust.forget_requests import is_forget_request
from memstream.memory.trust.instructions import _order_patterns, instruction_rule
from memstream.memory.trust.own_words import split_quotations
from memstream.memory.trust.said_text import SaidText
from memstream.memory.working_set.entries import EntryCandidate, apply_turn
from memstream.schemas import ids
from memstream.schemas.observations import Observation, Observed
from memstream.schemas.turns import Owner, Turn, TurnMessage
from memstream.schemas.working_set import WorkingSet
from tests.support.corpus_texts import corpus_texts

AT = datetime(2026, 1, 1, tzinfo=UTC)
WARM = 3_300
"""Number of texts per column that are processed before the clock starts."""
MOST = {"everyday": 2_000, "long": 60, "hostile": 40}
LONG = 4_000
"""Approximate number of characters in a long text."""
POLICY = MemoryPolicy()
SECRETS = SecretFilter()
PACKS = locales(POLICY.conflict.locale)
DETECTOR = BuiltInDetector()


@dataclass(frozen=True, slots=True)
class Sample:
    """A message, and the statement that a model derives from it."""

    text: str
    statement: str


def everyday(found: Sequence[str]) -> list[Sample]:
    short = [text for text in found if len(text) < 160]
    random.Random(7).shuffle(short)
    return [Sample(text, text.rstrip(".!?")) for text in short]


def long(found: Sequence[str]) -> list[Sample]:
    rng = random.Random(8)
    samples = []
    for _ in range(MOST["long"] + 20):
        parts: list[str] = []
        while sum(map(len, parts)) < LONG:
            parts.append(rng.choice(found))
        samples.append(Sample("\n".join(parts), parts[0][:200]))
    return samples


def hostile() -> list[Sample]:
    """Return texts that repeat the beginnings of patterns, up to the maximum length of a message."""
    rng = random.Random(9)
    pieces = [
        *("a", "A1", "0 ", "1-", "(2", "4111 ", "password ", "pass ", "code to the ", "key-", "sk-", "=a;", "eyJ"),
        *("you must ", "the assistant ", "never say ", "if asked ", "when the user asks ", "always, ", "please "),
        *("tell them ", "a.b.", "http://", "x@", "<a ", "[", '"a', "'", "> ", "from: a ", "on ", "it says: "),
        *("ä", "e\u0301", "\u200b", "日本", "not now and ", "never with and ", "+49 ", "12.34.", "_", "{'a': ["),
    ]
    samples = []
    for piece in pieces:
        for mix in range(2):
            with_others = "".join(piece + (rng.choice(pieces) if mix else "") for _ in range(200))
            samples.append(Sample((with_others * 20)[:LONG], with_others[:200]))
    return samples


# ------------------------------------------------------------------------------------------------ one function
def _turn(sample: Sample, at: int) -> Turn:
    return Turn(
        tenant_id="bench",
        user_id=f"u{at}",
        session_id="s",
        turn_id=f"t{at}",
        messages=(TurnMessage(role="user", content=sample.text),),
    )


def _observation(sample: Sample, at: int) -> Observation:
    return Observation(
        observation_id=ids.observation_id("bench/u/s", f"t{at}", "user", sample.statement),
        entry_id=ids.observation_id("bench/u/s", f"t{at}", "user", sample.statement),
        subject="user",
        content=sample.statement[:1_000],
        importance=0.8,
        durability="persistent",
        category="attribute",
        source_role="user",
        evidence=sample.text[:300],
    )


def _judge(sample: Sample, at: int) -> object:
    said = (SaidText("user", sample.text),)
    return judge_evidence(
        sample.text[:300], sample.statement, subject="user", shown=said, messages=said, earlier=EARLIER, packs=PACKS
    )


EARLIER = (SaidText("user", "Hello, I am Ana."), SaidText("assistant", "Hello Ana, what can I do for you today?"))


def _forget(sample: Sample, at: int) -> object:
    return is_forget_request(sample.text[:300], (SaidText("user", sample.text),))


def _names(sample: Sample, at: int) -> object:
    return full_names(sample.statement, pack_of(sample.statement, POLICY.conflict.locale))


FUNCTIONS: dict[str, Callable[[Sample, int], object]] = {
    "instruction_rule": lambda sample, at: instruction_rule(sample.text),
    "BuiltInDetector.find": lambda sample, at: DETECTOR.find(sample.text),
    "protect_turn": lambda sample, at: protect_turn(_turn(sample, at), SECRETS),
    "split_quotations": lambda sample, at: split_quotations(sample.text),
    "judge_evidence": _judge,
    "is_forget_request": _forget,
    "cut_quote": lambda sample, at: cut_quote(sample.text[:300], sample.statement, SECRETS),
    "pack_of": lambda sample, at: pack_of(sample.text[:500], POLICY.conflict.locale),
    "read": lambda sample, at: read(sample.text[:500], PACKS[0]),
}


# ------------------------------------------------------------------------------------------------ one stage
class Observing:
    """The observer's pure work for a turn with one observation."""

    def __init__(self) -> None:
        self._working = WorkingSet()

    def __call__(self, sample: Sample, at: int) -> object:
        turn = protect_turn(_turn(sample, at), SECRETS).turn
        content, subject = SECRETS.text(sample.statement), SECRETS.text("user")
        SECRETS.label(sample.statement, "user")
        said = (SaidText("user", turn.messages[0].text),)
        quote = sample.text[:300]
        judge_evidence(
            quote, content.text, subject=subject.text, shown=said, messages=said, earlier=EARLIER, packs=PACKS
        )
        is_forget_request(quote, said)
        observation = _observation(sample, at)
        observation = observation.model_copy(update={"evidence": cut_quote(quote, content.text, SECRETS)})
        instruction_rule(observation.content)
        self._working = apply_turn(self._working, [EntryCandidate(observation)], policy=POLICY.working).working
        return self._working


def reflect(sample: Sample, at: int) -> object:
    observation = _observation(sample, at)
    observed = Observed(
        tenant_id="bench",
        owner=Owner(scope="user", id=f"u{at}"),
        user_id=f"u{at}",
        session_id="s",
        turn_id=f"t{at}",
        turn_number=1,
        occurred_at=AT,
        observations=(observation,),
    )
    SECRETS.text(observation.content)
    SECRETS.text(observation.evidence)
    route(observation, POLICY)
    return statement_from_observation(observed, observation, POLICY), _names(sample, at)


STAGES: dict[str, Callable[[Sample, int], object]] = {
    "recorder": lambda sample, at: protect_turn(_turn(sample, at), SECRETS),
    "observer": Observing(),
    "reflector": reflect,
}


def measure(work: Callable[[Sample, int], object], samples: Sequence[Sample], most: int) -> float:
    """Return the processor time per call in µs. The first calls are not counted."""
    warm = min(WARM, len(samples) // 4)
    for at, sample in enumerate(samples[:warm]):
        work(sample, at)
    counted = samples[warm : warm + most]
    began = time.process_time()
    for at, sample in enumerate(counted, start=warm):
        work(sample, at)
    return (time.process_time() - began) / len(counted) * 1e6


def main() -> None:
    for each in _order_patterns():
        each.pattern.is_in("")  # compiled, as they are after some thousand texts
    found = [text.strip() for text in corpus_texts() if len(text.split()) > 2]
    columns = {"everyday": everyday(found), "long": long(found), "hostile": hostile()}
    table = Table("µs of processor a call", *columns)
    for name, work in (FUNCTIONS | STAGES).items():
        table.add_row(name, *(f"{measure(work, each, MOST[kind]):.0f}" for kind, each in columns.items()))
    Console().print(table)


if __name__ == "__main__":
    main()
