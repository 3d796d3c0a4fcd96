"""Which facts may be shared with a group, when enough users state them, and which evidence is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts.statements import Statement, statement_from_fact
from memstream.memory.policies import SharingPolicy
from memstream.memory.upkeep.sharing import SHARED_MAX, is_shareable, shared_statement, sharing_changes
from memstream.schemas.facts import StoredFact
from memstream.schemas.turns import Owner
from tests.support.record_builders import NOW
from tests.support.shared_facts import GROUP, OFFICE, POLICY, known_by

THREE = [known_by("ana"), known_by("bob"), known_by("eva")]


def proposed(said: list[StoredFact], policy: SharingPolicy = POLICY) -> list[tuple[str, tuple[str, ...]]]:
    mine = [each for each in said if each.owner.id == "ana"]
    changes = sharing_changes(mine, said, group=GROUP, policy=policy)
    return [(change.content or "", change.source_fact_ids) for change in changes]


def candidate(owner: Owner = GROUP) -> Statement:
    return Statement(
        fact_id="f1", tenant_id="acme", owner=owner, subject="fixpoint-labs", content=OFFICE, category="knowledge",
        confidence=0.5, occurred_at=NOW,
    )  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"sensitivity": "internal"},
        {"sensitivity": "secret"},
        {"category": "preference"},
        {"subject": "user"},
        {"subject": "ana"},
        {"trust": "assistant"},
        {"trust": "tool"},
        {"state": "pending"},
        {"state": "superseded"},
        {"valid_to": NOW},
        {"owner": Owner(scope="agent", id="ana")},
    ],
    ids=str,
)
def test_what_is_personal_doubtful_or_not_open_stays_where_it_is(changes: dict[str, Any]) -> None:
    assert is_shareable(known_by("ana"), POLICY)
    assert not is_shareable(known_by("ana", **changes), POLICY)
    others = [known_by("bob"), known_by("eva")]
    assert proposed([known_by("ana", **changes), *others]) == []
    assert proposed([known_by("ana"), known_by("bob", **changes), known_by("eva")]) == [], "it does not count either"


def test_enough_users_not_enough_facts() -> None:
    assert proposed(THREE) == [(OFFICE, tuple(each.fact_id for each in THREE))]
    assert proposed(THREE[:2]) == []
    again = [known_by("ana", fact_id=f"other {n}") for n in range(3)]
    assert proposed([*THREE[:2], *again]) == [], "a user who says it four times is one user"
    elsewhere = known_by("eva", subject="other-labs")
    assert proposed([*THREE[:2], elsewhere]) == []


@pytest.mark.parametrize("state", ["active", "pending", "superseded", "invalidated", "expired", "forgotten"])
def test_what_the_group_knows_or_knew_is_not_proposed_again(state: str) -> None:
    assert proposed([*THREE, known_by("team", owner=GROUP, state=state)]) == []
    assert proposed([*THREE, known_by("team", owner=Owner(scope="group", id="others"), state=state)]) != []


def test_a_run_proposes_as_much_as_a_command_carries() -> None:
    said = [known_by(user, f"Rule number {n} is kept") for n in range(30) for user in ("ana", "bob", "eva")]
    assert len(proposed(said)) == SHARED_MAX


def test_what_is_shared_is_no_surer_than_the_least_and_in_nobodys_words() -> None:
    early, late = NOW - timedelta(days=9), NOW + timedelta(days=9)
    said = known_by("eva").evidence[0].model_copy(update={"occurred_at": late})
    sources = [known_by("ana", confidence=0.9), known_by("bob", valid_from=early), known_by("eva", evidence=(said,))]
    shared = shared_statement(candidate(), sources, POLICY)
    assert shared is not None
    assert (shared.confidence, shared.valid_from, shared.occurred_at) == (0.8, early, late)
    assert (shared.sensitivity, shared.trust) == ("public", "user")
    assert sorted(each.session_id for each in shared.evidence) == [f"session of {u}" for u in ("ana", "bob", "eva")]
    assert {each.quote for each in shared.evidence} == {""}
    assert {each.observation_id for each in shared.evidence} == {each.evidence[0].observation_id for each in sources}
    open_ = SharingPolicy(group="team", users=3, ceiling="internal")
    told = shared_statement(candidate(), [*THREE[:2], known_by("eva", sensitivity="internal")], open_)
    assert told is not None
    assert told.sensitivity == "internal", "as sensitive as the most"


def test_an_echo_is_nobodys_evidence_of_what_is_shared() -> None:
    eva = known_by("eva")
    echo = eva.evidence[0].model_copy(update={"turn_id": "echo", "trust": "assistant"})
    sources = [*THREE[:2], eva.model_copy(update={"evidence": (*eva.evidence, echo)})]
    shared = shared_statement(candidate(), sources, POLICY)
    assert shared is not None
    assert "echo" not in {each.turn_id for each in shared.evidence}


def test_the_groups_reflector_looks_again() -> None:
    gone = THREE[2].model_copy(update={"state": "superseded"})
    assert shared_statement(candidate(), [*THREE[:2], gone], POLICY) is None
    assert shared_statement(candidate(Owner(scope="group", id="others")), THREE, POLICY) is None
    assert shared_statement(candidate(Owner(scope="user", id="team")), THREE, POLICY) is None
    assert shared_statement(candidate(), THREE, SharingPolicy()) is None, "off"


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["ana", "bob", "eva", "ian"]),
            st.sampled_from(["public", "internal", "secret"]),
            st.sampled_from(["active", "superseded", "invalidated"]),
        ),
        max_size=8,
    ),
    users=st.integers(2, 4),
    ceiling=st.sampled_from(["public", "internal"]),
)
def test_nothing_secret_is_shared_and_both_looks_agree(
    rows: list[tuple[str, str, str]], users: int, ceiling: Any
) -> None:
    policy = SharingPolicy(group="team", users=users, ceiling=ceiling)
    said = [
        known_by(user, sensitivity=sensitivity, state=state, fact_id=f"f{n}")
        for n, (user, sensitivity, state) in enumerate(rows)
    ]
    for _, sources in proposed(said, policy):
        named = [each for each in said if each.fact_id in sources]
        assert len({each.owner.id for each in named}) == len(named) >= users
        assert {each.sensitivity for each in named} <= {"public", ceiling}
        shared = shared_statement(candidate(), named, policy)
        assert shared is not None
        assert len(shared.evidence) <= len(named)
        assert statement_from_fact(named[0]).content_hash == shared.content_hash


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"users": 1}, "users"),
        ({"ceiling": "secret"}, "ceiling"),
        ({"group": "a\n"}, "group"),
        ({"group": "x" * 129}, "group"),
    ],
)
def test_a_policy_that_would_give_away_what_is_ones_own_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=f"sharing.{says}"):
        SharingPolicy(**({"group": "team"} | wrong))
    assert SharingPolicy().shared_with is None
