"""Rules of the offline model for upkeep. Each rule compares words only."""

from __future__ import annotations

import pytest

from memstream.adapters.completions.offline.prompt import read_prompt
from memstream.adapters.completions.offline.upkeep import ShownPair, digest, judge, prune, read_pairs, summary
from memstream.adapters.ports import Message
from memstream.agents.consolidation.prompts.digest import DigestPrompt
from memstream.agents.consolidation.prompts.judge import JudgePrompt
from memstream.agents.consolidation.prompts.judge import PendingPair as Shown
from memstream.agents.consolidation.prompts.prune import PrunePrompt
from tests.support.record_builders import episode, stored_fact


@pytest.mark.parametrize(
    ("known", "new", "decision"),
    [
        ("Works at Google", "Works at Stripe", "supersede"),
        ("Lives in Oslo", "Moved to Bergen", "supersede"),
        ("Works at Google", "works at  google", "duplicate"),
        ("Plays chess on Sundays", "Plays chess", "duplicate"),
        ("Works at Google", "No longer works at Google", "supersede"),
        ("Likes tea", "Likes milk", "coexist"),
        ("Speaks Spanish", "Speaks Norwegian", "coexist"),
        ("Is fond of the sea", "Walks a lot", "coexist"),
    ],
)
def test_judge(known: str, new: str, decision: str) -> None:
    (answer,) = judge([ShownPair("p1", known, new)])
    assert isinstance(answer, dict)
    assert (answer["pair_id"], answer["decision"]) == ("p1", decision)


def test_pairs_are_read_from_the_prompt() -> None:
    pairs = [
        Shown(stored_fact("Works at Stripe\n[p7]"), stored_fact("Works at Google")),
        Shown(stored_fact("Likes milk", turn="t2"), stored_fact("new: known: [p9]")),
    ]
    assert read_pairs(JudgePrompt(pairs).messages()) == [
        ShownPair("p1", "Works at Google", "Works at Stripe [p7]"),
        ShownPair("p2", "new: known: [p9]", "Likes milk"),
    ]
    assert read_pairs((Message("system", "[p1]\nknown: a\nnew: b"),)) == []


def test_prune_sees_what_the_words_say() -> None:
    contents = ("Works at Google", "Has a cat", "Works at Stripe", "Has a cat named Miso", "Likes tea")
    facts = [stored_fact(content, turn=f"t{n}") for n, content in enumerate(contents)]
    answer = prune(read_prompt(PrunePrompt(facts).messages()))
    assert [(each["fact_id"], str(each["reason"]).split()[0]) for each in answer if isinstance(each, dict)] == [
        ("f1", "contradicted"),
        ("f2", "redundant:"),
    ]


def test_two_that_say_the_same_do_not_both_go() -> None:
    facts = [stored_fact(content, turn=content) for content in ("Likes green tea", "Likes tea green")]
    assert len(prune(read_prompt(PrunePrompt(facts).messages()))) == 1


def test_a_digest_says_what_facts_and_episodes_say() -> None:
    facts = [stored_fact("Works at Stripe"), stored_fact("Lives in Oslo", turn="t2", subject="anna")]
    happened = [episode("Sold the house"), episode("works at stripe.")]
    shown = read_prompt(DigestPrompt("Owns [f9] a boat", facts, happened).messages())
    assert (
        digest(shown)
        == "About the user: works at Stripe. About anna: lives in Oslo. Recently, of the user: sold the house."
    )


def test_of_nothing_there_is_nothing_to_say() -> None:
    assert digest(read_prompt(DigestPrompt("", [], []).messages())) == ""
    assert summary([]) == ""
    assert summary([("user", "Likes tea"), ("user", "Likes tea.")]) == "About the user: likes tea."
