"""Hostile values: what a contract refuses, and that it refuses nothing else."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memstream.schemas.base import CONTENT_MAX, METADATA_MAX_BYTES, explain
from memstream.schemas.commands import Command, FactsApply
from memstream.schemas.facts import Fact
from memstream.schemas.turns import Owner, Turn, turn_value
from tests.support.cases import for_each

LEAST: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s1",
    "turn_id": "t1",
    "messages": [{"role": "user", "content": "hello"}],
}
GIVEN_IDS = ("tenant_id", "user_id", "session_id", "turn_id", "agent_id", "org_id", "group_id")
clean = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=128)
unclean = st.tuples(st.text(max_size=5), st.characters(categories=("Cc", "Cs")), st.text(max_size=5)).map("".join)


@given(st.sampled_from(GIVEN_IDS), clean)
def test_any_clean_id_is_taken_as_it_is(name: str, value: str) -> None:
    assert getattr(Turn.read(turn_value(LEAST | {name: value})), name) == value


@given(st.sampled_from(GIVEN_IDS), unclean)
def test_ids_with_control_characters_or_surrogates_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError):
        Turn.read(json.dumps(LEAST | {name: value}).encode())
    with pytest.raises(ValidationError):
        Turn.model_validate(LEAST | {name: value})


@for_each(("name", "value"), product(GIVEN_IDS, ["", "x" * 129, 7, ["a"], {}]))
def test_ids_out_of_bounds_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Turn.read(json.dumps(LEAST | {name: value}).encode())
    assert explain(caught.value).startswith(name)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": "x"}] * 65},
        {"messages": [{"role": "pirate", "content": "x"}]},
        {"messages": [{"content": "x"}]},
        {"messages": "hello"},
        {"scope": "agent"},
        {"scope": "planet"},
        {"occurred_at": "yesterday"},
        {"occurred_at": "2026-11-20T10:00:00"},
        {"metadata": {"k": "x" * METADATA_MAX_BYTES}},
        {"sensitivity": "top"},
    ],
    ids=lambda change: str(change)[:80],
)
def test_turns_that_break_a_rule_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Turn.read(turn_value(LEAST | change))


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{", b"\xff\xfe", b'"text"', b"1", b"{}" * 2, b'{"tenant_id":"\\ud800"}'],
    ids=str,
)
def test_garbage_is_a_validation_error_and_nothing_else(raw: bytes) -> None:
    for contract in (Turn, Fact, Command, FactsApply):
        with pytest.raises(ValidationError):
            contract.read(raw)


@given(st.binary(max_size=200))
def test_no_bytes_bring_anything_but_a_validation_error(raw: bytes) -> None:
    for contract in (Turn, Fact, Command):
        with pytest.raises(ValidationError):
            contract.read(raw)


def test_deep_nesting_is_refused_not_a_crash() -> None:
    deep = b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ValidationError):
        Turn.read(deep)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    fact = (
        '{"fact_id":"f","version":1,"tenant_id":"a","owner":{"scope":"user","id":"u"},"subject":"user","content":"c",'
        f'"category":"goal","confidence":{number},"state":"active","valid_from":"2026-11-20T10:00:00Z",'
        f'"recorded_at":"2026-11-20T10:00:00Z","embedder":"hashing","content_hash":"{"0" * 64}"}}'
    )
    with pytest.raises(ValidationError):
        Fact.read(fact)


def test_code_cannot_write_a_field_that_the_contract_has_not() -> None:
    with pytest.raises(ValidationError):
        Owner.model_validate({"scope": "user", "id": "u1", "extra": 1})


def test_explain_repeats_no_input() -> None:
    with pytest.raises(ValidationError) as caught:
        Turn.read(turn_value(LEAST | {"tenant_id": "secret-" * 40, "messages": [{"role": "user", "content": 5}]}))
    assert "secret-" not in explain(caught.value)


@pytest.mark.parametrize("length", [CONTENT_MAX, CONTENT_MAX + 1])
def test_content_is_counted_in_code_points(length: int) -> None:
    change = {"action": "new", "subject": "user", "category": "goal", "content": "🐈" * length}
    raw = json.dumps({"run_id": "r", "changes": [change]}).encode()
    if length > CONTENT_MAX:
        with pytest.raises(ValidationError):
            FactsApply.read(raw)
    else:
        assert len(FactsApply.read(raw).changes) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"action": "new", "subject": "user", "content": "c"},
        {"action": "reinforce"},
        {"action": "update", "target_fact_id": "f"},
        {"action": "merge", "source_fact_ids": ["f"], "content": "c"},
        {"action": "destroy", "target_fact_id": "f"},
    ],
    ids=str,
)
def test_incomplete_changes_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FactsApply.read(json.dumps({"run_id": "r", "changes": [change]}).encode())


@pytest.mark.parametrize(
    "address", [{}, {"owner": {"scope": "user", "id": "u"}, "session": {"user_id": "u", "session_id": "s"}}]
)
def test_a_command_has_exactly_one_address(address: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Command.model_validate(
            {"command_id": "c", "kind": "consolidate", "tenant_id": "a", "issued_at": "2026-11-20T10:00:00Z"} | address
        )
