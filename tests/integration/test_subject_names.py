"""Reads by any name of a subject over a real engine: recall, context and profile."""

from __future__ import annotations

import pytest

from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.profile import ProfileReader, ProfileRequest
from memstream.schemas.errors import Transient
from tests.support.recall_service import U1, Faulty, World, recall_loop, recall_store, remembering  # noqa: F401
from tests.support.stored_memory import NOW

BOTH = {"Plays the cello", "Sings in a choir"}


@pytest.fixture
def known(remembering: World) -> World:  # noqa: F811
    fact = remembering.memory.fact
    remembering.do(fact("Plays the cello", subject="robert", slot="hobby", value="cello"))
    remembering.do(fact("Sings in a choir", subject="bob", slot="hobby", value="choir"))
    remembering.do(fact("Runs marathons", subject="anna", slot="hobby", value="marathons"))
    return remembering


def named(world: World, **fields: object) -> str:
    said = {"content": "Everyone calls Robert Bob", "slot": "nickname", "value": "Bob", "subject": "robert"}
    return world.do(world.memory.fact(**(said | fields)))  # type: ignore[arg-type]


def about(world: World, subject: str) -> set[str]:
    found = world.recall(subject=subject, limit=20).items
    return {each.item.content for each in found} - {"Everyone calls Robert Bob"}


@pytest.mark.parametrize("subject", ["robert", "bob", "Bob"])
def test_a_subject_is_found_by_any_of_its_names(known: World, subject: str) -> None:
    named(known)
    assert about(known, subject) == BOTH
    assert about(known, "anna") == {"Runs marathons"}


@pytest.mark.parametrize(
    "fields", [{"state": "forgotten"}, {"denied": True}, {"trust": "assistant"}, {"sensitivity": "secret"}]
)
def test_a_name_counts_only_while_a_user_says_it_and_the_reader_may_see_it(
    known: World, fields: dict[str, object]
) -> None:
    named(known, **fields)
    assert about(known, "robert") == {"Plays the cello"}


def test_a_cue_with_one_name_ranks_statements_about_the_other_name(known: World) -> None:
    cue = "which hobby does Bob have?"
    before = {each.item.content: each.item.parts["fit"] for each in known.recall(cue=cue, tiers=("semantic",)).items}
    named(known)
    after = {each.item.content: each.item.parts["fit"] for each in known.recall(cue=cue, tiers=("semantic",)).items}
    assert before["Plays the cello"] == pytest.approx(before["Runs marathons"])
    assert before["Sings in a choir"] > before["Plays the cello"]
    assert after["Plays the cello"] > after["Runs marathons"]


def test_without_an_answer_about_names_the_read_has_the_rest(known: World) -> None:
    named(known)
    store = Faulty(known.store, of=("facts.select",), fault=Transient("store", "away"), times=1)
    found = known.recall(subject="bob", store=store)  # type: ignore[arg-type]
    assert [each.part for each in found.missing] == ["names"]
    assert {each.item.content for each in found.items} == {"Sings in a choir"}


def test_a_profile_has_the_values_of_all_names(known: World) -> None:
    named(known)
    reader = ProfileReader(store=known.store, policies=TenantPolicies(MemoryPolicy()))
    found = known.do(
        reader.profile(ProfileRequest(tenant_id="acme", owner=U1, subject="bob", slots=("hobby",)), now=NOW)
    )
    assert {each.value for slot in found.slots for each in slot.values} == {"cello", "choir"}
