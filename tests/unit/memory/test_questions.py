"""Which messages only ask: in English by word order, elsewhere by the question mark; statements are never taken for
questions."""

from __future__ import annotations

import pytest

from memstream.memory.language.locales import define_locale_pack, locales
from memstream.memory.language.questions import only_asks

ENGLISH = locales("en")


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live again?",
        "where do i live",
        "What's my job?",
        "who's my doctor",
        "which car do I drive",
        "what kind of tea do i like",
        "How old is my cat?",
        "am I vegan",
        "is the shop open",
        "Berlin or Potsdam?",
        "And you?",
        "ok, what's my name",
        "Hi! Who is Tom?",
        "so... where was I born?",
        "tell me where I live",
        "can you remind me what my rate is?",
        "Could you tell me how many ounces are in a pound?",
        "When is my deadline?",
        "¿Dónde vivo?",
        "Hola, ¿dónde vivo?",
        "Wie heiße ich?",
        "Où est-ce que j'habite ?",
        "Где я живу?",
        "我住在哪里？",
        "你喜欢茶吗",
        "私はどこに住んでいますか",
    ],
)
def test_it_only_asks(text: str) -> None:
    assert only_asks(text, ENGLISH)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Berlin.",
        "I live in Berlin, do you know it?",
        "My hourly rate is 95 euros, should I raise it?",
        "what could I cook, I'm allergic to nuts?",
        "I told you my address, didn't I?",
        "Where do I live? I moved to Rome.",
        "When I was young I lived in Oslo",
        "Where I live there are no buses.",
        "How I met Tom is a long story",
        "what is important to me is honesty",
        "which is why I quit my job",
        "remind me to call my mum",
        "tell me about Rome, I live there",
        "What a nice day",
        "Have a nice day",
        "Do not forget: I'm vegan",
        "Stripe.",
        "Thanks!",
        "Is vegetarian",
        "",
        "?!",
        "Vivo en Valencia, ¿la conoces?",
        "Ich wohne in Graz, kennst du das?",
        "Mathe und Sport. Wo arbeite ich nochmal?",
        "私は東京に住んでいます",
    ],
)
def test_it_says_something(text: str) -> None:
    assert not only_asks(text, ENGLISH)


def test_a_language_without_question_words_is_known_by_its_mark() -> None:
    unknown = (define_locale_pack(name="xx"),)
    assert only_asks("where do I live?", unknown)
    assert not only_asks("where do I live", unknown)
    assert not only_asks("I live in Berlin, do you know it?", unknown)
