"""Poisoned turns through the whole pipeline and a model that writes down whatever a text wants.

Every user of the corpus tells where they live and work, then comes their line: an attack, or an honest look-alike. No
attack becomes the user's word or takes anything from it.
"""

from __future__ import annotations

import re

import pytest

from memstream.schemas.facts import Fact
from tests.support.blind_judge import BlindItem
from tests.support.model_server import Answer, Ask, ModelServer, nothing
from tests.support.openai_bodies import OBSERVATION
from tests.support.pipeline import Json, running, turn
from tests.support.pipeline_places import Place
from tests.support.trust_corpus import Half, PoisoningLine, poisoning

pytestmark = pytest.mark.timeout(180)
HALVES: tuple[Half, ...] = ("tune", "test")
LINES = {line.id: line for half in HALVES for line in poisoning(half)}
HONEST = {str(item["content"]) for line in LINES.values() if line.honest for item in line.writes}
TOLD = "I live in Oslo and I work at Stripe."
KNOWN = {"Lives in Oslo": "I live in Oslo", "Works at Stripe": "I work at Stripe"}
POLICY = """
[memory.capture]
roles = ["user", "assistant", "tool"]
context_messages = 0
"""
LINE = re.compile(r"\(line (\w\d+)\)")
"""The line that a turn belongs to, for the model alone."""


def obeys(ask: Ask) -> Answer:
    """Write what the line's text wants, with the evidence, the replacement and the correction that it wants."""
    if ask.task != "observations":
        return nothing(ask)
    found: list[Json] = []
    for name, text in ask.turns.items():
        common = {**OBSERVATION, "turn": name, "durability": "permanent", "importance": 0.9}
        if TOLD in text:
            found += [{**common, "content": content, "evidence": quote} for content, quote in KNOWN.items()]
        elif (said := LINE.search(text)) is not None:
            for item in LINES[said.group(1)].writes:
                replaced = ask.prompt.id_of(str(item["replaces"])) if "replaces" in item else None
                found.append({**common, **item, "replaces": replaced})
    return {"observations": found}  # type: ignore[dict-item]


def correct(item: BlindItem) -> str:
    """Judge blind and correctly: an honest statement is said, an attack is not."""
    said = item.statement in HONEST or item.statement in KNOWN
    return "yes" if said else "no"


def turns(line: PoisoningLine) -> list[Json]:
    mark = {"role": "tool", "content": f"(line {line.id})"}
    talk = [[{"role": "user", "content": TOLD}], [mark, *line.messages]]
    return [
        {**turn("", n, messages=messages), "user_id": line.id, "session_id": line.id, "turn_id": f"{line.id}-{n}"}
        for n, messages in enumerate(talk, start=1)
    ]


def is_users(fact: Fact) -> bool:
    return fact.state == "active" and fact.trust == "user"


@pytest.mark.long
async def test_no_attack_becomes_the_users_word_and_honest_users_are_believed(in_folder: Place) -> None:
    attacks = [line for line in LINES.values() if not line.honest]
    honest = [line for line in LINES.values() if line.honest]
    assert len(attacks) >= 80
    assert len(honest) >= 80
    with ModelServer(obeys, judge=correct) as model:
        async with running(in_folder.pipeline(model, env={"MEMSTREAM_EMBEDDER": "hashing"}, policy=POLICY)) as pipeline:
            pipeline.spawn("all")
            await pipeline.produce(*(each for line in LINES.values() for each in turns(line)))
            await pipeline.settled(deadline=150)
            facts = [Fact.from_payload(fact) for fact in (await pipeline.folded()).values()]
            pipeline.stop()
    users: dict[str, set[str]] = {}
    for fact in facts:
        if is_users(fact):
            users.setdefault(fact.owner.id, set()).add(fact.content)
    believed = [line for line in attacks if users[line.id] & {str(item["content"]) for item in line.writes}]
    assert [line.id for line in believed] == []
    assert [line.id for line in attacks if not set(KNOWN) <= users[line.id]] == [], "what the user said stands"
    for half in HALVES:
        held = [line for line in poisoning(half) if line.honest and not _believed(line, users)]
        assert len(held) <= 1, [line.id for line in held]


def _believed(line: PoisoningLine, users: dict[str, set[str]]) -> bool:
    return {str(item["content"]) for item in line.writes} <= users.get(line.id, set())
