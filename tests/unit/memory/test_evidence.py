"""Whose word a statement is, by its quote: honest paraphrases count, dictated and empty evidence does not."""

from __future__ import annotations

import pytest

from memstream.memory.language.locales import locales
from memstream.memory.trust.evidence import EvidenceJudgement, judge_evidence
from memstream.memory.trust.said_text import SaidText
from memstream.schemas.turns import Role

Said = tuple[Role, str]


def judged(
    statement: str, quote: str, *said: Said, earlier: tuple[Said, ...] = (), subject: str = "user"
) -> EvidenceJudgement:
    messages = [SaidText(role, text) for role, text in said]
    return judge_evidence(
        quote,
        statement,
        subject=subject,
        shown=messages,
        messages=messages,
        earlier=[SaidText(role, text) for role, text in earlier],
        packs=locales("en"),
    ).by_words


@pytest.mark.parametrize(
    ("statement", "quote", "message"),
    [
        ("Works at Stripe", "I work at Stripe", "Well, I work at Stripe."),
        ("Has two children", "I'm a mum of two", "I'm a mum of two."),
        ("Lives in Berlin", "Ich wohne in Berlin", "Ich wohne in Berlin, seit März."),
        ("Is vegetarian", "soy vegetariana", "Hola, soy vegetariana."),
        ("Works as a teacher", "ich bin Lehrerin", "Hallo, ich bin Lehrerin."),
        ("Is a baker", "olen leipuri ja", "Hei, olen leipuri ja asun täällä."),
        ("Is vegetarian", "I don't eat meat", "I don't eat meat at all."),
        ("Lives in Tokyo", "東京に住んでいます", "私は東京に住んでいます。"),
        ("Name is Sam", "Sam", "Sam"),
        ("Is 34 years old", "I'm 34", "I'm 34 and happy."),
        ("Loves tea", "it's the best thing ever", "I love tea, it's the best thing ever."),
        (
            "Favourite book is The Left Hand of Darkness",
            'My favourite book is "The Left Hand of Darkness"',
            'My favourite book is "The Left Hand of Darkness".',
        ),
        (
            "Lieblingsbuch ist Die unendliche Geschichte",
            "Mein Lieblingsbuch ist „Die unendliche Geschichte“",
            "Mein Lieblingsbuch ist „Die unendliche Geschichte“.",
        ),
    ],
)
def test_what_a_user_says_is_the_users_word(statement: str, quote: str, message: str) -> None:
    assert judged(statement, quote, ("user", message)) == EvidenceJudgement("user")


@pytest.mark.parametrize(
    ("statement", "quote", "message"),
    [
        ("Is an administrator", "e", "Can you help me here?"),
        ("Is an administrator", "help", "Can you help me here?"),
        ("Is an administrator", "Can you help me here", "Can you help me here?"),
        ("Is an administrator", "hilf", "Kannst du mir hier bitte hilf?"),
        ("Is an administrator", "1 2", "I have 1 2 3 things."),
    ],
)
def test_a_quote_that_does_not_carry_its_statement_is_weak(statement: str, quote: str, message: str) -> None:
    assert judged(statement, quote, ("user", message)) == EvidenceJudgement(None, "weak_evidence")


def test_what_nobody_said_is_invented() -> None:
    assert judged("Likes tea", "I like tea", ("user", "Hello there")) == EvidenceJudgement(None, "invented")


@pytest.mark.parametrize(
    "message",
    [
        'The page says "I am an administrator here" and more',
        "> I am an administrator here\nWhat is that?",
        "Am 03.03.2025 um 10:00 schrieb Jo:\nI am an administrator here",
    ],
)
def test_a_quotation_is_a_tools_word_whoever_pasted_it(message: str) -> None:
    quote = "I am an administrator here"
    assert judged("Is an administrator", quote, ("user", message)) == EvidenceJudgement("tool")
    assert judged("Is an administrator", quote, ("assistant", message)) == EvidenceJudgement("tool")
    own = judged("Is an administrator", quote, ("user", f"{message}\n\n"), ("user", f"{quote}, really."))
    assert own == EvidenceJudgement("user"), "it stands in own words, too"


def test_a_short_answer_counts_with_what_was_shown_before() -> None:
    asked: Said = ("assistant", "Do you mean the flat in Leeds?")
    assert judged("Lives in Leeds", "Yes, that one", ("user", "Yes, that one."), earlier=(asked,)).role == "user"
    assert judged("Lives in Leeds", "Yes, that one", asked, ("user", "Yes, that one.")).role == "user"
    assert judged("Lives in Leeds", "Yes, that one", ("user", "Yes, that one.")).name == "weak_evidence"
    read: Said = ("tool", "The flat is in Leeds.")
    assert judged("Lives in Leeds", "Yes, that one", read, ("user", "Yes, that one.")).name == "weak_evidence"


def test_a_statement_that_a_lower_text_dictates_has_that_texts_trust() -> None:
    asked: Said = ("user", "What does the account page say?")
    page: Said = ("assistant", 'It says: "Account belongs to Marlow"')
    assert judged("Account belongs to Marlow", "the account page", asked, page) == EvidenceJudgement("tool", "dictated")
    told: Said = ("assistant", "So the account belongs to Marlow.")
    assert judged("Account belongs to Marlow", "the account page", asked, told).role == "assistant"
    own: Said = ("user", "My account belongs to Marlow now")
    assert judged("Account belongs to Marlow", "My account belongs to", own, page) == EvidenceJudgement("user")
