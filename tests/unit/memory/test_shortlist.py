"""What a model is shown when it chooses the answer of the tool `recall`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.memory.policies import RecallPolicy, RecallToolPolicy
from memstream.memory.recall.ranking import Score
from memstream.memory.recall.selection import ScoredMemory, sort_by_score
from memstream.memory.recall.shortlist import ExactPhrase, excerpt, shortlist
from memstream.schemas.recall import Tier

TEA = ExactPhrase("green tea")


def memory(content: str, tier: Tier = "semantic", score: float = 0.5) -> ScoredMemory:
    subject = None if tier == "turns" else "user"
    return ScoredMemory(tier, f"{tier}/{content}", content, Score(("match",), (score,), score), subject)


def shown(*memories: ScoredMemory, phrase: ExactPhrase = TEA, **policy: int) -> list[str]:
    tool = replace(RecallToolPolicy(), **policy)
    picked = shortlist(sort_by_score(memories), phrase=phrase, item_characters=400, policy=RecallPolicy(tool=tool))
    return [each.content for each in picked]


@pytest.mark.parametrize(
    ("cue", "text", "found"),
    [
        ("green tea", "I like GREEN   tea.", "GREEN   tea"),
        ('"green tea"', "green\ntea", "green\ntea"),
        ("green-tea", "my green tea", "green tea"),
        ("green tea", "greener tea", None),
        ("green tea", "evergreen tea", None),
        ("tea green", "green tea", None),
        ("who's there?", "Who's there!", "Who's there"),
        ("wo wohnt Öykü", "WO WOHNT ÖYKÜ", "WO WOHNT ÖYKÜ"),
        ("蓝色自行车", "我喜欢蓝色自行车。", "蓝色自行车"),
        ("a.b (c", "a b c", "a b c"),
        ("?! …", "?! …", None),
        ("", "", None),
    ],
)
def test_a_phrase_is_its_words_in_their_order(cue: str, text: str, found: str | None) -> None:
    span = ExactPhrase(cue).find(text)
    assert (None if span is None else text[slice(*span)]) == found


def test_all_facts_the_best_episodes_and_messages_with_the_phrase_are_shown() -> None:
    facts = [memory(f"fact{n}", score=0.01 * n) for n in range(50)]
    episodes = [memory(f"episode{n}", "episodic", 0.5 + 0.01 * n) for n in range(40)]
    said = [memory(f"green tea{' x' * n}", "turns", 0.9 - 0.01 * n) for n in range(7)]
    other = [memory("green and tea", "turns", 1.0), memory("entry", "working", 1.0)]
    picked = shown(*facts, *episodes, *said, *other)
    assert {each for each in picked if each.startswith("fact")} == {each.content for each in facts}
    assert [each for each in picked if each.startswith("episode")] == [f"episode{n}" for n in range(39, 9, -1)]
    assert [each for each in picked if each.startswith("green")] == [each.content for each in said[:5]]
    assert len(picked) == 50 + 30 + 5
    scores = {each.content: each.score.total for each in (*facts, *episodes, *said)}
    assert picked == sorted(picked, key=lambda each: -scores[each]), "best first"


def test_more_facts_than_the_limit_are_those_that_rank_lowest() -> None:
    facts = [memory(f"fact{n}", score=0.1 * n) for n in range(6)]
    assert shown(*facts, facts=2) == ["fact5", "fact4"]
    assert shown(*facts, memory("episode", "episodic"), episodes=0, facts=1) == ["fact5"]


def test_what_ranks_lowest_is_left_out_when_the_prompt_is_full() -> None:
    facts = [memory(f"{n}" * 300, score=0.1 * n) for n in range(1, 6)]
    assert [each[0] for each in shown(*facts, characters=1_000)] == ["5", "4", "3"]
    long = [memory(f"{n}" * 5_000, score=0.1 * n) for n in range(1, 6)]
    assert [each[0] for each in shown(*long, characters=1_000)] == ["5", "4"], "a text counts as it is shown"


def test_what_a_fact_says_is_not_shown_again_as_an_episode() -> None:
    fact, episode = memory("Works at Stripe", score=0.1), memory("Works at Stripe", "episodic", 0.9)
    assert shown(fact, episode, memory("Went to Stripe", "episodic")) == ["Went to Stripe", "Works at Stripe"]
    others = episode._replace(subject="jennifer")
    assert shown(fact, others) == ["Works at Stripe", "Works at Stripe"], "of another subject"
    assert shown(fact, memory("Works at Stripe", "turns"), phrase=ExactPhrase("stripe")) == ["Works at Stripe"]
    cut = [memory("Works at Stripe", score=0.05), memory("Lives in Rome", score=0.1), episode]
    assert shown(*cut, facts=1) == ["Works at Stripe", "Lives in Rome"], "the fact is not shown: nothing is lost"


def test_nothing_found_is_nothing_to_show() -> None:
    assert shown() == []


@pytest.mark.parametrize("at", [0, 1, 380, 390, 391, 392, 399, 400, 500, 989, 990])
def test_an_excerpt_shows_the_phrase(at: int) -> None:
    text = "x " * (at // 2) + ("y" if at % 2 else "") + " green tea "
    text += "z " * (500 - len(text) // 2)
    cut = excerpt(text, TEA, characters=400)
    assert len(cut) == 400
    assert "green tea" in cut
    assert (cut.startswith("…"), cut.endswith("…")) == (not text.startswith(cut[:-1]), not text.endswith(cut[1:]))


def test_an_excerpt_of_a_text_without_the_phrase_is_its_beginning() -> None:
    assert excerpt("short", TEA, characters=400) == "short"
    assert excerpt("a" * 400, TEA, characters=400) == "a" * 400
    assert excerpt("a" * 401, TEA, characters=400) == "a" * 399 + "…"
    assert excerpt("b" * 9 + " green tea" * 3, ExactPhrase("green tea green tea"), characters=5) == "…gre…"


@pytest.mark.parametrize(
    "wrong",
    [{"strategy": "best"}, {"facts": 0}, {"facts": 1_001}, {"episodes": -1}, {"messages": 51}, {"characters": 999},
     {"patience": 0.0}, {"patience": float("inf")}],
    ids=str,
)  # fmt: skip
def test_wrong_bounds_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=rf"tool\.{next(iter(wrong))} must"):
        RecallToolPolicy(**wrong)  # type: ignore[arg-type]
