"""The dialogues are what they say, a fact is matched with its gold by what it says, and each fault is counted once."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest

from bench.quality.dialogues import Dialogue, Gold, Half, Wording, dialogues
from bench.quality.matching import matches
from bench.quality.models import MOST, Faults, in_other_words, noisy, oracle
from bench.quality.scoring import Counts, says, score
from memstream.memory.language.text import quote_found
from memstream.schemas import ids
from memstream.schemas.facts import Evidence, Fact
from memstream.schemas.observations import STABLE_CATEGORIES, Category
from tests.support.model_server import Ask, Json, Script
from tests.support.prompt_view import PromptView, Shown
from tests.support.record_builders import NOW, stored_fact

HALVES: tuple[Half, ...] = get_args(Half)
TUNE = dialogues("tune")
BOTH = [*dialogues("tune"), *dialogues("test")]


# ------------------------------------------------------------------------------------------------ the dialogues
@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_dialogues_of_several_sessions(half: Half) -> None:
    assert len(dialogues(half)) >= 12
    for talk in dialogues(half):
        assert 2 <= len(talk.sessions) <= 4, talk.id
        assert all(2 <= len(session) <= 8 for session in talk.sessions), talk.id
        assert all(turn.said and len(turn.messages) == 2 for turn in talk.turns), talk.id


def test_ids_are_unique_and_the_halves_share_no_gold_turn() -> None:
    assert len({talk.id for talk in BOTH}) == len(BOTH)
    for talk in BOTH:
        turns = [(turn.session_id, turn.turn_id) for turn in talk.turns]
        assert len(set(turns)) == len(turns), talk.id
        items = [gold.id for gold in talk.facts]
        assert len(set(items)) == len(items), talk.id
    telling = [ids.canonical(turn.said) for talk in BOTH for turn in talk.turns if _told_in(talk, turn.turn_id)]
    assert len(set(telling)) == len(telling)


def test_somebody_arrives_late_in_each_half() -> None:
    for half in HALVES:
        begins = [[session[0].occurred_at for session in talk.sessions] for talk in dialogues(half)]
        assert any(times != sorted(times) for times in begins)


@pytest.mark.parametrize("talk", BOTH, ids=lambda talk: talk.id)
def test_the_gold_can_be_told_and_proven(talk: Dialogue) -> None:
    said = {turn.turn_id: turn.said for turn in talk.turns}
    known = {gold.id for gold in talk.facts}
    for gold in talk.facts:
        assert gold.category in get_args(Category), gold.id
        assert gold.optional or gold.category in STABLE_CATEGORIES, gold.id
        assert gold.optional or gold.evidence, gold.id
        assert gold.replaces is None or gold.replaces in known - {gold.id}, gold.id
        assert says(gold, subject=gold.subject, content=gold.content), gold.id
        for each in gold.evidence:
            assert quote_found(each.quote, said[each.turn_id]), (gold.id, each.quote)
    assert all(len(_told_in(talk, turn)) <= MOST for turn in said)


@pytest.mark.parametrize("talk", BOTH, ids=lambda talk: talk.id)
def test_gold_items_do_not_say_each_other(talk: Dialogue) -> None:
    """What is held to one item must not count for its opposite, nor for what must not be remembered."""
    for gold in talk.facts:
        others = [other.id for other in talk.facts if other is not gold and _says(other, gold)]
        assert not [each for each in others if _state(talk, each) != gold.state and each != gold.replaces], gold.id
        assert not [
            never.why for never in talk.never if matches(never.wording, subject=gold.subject, content=gold.content)
        ]


# ------------------------------------------------------------------------------------------------ matching
BOSCH = Wording(keywords=("work*/employ*", "bosch"), subject="user")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Works at Bosch", True),
        ("The user has been working for BOSCH since March.", True),
        ("Is employed by Bosch", True),
        ("Works at Bosch, not Siemens", True),
        ("Works at Siemens, not Bosch", False),
        ("Works at Siemens", False),
        ("Changed from working at Siemens to working at Bosch", True),
        ("Changed from working at Bosch to working at Siemens", False),
        ("Likes Bosch drills", False),
        ("No longer works at Bosch", False),
        ("Doesn’t work at Bosch", False),
        ("Used to work at Bosch", False),
        ("Works at Boschland", False),
    ],
)
def test_wording_is_free_and_content_is_not(content: str, expected: bool) -> None:
    assert matches(BOSCH, subject="user", content=content) is expected


def test_a_statement_about_another_is_another_statement() -> None:
    assert not matches(BOSCH, subject="anna", content="Works at Bosch")
    assert matches(Wording(keywords=("bosch",)), subject="anna", content="Works at Bosch")


def test_phrases_forbidden_words_and_denials() -> None:
    tea = Wording(keywords=("prefer*", "tea", "coffee"), subject="user", forbidden=("coffee to tea",))
    assert matches(tea, subject="user", content="Prefers tea to coffee")
    assert not matches(tea, subject="user", content="Prefers coffee to tea")
    denial = Wording(keywords=("dislike*/n't like/not like", "jazz"), subject="user", negative=True)
    assert matches(denial, subject="user", content="Doesn't like jazz")
    assert matches(denial, subject="user", content="Does not like jazz any more")
    assert not matches(denial, subject="user", content="Likes jazz")


# ------------------------------------------------------------------------------------------------ scoring
TALK = next(talk for talk in TUNE if talk.id == "new-job")


def fact(content: str, *, subject: str = "user", quote: str | None = None) -> Fact:
    """`quote`: of a turn of TALK that says it."""
    turn = next((turn for turn in TALK.turns if quote and quote in turn.said), TALK.turns[0])
    proof = Evidence(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        observation_id=stored_fact(content).evidence[0].observation_id,
        occurred_at=NOW + timedelta(days=1),
        quote=quote or "nobody said this",
    )
    row = stored_fact(content, subject=subject, turn=f"t-{content}", changes={"evidence": (proof,)})
    return row.public()


PERFECT = [
    fact("Name is Daniel", quote="I'm Daniel"),
    fact("Works as a software tester", quote="I'm a software tester"),
    fact("Has a dog named Biscuit", quote="a dog named Biscuit"),
    fact("Works at ASML", quote="I joined ASML last week"),
]


def test_all_of_the_gold_and_nothing_else_is_perfect() -> None:
    told = score(TALK, PERFECT)
    assert told.counts == Counts(facts=4, right=4, wanted=4, found=4, ended=1, proven=4)
    assert told.wrong == ()
    assert (told.counts.precision, told.counts.recall, told.counts.stale_rate) == (1.0, 1.0, 0.0)


def test_a_fact_that_ended_is_stale_and_not_right() -> None:
    told = score(TALK, [*PERFECT, fact("Works for Philips", quote="I work at Philips")])
    assert (told.counts.right, told.counts.stale, told.counts.ended) == (4, 1, 1)
    assert told.counts.precision == 4 / 5
    assert told.wrong == ("new-job: stale: user: Works at Philips",)


def test_what_says_something_true_and_something_ended_is_not_right() -> None:
    both = fact("Works as a software tester at Philips", quote="I'm a software tester")
    counts = score(TALK, [PERFECT[0], both]).counts
    assert (counts.facts, counts.right, counts.found, counts.stale) == (2, 1, 2, 1)


def test_what_is_optional_is_right_to_keep_and_no_loss_to_forget() -> None:
    moving = next(talk for talk in TUNE if talk.id == "moving-house")
    kitchen = fact("Loves the new kitchen")
    assert (score(moving, []).counts.wanted, score(moving, []).counts.found) == (2, 0)
    assert score(moving, [kitchen]).counts == Counts(facts=1, right=1, wanted=2, ended=2)


def test_the_same_twice_is_doubled_but_right() -> None:
    told = score(TALK, [*PERFECT, fact("Is employed at ASML", quote="I joined ASML last week")])
    assert (told.counts.right, told.counts.doubled, told.counts.duplicate_rate) == (5, 1, 1 / 5)


def test_what_is_missed_what_is_invented_and_what_is_unproven() -> None:
    told = score(TALK, [*PERFECT[:3], fact("Wants new shoes")])
    assert (told.counts.found, told.counts.right, told.counts.proven, told.counts.forbidden) == (3, 3, 3, 1)
    assert told.wrong == (
        "new-job: missed: user: Works at ASML",
        "new-job: not in the gold: user: Wants new shoes",
        "new-job: without evidence: user: Wants new shoes",
    )


def test_nothing_at_all_is_precise_and_finds_nothing() -> None:
    counts = score(TALK, []).counts
    assert (counts.precision, counts.recall, counts.stale_rate, counts.duplicate_rate) == (1.0, 0.0, 0.0, 0.0)


# ------------------------------------------------------------------------------------------------ the models
def ask(*texts: str, shown: str | None = None, task: str = "observations", user: str = "") -> Ask:
    working = {"w1": Shown("w1", "user", shown)} if shown else {}
    turns = {f"t{n}": f"user: {text}" for n, text in enumerate(texts, 1)}
    return Ask(
        number=1,
        task=task,
        model="m",
        messages=(("user", user),),
        response_format="json_schema",
        prompt=PromptView(turns=turns, working=working),
        seen_before=0,
        headers={},
        body={},
    )


def observed(script: Script, *texts: str, shown: str | None = None) -> list[Json]:
    answer = script(ask(*texts, shown=shown))
    assert isinstance(answer, dict)
    items = answer["observations"]
    assert isinstance(items, list)
    return [item for item in items if isinstance(item, dict)]


JOINED = next(turn.said for turn in TALK.turns if "joined ASML" in turn.said)


def test_the_oracle_says_the_gold_and_replaces_only_what_is_shown() -> None:
    model = oracle(TUNE)
    (blind,) = observed(model, JOINED)
    assert (blind["content"], blind["replaces"], blind["evidence"]) == (
        "Works at ASML",
        None,
        "I joined ASML last week",
    )
    (seeing,) = observed(model, JOINED, shown="Works at Philips")
    assert seeing["replaces"] == "w1"
    both = observed(model, TALK.turns[0].said, JOINED)
    assert [(each["turn"], each["content"]) for each in both] == [
        ("t1", "Name is Daniel"),
        ("t1", "Works at Philips"),
        ("t2", "Works at ASML"),
    ]
    assert both[2]["replaces"] == "o2"
    assert observed(model, "Good evening!") == []


def test_the_noisy_model_errs_alike_each_time_and_in_every_way() -> None:
    texts = [turn.said for talk in BOTH for turn in talk.turns]
    once, again = (noisy(BOTH, seed=7) for _ in range(2))
    assert [observed(once, text) for text in texts] == [observed(again, text) for text in reversed(texts)][::-1]
    true = [each for text in texts for each in observed(oracle(BOTH), text)]
    for faults, expected in (
        (Faults(1, 0, 0, 0, 0), 0),
        (Faults(0, 1, 0, 0, 0), 1),
        (Faults(0, 0, 1, 0, 0), 2),
        (Faults(0, 0, 0, 1, 0), 2),
        (Faults(0, 0, 0, 0, 1), 1),
    ):
        told = [each for text in texts for each in observed(noisy(BOTH, seed=7, faults=faults), text)]
        assert len(told) == expected * len(true)
        assert not expected or told != true


def test_other_words_say_the_same_gold() -> None:
    kept = [gold for talk in BOTH for gold in talk.facts if not gold.optional]
    lost = [gold.id for gold in kept if not says(gold, subject=gold.subject, content=in_other_words(gold.content))]
    assert not lost


@pytest.mark.parametrize(
    ("known", "new", "decision"),
    [
        ("Works at Philips", "Works at ASML", "supersede"),
        ("Works at ASML", "Is employed at ASML", "duplicate"),
        ("Works at ASML", "Has a dog named Biscuit", "coexist"),
        ("Has a boat", "Works at ASML", "coexist"),
    ],
)
def test_the_oracle_judges_by_the_gold(known: str, new: str, decision: str) -> None:
    told = oracle(TUNE)(
        ask(
            task="judge",
            user=f"[p1]\nknown: {known}\n  said 2026-11-20 10:01: so\nnew: {new}\n  said 2026-11-20 10:02: so",
        )
    )
    assert isinstance(told, dict)
    assert told["judgements"] == [{"pair_id": "p1", "decision": decision, "reason": "by the gold"}]


def _told_in(talk: Dialogue, turn_id: str) -> list[Gold]:
    return [gold for gold in talk.facts for each in gold.evidence if each.turn_id == turn_id]


def _says(one: Gold, other: Gold) -> bool:
    return says(one, subject=other.subject, content=other.content)


def _state(talk: Dialogue, gold_id: str) -> str:
    return next(gold.state for gold in talk.facts if gold.id == gold_id)
