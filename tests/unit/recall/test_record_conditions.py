"""Conditions of a read are checked when they are made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from memstream.api.metadata_query import MetadataOperators, MetadataQuery, with_metadata, with_pairs
from memstream.api.problems import Problem
from memstream.memory.facts.statements import turn_metadata, turn_tags
from memstream.recall.record_conditions import MetadataCondition, RecordConditions
from memstream.schemas.base import METADATA_MAX_BYTES, json_size
from memstream.schemas.turns import Turn
from tests.support.record_builders import observed


class Body(BaseModel):
    metadata: MetadataQuery


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "a-b", "values": ("x",)}, "is no name"),
        ({"name": "a.b", "values": ("x",)}, "is no name"),
        ({"name": "a"}, "needs a value, `in`, `exists` or a range"),
        ({"name": "a", "values": ("x",) * 33}, "at most 32 values"),
        ({"name": "a", "values": (True,)}, "a boolean cannot be compared"),
        ({"name": "a", "values": (2**63,)}, r"2\*\*63 - 1"),
        ({"name": "a", "values": (1e400,)}, "inf cannot be compared"),
        ({"name": "a", "gte": 10**400}, r"2\*\*63 - 1"),
        ({"name": "a", "lt": float("nan")}, "nan cannot be compared"),
        ({"name": "a", "lt": 2**53 + 1}, "at most 53 bits"),
    ],
)
def test_a_wrong_condition_on_metadata(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MetadataCondition(**fields)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tags": ("x" * 65,)}, "tags: at most 32 tags of 64 characters"),
        ({"tags": ("x",) * 33}, "tags: at most 32 tags"),
        ({"metadata": (MetadataCondition("a", ("x",)),) * 9}, "metadata: at most 8 conditions"),
        ({"since": datetime(2026, 1, 1)}, "since needs a time zone"),  # noqa: DTZ001
        (
            {"since": datetime(2026, 1, 2, tzinfo=UTC), "until": datetime(2026, 1, 1, tzinfo=UTC)},
            "since is later than until",
        ),
    ],
)
def test_a_wrong_condition(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RecordConditions(**fields)


def test_no_conditions_are_false() -> None:
    assert not RecordConditions()
    assert RecordConditions(tags=("x",))


def test_a_body_has_values_or_operators() -> None:
    body = Body.model_validate({"metadata": {"source": "crm", "n": 3, "plan": {"in": ["a", 2]}, "price": {"gte": 3.5}}})
    assert with_metadata(body.metadata) == [
        MetadataCondition("source", ("crm",)),
        MetadataCondition("n", (3,)),
        MetadataCondition("plan", ("a", 2)),
        MetadataCondition("price", gte=3.5),
    ]
    assert with_pairs(["source:crm:x"]) == [MetadataCondition("source", ("crm:x",))]


@pytest.mark.parametrize("value", [True, {"in": []}, {"in": [True]}, {"near": 3}, {"gte": "x"}, None, [1]])
def test_a_body_with_a_wrong_operator(value: Any) -> None:
    with pytest.raises(ValueError, match="metadata"):
        Body.model_validate({"metadata": {"a": value}})


def test_an_object_without_an_operator_is_a_problem() -> None:
    with pytest.raises(Problem):
        with_metadata({"a": MetadataOperators()})


@pytest.mark.parametrize(("given", "tags"), [("one", ("one",)), (None, ()), (["a", "b"], ("a", "b"))])
def test_tags_of_a_turn(given: Any, tags: tuple[str, ...]) -> None:
    turn = {"tenant_id": "t", "user_id": "u", "session_id": "s", "turn_id": "1", "messages": [{"role": "user"}]}
    assert Turn.model_validate(turn | {"tags": given}).tags == tags


def test_what_has_a_meaning_of_its_own_does_not_come_from_a_turn() -> None:
    record = observed(tags=("summary", "shop"), metadata={"approved": True, "waits_for": "f1", "source": "crm"})
    assert turn_tags(record) == ("shop",)
    assert turn_metadata(record) == {"source": "crm"}


def test_full_metadata_leaves_room() -> None:
    full = {f"k{n}": "x" * 100 for n in range(36)}
    assert METADATA_MAX_BYTES - 200 < json_size(full) <= METADATA_MAX_BYTES
    kept = turn_metadata(observed(metadata=full))
    assert 0 < json_size({**kept}) <= METADATA_MAX_BYTES - 256
