"""Clauses that are certain, certainly against their statement, or neither; and the corpus of evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.language.locales import locales
from memstream.memory.trust.clauses import contradicts, states
from memstream.memory.trust.evidence import WeighedEvidence, judge_evidence
from memstream.memory.trust.excerpts import excerpt
from memstream.memory.trust.said_text import SaidText

CORPUS = Path(__file__).resolve().parents[2] / "corpora" / "trust"
CASES = [
    json.loads(line)
    for half in ("tune", "test")
    for line in (CORPUS / f"evidence-{half}.jsonl").read_text(encoding="utf-8").splitlines()
]
HONEST = [case for case in CASES if case["said"] == "yes"]
ATTACKS = [case for case in CASES if case["said"] != "yes"]


def weighed(case: dict[str, Any]) -> WeighedEvidence:
    said = [SaidText(each["role"], each["content"]) for each in case["messages"]]
    return judge_evidence(
        case["quote"],
        case["statement"],
        subject="user",
        shown=said,
        messages=said,
        earlier=(),
        packs=locales("en, de"),
        closes=case.get("replaces"),
    )


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("Works at Stripe", "Hey, I work at Stripe in Dublin."),
        ("Studies law", "I study law and I live in Leeds."),
        ("Name is Mei 梅", "My name is Mei 梅."),
        ("Wohnt in Graz", "Ich wohne in Graz."),
        ("住在成都", "你好，我住在成都。"),
        ("No longer works at Tesco", "I no longer work at Tesco."),
    ],
)
def test_a_clause_that_begins_with_the_statement_is_certain(statement: str, sentence: str) -> None:
    assert states(statement, "user", sentence)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("Lives in Lagos", "I live in Lagos time."),
        ("Name is Rose", "My name is Rosa."),
        ("Lives in Oslo", "I lived in Oslo."),
        ("Is the administrator", "My boss is the administrator."),
        ("Prefers tea to coffee", "I prefer coffee to tea."),
        ("Works at Stripe", "If you ask, I work at Stripe."),
        ("Works at Stripe", "He says I work at Stripe."),
        ("Works at Stripe", "She works at Stripe."),
        ("Has two cats", "I have two cats and dogs to feed?"),
        ("Is a doctor", "In this story I am a doctor."),
        ("Likes tea", "I don't like tea."),
        ("住在成都", "我住在成都附近。"),
    ],
)
def test_any_other_clause_is_not(statement: str, sentence: str) -> None:
    assert not states(statement, "user", sentence)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("Lives in Lagos", "I don't live in Lagos."),
        ("Is an administrator", "What may an administrator do?"),
        ("Is pregnant", "Suppose I were pregnant."),
        ("Has diabetes", "My wife has diabetes."),
        ("Is a pilot", "My cousin says he is a pilot."),
    ],
)
def test_a_clause_may_be_against_its_statement(statement: str, sentence: str) -> None:
    assert contradicts(statement, "user", sentence)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("Is vegetarian", "I don't eat meat."),
        ("Son has an allergy", "What can I bake for my son with his allergy?"),
        ("Plays chess", "I told her: I play chess."),
        ("Lives in Oslo", "If you need my address, I live in Oslo."),
    ],
)
def test_an_honest_clause_is_not(statement: str, sentence: str) -> None:
    assert not contradicts(statement, "user", sentence)


@pytest.mark.parametrize("case", ATTACKS, ids=lambda case: case["id"])
def test_no_attack_is_certain(case: dict[str, Any]) -> None:
    found = weighed(case)
    assert found.asks is not None or found.by_words.role != "user"
    assert found.denied is None or found.denied.role != "user"


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case["id"])
def test_no_honest_statement_is_refused_without_a_question(case: dict[str, Any]) -> None:
    found = weighed(case)
    assert found.asks is not None or found.by_words.role == "user"


def test_words_alone_believe_few_attacks_and_keep_most_honest_statements() -> None:
    believed = [case["id"] for case in ATTACKS if weighed(case).by_words.role == "user"]
    kept = [case["id"] for case in HONEST if weighed(case).by_words.role == "user"]
    assert len(believed) <= 0.2 * len(ATTACKS), believed
    assert len(kept) >= 0.85 * len(HONEST)


def test_an_excerpt_has_the_sentence_of_the_quote_alone() -> None:
    text = SaidText("user", "Hello. They let me go. The page:\n> I am the king\nBye.")
    assert excerpt("let me go", text, ()).said == "They let me go."


def test_an_excerpt_of_a_short_answer_has_the_last_question_only() -> None:
    before = [SaidText("assistant", "Do you smoke? Do you live in Leeds?")]
    text = SaidText("user", "Yes, exactly")
    assert excerpt("Yes, exactly", text, before).question == "Do you live in Leeds?"
    assert excerpt("Yes, exactly", text, [*before, SaidText("user", "Wait.")]).question is None


def test_an_excerpt_names_the_role_play_that_it_is_in() -> None:
    before = [SaidText("user", "Let's play a game.")]
    assert excerpt("I am a king", SaidText("user", "I am a king."), before).frame == "Let's play a game."


@pytest.mark.parametrize(
    "ends",
    [
        "Stop it.",
        "OK, let's stop the game.",
        "Jokes aside.",
        "Game over!",
        "Spaß beiseite.",
        "Fin del juego.",
        "Blague à part.",
    ],
)
def test_a_role_play_ends_where_the_speaker_ends_it(ends: str) -> None:
    before = [SaidText("user", "Let's play a game. I am a knight."), SaidText("user", ends)]
    said = SaidText("user", "I live in Oslo.")
    assert excerpt("I live in Oslo", said, before).frame is None
    assert excerpt("I live in Oslo", SaidText("user", f"{ends} I live in Oslo."), before[:1]).frame is None
    assert excerpt("I live in Oslo", said, [before[1], before[0]]).frame == "Let's play a game."


@pytest.mark.parametrize(
    "goes_on", ["Stop the horse.", "I end the war.", "In this story, back in reality, I am a king."]
)
def test_a_role_play_goes_on(goes_on: str) -> None:
    before = [SaidText("user", "Let's play a game."), SaidText("user", goes_on)]
    assert excerpt("I live in Oslo", SaidText("user", "I live in Oslo."), before).frame is not None
