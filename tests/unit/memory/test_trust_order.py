"""The order of trust: what an assistant or a tool says never changes what the user said."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.agents.consolidation.steps.pending import pairs_to_judge
from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.pending import judge_without_model
from memstream.memory.facts.proposals import settle
from memstream.memory.facts.routing import route
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.statements import Statement, statement_from_change
from memstream.memory.facts.transitions import Stamp, Transition
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.commands import Change
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from memstream.schemas.turns import Role
from tests.support.record_builders import NOW, OWNER, episode, observation, statement, stored_fact

POLICY = MemoryPolicy()
POLICY = replace(POLICY, conflict=replace(POLICY.conflict, lexical=True))
LATER = NOW + timedelta(days=1)


def fact(content: str, role: Role = "user", **fields: Any) -> StoredFact:
    return stored_fact(content, source_role=role, **fields)


def says(role: Role, content: str, *, turn: str = "t9", number: int = 9, **fields: Any) -> Statement:
    return statement(content, turn=turn, number=number, source_role=role, **fields)


def hear(
    said: Statement,
    *near: StoredFact,
    replaced: StoredFact | None = None,
    makes_fact: bool = True,
    now: datetime = LATER,
    cause: str = "cause",
) -> list[Transition]:
    equal = [each for each in near if each.content_hash == said.content_hash]
    neighbours = Neighbours(
        replaced=replaced,
        equal=min(equal, key=lambda each: each.state != "active", default=None),
        near=tuple(NearFact(each) for each in near),
    )
    found = resolve(said, neighbours, POLICY, now=now, makes_fact=makes_fact)
    return list(carry_out(found, said, Stamp(now=now, cause=cause, embedder="hashing"), POLICY))


def told(changes: list[Transition]) -> list[tuple[str, str, str]]:
    return [(each.action, each.fact.content, each.fact.state) for each in changes]


GOOGLE = fact("Works at Google")


# ------------------------------------------------------------------------------------------------ from below
@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Works at Google", "Works at Stripe"),
        ("Works at Google", "No longer works at Google"),
        ("Is allergic to peanuts", "Is not allergic to peanuts"),
        ("Has three cats", "Has two cats"),
        ("Works at Google", "Works at Google in Zurich"),
    ],
)
@pytest.mark.parametrize("correction", [False, True])
def test_a_less_trusted_statement_becomes_pending_beside_the_fact(
    role: Role, known: str, new: str, correction: bool
) -> None:
    old = fact(known)
    (made,) = hear(says(role, new, is_correction=correction), old)
    assert (made.action, made.fact.state, made.fact.waits_for) == ("new", "pending", old.fact_id)


@pytest.mark.parametrize("correction", [False, True])
def test_replaces_of_a_more_trusted_fact_makes_a_pending_one(correction: bool) -> None:
    (made,) = hear(says("assistant", "Drinks tea", is_correction=correction), replaced=GOOGLE)
    assert (made.action, made.fact.state, made.fact.waits_for) == ("new", "pending", GOOGLE.fact_id)


def test_a_less_trusted_retraction_does_nothing() -> None:
    assert hear(says("assistant", "Left Google"), replaced=GOOGLE, makes_fact=False) == []


def test_a_less_trusted_statement_stands_beside_what_it_does_not_contradict() -> None:
    assert told(hear(says("assistant", "Speaks Spanish"), fact("Speaks French"))) == [
        ("new", "Speaks Spanish", "active")
    ]


def test_a_less_trusted_restatement_closes_only_what_is_not_more_trusted() -> None:
    stripe, adobe = fact("Works at Stripe", turn="t2"), fact("Works at Adobe", "assistant", turn="t3")
    done = told(hear(says("assistant", "Is employed by Stripe"), stripe, adobe, GOOGLE))
    assert done == [("superseded", "Works at Adobe", "superseded"), ("updated", "Works at Stripe", "active")]


def test_echoes_are_kept_and_do_not_reinforce() -> None:
    row = fact("Works at Google")
    for n in range(5):
        role: Role = "assistant" if n % 2 else "tool"
        (made,) = hear(says(role, "works at google", turn=f"t{n + 2}", number=n + 2), row, cause=str(n))
        assert made.action == "updated"
        row = made.fact
    assert (row.confidence, row.reinforcement_count, row.last_reinforced_at) == (0.8, 0, None)
    assert [each.trust for each in row.evidence] == ["user", "tool", "assistant", "tool", "assistant", "tool"]
    (made,) = hear(says("user", "works at google", turn="t20", number=20), row)
    assert (made.action, made.fact.confidence, made.fact.reinforcement_count) == ("reinforced", 0.85, 1)


def test_echoes_do_not_move_the_start_of_a_fact() -> None:
    (made,) = hear(says("assistant", "Is employed by Google", valid_from=NOW - timedelta(days=900)), GOOGLE)
    assert made.fact.valid_from == GOOGLE.valid_from


def test_no_echo_crowds_out_the_users_evidence() -> None:
    row = fact("Works at Google", turn="t40", number=40)
    for n in [*range(1, 40), *range(41, 90)]:
        (made,) = hear(says("assistant", "Works at Google", turn=f"t{n}", number=n), row, cause=str(n))
        row = made.fact
    assert len(row.evidence) == 64
    assert [each.turn_id for each in row.evidence if each.trust == "user"] == ["t40"]


def test_an_echo_does_not_make_the_users_words_late() -> None:
    (echoed,) = hear(says("assistant", "Works at Google", turn="t9", number=9), GOOGLE)
    done = told(hear(says("user", "Works at Stripe", turn="t5", number=5), echoed.fact))
    assert [each[2] for each in done] == ["superseded", "active"]


# ------------------------------------------------------------------------------------------------ from above
def test_the_user_corrects_an_assistant_as_always() -> None:
    row = fact("Works at Google", "assistant")
    assert told(hear(says("user", "Works at Stripe"), row)) == [
        ("superseded", "Works at Google", "superseded"),
        ("new", "Works at Stripe", "active"),
    ]


def test_the_users_older_word_wins_over_the_assistants_newer_one() -> None:
    row = fact("Works at Google", "assistant", turn="t9", number=9)
    done = told(hear(says("user", "Works at Stripe", turn="t5", number=5), row))
    assert done == [("superseded", "Works at Google", "superseded"), ("new", "Works at Stripe", "active")]


def test_the_users_turn_lifts_a_fact_by_updated() -> None:
    row = fact("Works at Google", "assistant")
    assert row.confidence == 0.6
    (made,) = hear(says("user", "works at Google"), row)
    assert (made.action, made.fact.trust, made.fact.confidence, made.fact.reinforcement_count) == (
        "updated",
        "user",
        0.8,
        0,
    )


def test_the_user_in_the_same_turn_lifts_it_too() -> None:
    row = fact("Works at Google", "assistant", turn="t1")
    (made,) = hear(says("user", "works at Google", turn="t1", number=1), row)
    assert (made.action, made.fact.trust, [each.trust for each in made.fact.evidence]) == ("updated", "user", ["user"])


def test_a_user_who_says_less_does_not_lift_the_detail() -> None:
    row = fact("Works at Google in Zurich", "assistant")
    assert told(hear(says("user", "Works at Google"), row)) == [("new", "Works at Google", "active")]


def test_a_user_does_not_wait_for_an_assistant() -> None:
    row = fact("Prefers coffee to tea", "assistant", category="preference")
    (made,) = hear(says("user", "Prefers tea to coffee", category="preference"), row)
    assert made.fact.state == "active"


def test_the_user_says_what_waits_for_his_word() -> None:
    (waits,) = hear(says("assistant", "Works at Stripe"), GOOGLE)
    done = hear(says("user", "works at stripe", turn="t10", number=10), waits.fact, GOOGLE)
    assert told(done) == [("superseded", "Works at Google", "superseded"), ("approved", "Works at Stripe", "active")]
    old, new = done[0].fact, done[1].fact
    assert (old.superseded_by, new.supersedes, new.waits_for) == (new.fact_id, old.fact_id, None)
    assert new.fact_id == waits.fact.fact_id
    assert (new.trust, new.confidence, new.reinforcement_count, new.version) == ("user", 0.8, 0, 2)


def test_what_waits_closes_when_the_user_says_it_of_another_row() -> None:
    (waits,) = hear(says("assistant", "Works at Google in Zurich"), GOOGLE)
    (also,) = hear(says("assistant", "Is employed by Google in Zurich", turn="t8"), GOOGLE)
    grown = GOOGLE.model_copy(update={"content": "Works at Google in Zurich", "content_hash": waits.fact.content_hash})
    done = hear(says("user", "Is employed by Google in Zurich", turn="t10", number=10), also.fact, grown)
    assert told(done) == [
        ("reinforced", "Works at Google in Zurich", "active"),
        ("superseded", "Is employed by Google in Zurich", "superseded"),
    ]


# ------------------------------------------------------------------------------------------------ proposals
def propose(
    action: str,
    *targets: StoredFact,
    sources: tuple[StoredEpisode, ...],
    near: tuple[StoredFact, ...] = (),
    **fields: Any,
) -> tuple[str, list[str]]:
    names: dict[str, Any] = {"source_episode_ids": tuple(each.episode_id for each in sources)}
    if action == "merge":
        names["source_fact_ids"] = tuple(each.fact_id for each in targets)
    elif targets:
        names["target_fact_id"] = targets[0].fact_id
        names["source_fact_ids"] = tuple(each.fact_id for each in targets[1:])
    change = Change(action=action, **names, **fields)  # type: ignore[arg-type]
    said = statement_from_change(
        change,
        cause="c/0",
        tenant_id="acme",
        owner=OWNER,
        issued_at=LATER,
        episodes=sources,
        target=targets[0] if targets else None,
        policy=POLICY,
    )
    stamp = Stamp(now=LATER, cause="c", embedder="hashing")
    neighbours = Neighbours(near=tuple(NearFact(each) for each in near))
    done = settle(change, said, targets=targets, neighbours=neighbours, stamp=stamp, policy=POLICY)
    return done.verdict, [f"{each.action} {each.fact.state}" for each in done.transitions]


SAID = NOW + timedelta(minutes=9)
HEARD = (
    episode("Works at Stripe", turn="t7", occurred_at=SAID),
    episode("Works at Stripe", turn="t8", occurred_at=SAID, trust="assistant"),
)


def test_a_proposal_is_as_trusted_as_its_least_trusted_source() -> None:
    fields = {"subject": "user", "content": "Works at Stripe", "category": "profession"}
    assert propose("new", sources=HEARD, near=(GOOGLE,), **fields) == ("applied", ["new pending"])
    assert propose("invalidate", GOOGLE, sources=HEARD) == ("refused", [])
    assert propose("prune", GOOGLE, sources=HEARD) == ("refused", [])
    assert propose("update", GOOGLE, sources=HEARD, content="Works at Stripe", near=(GOOGLE,)) == (
        "applied",
        ["new pending"],
    )
    assert propose("invalidate", GOOGLE, sources=HEARD[:1]) == ("applied", ["invalidated invalidated"])


def test_a_merge_keeps_the_words_of_the_most_trusted() -> None:
    echo = fact("Is employed by Google", "assistant", turn="t2")
    refused = propose("merge", GOOGLE, echo, sources=(), near=(GOOGLE, echo), content="Is employed by Google")
    assert refused == ("refused", [])
    merged = propose("merge", echo, GOOGLE, sources=(), near=(GOOGLE, echo), content="Works at Google")
    assert merged == ("applied", ["merged superseded", "merged active"])


@pytest.mark.parametrize("judgement", ["supersede", "coexist"])
def test_no_judgement_believes_what_contradicts_a_more_trusted_fact(judgement: str) -> None:
    (waits,) = hear(says("assistant", "Works at Stripe"), GOOGLE)
    done = propose("judge", waits.fact, GOOGLE, sources=(), near=(GOOGLE,), judgement=judgement)
    assert done == ("refused", [])
    assert judge_without_model(waits.fact, GOOGLE, LATER) is None


def test_no_model_is_asked_about_what_contradicts_a_more_trusted_fact() -> None:
    (waits,) = hear(says("assistant", "Works at Stripe"), GOOGLE)
    stamps, records = fact("Collects stamps"), says("assistant", "Collects records")
    unclear = stored_fact("Collects records", turn="t9", source_role="assistant")
    unclear = unclear.model_copy(update={"state": "pending", "metadata": {"waits_for": stamps.fact_id}})
    own = fact("Collects coins", turn="t8")
    own = own.model_copy(update={"state": "pending", "metadata": {"waits_for": stamps.fact_id}})
    pairs = pairs_to_judge([(waits.fact, GOOGLE), (unclear, stamps), (own, stamps)], LATER)
    assert [each.pending.content for each in pairs] == ["Collects coins", records.content]


def test_what_the_user_says_again_closes_what_waited() -> None:
    (waits,) = hear(says("assistant", "Works at Stripe"), GOOGLE)
    (again,) = hear(says("user", "Works at Google", turn="t12", number=12), GOOGLE)
    assert judge_without_model(waits.fact, again.fact, LATER) == "supersede"
    done = propose("judge", waits.fact, again.fact, sources=(), near=(again.fact,), judgement="supersede")
    assert done == ("applied", ["superseded superseded"])


@pytest.mark.parametrize("category", ["preference", "identity"])
@pytest.mark.parametrize("subject", ["user", "jennifer"])
def test_a_tool_gives_nobody_a_preference_or_an_identity(category: Any, subject: str) -> None:
    said = observation("Prefers aisle seats", subject=subject, category=category, source_role="tool")
    assert not route(said, POLICY).semantic
    fields = {"subject": subject, "content": "Prefers aisle seats", "category": category}
    tool = episode("Prefers aisle seats", turn="t7", trust="tool")
    assert propose("new", sources=(tool,), **fields) == ("refused", [])
    assert (
        propose("update", fact("Flies often", "tool"), sources=(tool,), content="B", category=category)[0] == "refused"
    )
    assert propose("new", sources=(tool, HEARD[0]), **fields) == ("applied", ["new active"])


# ------------------------------------------------------------------------------------------------ any conversation
TEXTS = (
    "Works at Google",
    "Is employed by Google",
    "Works at Google in Zurich",
    "No longer works at Google",
    "Joined Stripe",
    "Might join Adobe",
    "Lives in Oslo",
    "Moved to Bergen",
    "Has two cats",
    "Has three cats",
    "Likes tea",
    "No longer likes tea",
    "Prefers tea to coffee",
    "Prefers coffee to tea",
)
ROLES: tuple[Role, ...] = ("user", "assistant", "tool")
TRUSTED = ("tool", "assistant", "user")
said_lines = st.tuples(
    st.sampled_from(ROLES), st.sampled_from(TEXTS), st.integers(1, 12), st.booleans(), st.none() | st.integers(0, 20)
)


@settings(max_examples=80, deadline=None)
@given(lines=st.lists(said_lines, min_size=2, max_size=14))
def test_in_any_conversation_nothing_of_less_trust_touches_a_fact(
    lines: list[tuple[Role, str, int, bool, int | None]],
) -> None:
    rows: dict[str, StoredFact] = {}
    for n, (role, text, minute, correction, named) in enumerate(lines):
        said = says(role, text, turn=f"t{n}", number=minute, is_correction=correction)
        near = tuple(each for each in rows.values() if each.state in ("active", "pending"))
        replaced = near[named % len(near)] if named is not None and near else None
        for made in hear(said, *near, replaced=replaced, cause=str(n)):
            before, after = made.before, made.fact
            rows[after.fact_id] = after
            turns = {(each.session_id, each.turn_id) for each in after.evidence if each.trust == "user"}
            assert after.reinforcement_count == max(0, len(turns) - 1)
            assert after.trust == max((each.trust or "tool" for each in after.evidence), key=TRUSTED.index)
            if before is not None and TRUSTED.index(before.trust) > TRUSTED.index(said.trust):
                kept = ("state", "content", "valid_from", "valid_to", "confidence", "reinforcement_count", "trust")
                assert {name: getattr(before, name) for name in kept} == {name: getattr(after, name) for name in kept}
            if after.waits_for is not None and before is None:
                assert TRUSTED.index(rows[after.waits_for].trust) >= TRUSTED.index(after.trust)
