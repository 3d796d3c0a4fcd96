"""Slots as data: what a deployment and a tenant may define, and what a turn's record keeps of it."""

import json
from typing import Any, get_args

import pytest

from memstream.memory.policies import SLOTS, MemoryPolicy
from memstream.memory.tenant_policies import PolicyRefused, applied_settings, flat_settings, policy_of, with_settings
from memstream.schemas.observations import Category
from memstream.schemas.slots import OTHER

BLOOD = {"description": "the blood type", "category": "attribute", "values": "single"}


def tenant(**slots: Any) -> MemoryPolicy:
    return policy_of({"slots": slots}, MemoryPolicy())


def test_a_tenant_adds_changes_and_removes_slots_and_keeps_the_others() -> None:
    policy = tenant(blood_type=BLOOD, employer={"values": "many"}, politics={"enabled": False})
    blood, employer = policy.slot("blood_type"), policy.slot("employer")
    assert blood is not None
    assert blood.values == "single"
    assert employer is not None
    assert (employer.values, employer.description) == ("many", SLOTS["employer"].description)
    assert policy.slot("politics") is None
    assert policy.slot("pet") == SLOTS["pet"]


def test_other_and_unknown_names_are_no_slots() -> None:
    assert MemoryPolicy().slot(OTHER) is None
    assert MemoryPolicy().slot("from_a_later_version") is None


@pytest.mark.parametrize(
    ("slots", "problem"),
    [
        ({"blood_type": {"category": "attribute"}}, 'slots."blood_type".description must be set'),
        ({"blood_type": BLOOD | {"values": "two"}}, "Input should be 'single' or 'many'"),
        ({"blood_type": BLOOD | {"description": "x" * 161}}, "1 to 160 characters, not 161"),
        ({"Blood": BLOOD}, "is no name of a slot"),
        ({"other": BLOOD}, "is no name of a slot"),
        ({"blood_type": BLOOD | {"opposite": "blud"}}, "there is no slot 'blud'"),
        ({"blood_type": BLOOD | {"colour": "red"}}, "there is no such setting"),
        ({f"slot_{n}": BLOOD for n in range(128)}, "at most 128 are allowed"),
    ],
)
def test_a_wrong_slot_is_refused_by_name(slots: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyRefused, match=problem.replace(".", r"\.")):
        tenant(**slots)


def test_a_record_has_the_slots_that_differ_and_the_reflector_reads_them_back() -> None:
    policy = tenant(blood_type=BLOOD, employer={"values": "many"}, politics={"enabled": False})
    settings = applied_settings(policy, MemoryPolicy())
    assert set(settings) == {"slots.blood_type", "slots.employer", "slots.politics"}
    assert with_settings(MemoryPolicy(), json.loads(json.dumps(settings))).slots == policy.slots


def test_instructions_have_a_limit_and_stay_out_of_the_record() -> None:
    policy = policy_of({"capture": {"instructions": "Note every blood type."}}, MemoryPolicy())
    assert policy.capture.instructions == "Note every blood type."
    assert applied_settings(policy, MemoryPolicy()) == {}
    with pytest.raises(PolicyRefused, match="at most 2000"):
        policy_of({"capture": {"instructions": "x" * 2_001}}, MemoryPolicy())


def test_a_slot_is_one_setting_by_name() -> None:
    assert flat_settings(MemoryPolicy())["slots.employer"]["values"] == "single"


def test_the_slots_of_memstream_cover_every_category() -> None:
    assert {each.category for each in SLOTS.values()} >= set(get_args(Category))
    for name, slot in SLOTS.items():
        if slot.opposite:
            assert SLOTS[slot.opposite].opposite == name
        if slot.inverse:
            assert SLOTS[slot.inverse].inverse == name
