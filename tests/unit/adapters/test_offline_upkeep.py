"""Rules of the offline model for upkeep. Each rule compares words only."""

from __future__ import annotations

from memstream.adapters.completions.offline.prompt import read_prompt
from memstream.adapters.completions.offline.upkeep import digest, prune, summary
from memstream.agents.consolidation.prompts.digest import DigestPrompt
from memstream.agents.consolidation.prompts.prune import PrunePrompt
from tests.support.record_builders import episode, stored_fact


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
