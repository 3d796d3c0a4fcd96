"""Metadata that no engine can store is not stored, and an edit with it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from memstream.schemas.base import METADATA_DEPTH_MAX, why_unstorable
from memstream.schemas.edits.facts import FactRemember
from memstream.schemas.edits.working import WorkingAdd


def nested(depth: int) -> Any:
    value: Any = 1
    for n in range(depth):
        value = [value] if n % 2 else {"x": value}
    return value


def test_values_are_stored_up_to_a_depth() -> None:
    assert why_unstorable(nested(METADATA_DEPTH_MAX)) is None
    assert why_unstorable(nested(METADATA_DEPTH_MAX + 1)) == "is nested deeper than 32 levels"
    assert why_unstorable([{"a": list(range(1_000))}, "b", True, None, 2.5, 2**63 - 1, -(2**63)]) is None


@pytest.mark.parametrize("args", [FactRemember, WorkingAdd])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (nested(METADATA_DEPTH_MAX), "nested deeper than 32 levels"),
        ([2**63], "integer beyond 64 bits: write it as a text"),
        ({"x": -(2**63) - 1}, "integer beyond 64 bits"),
        (float("inf"), "finite number"),
        ("\ud800", "surrogate|unicode"),
        ({"\ud800": 1}, "surrogate|unicode|Keys"),
    ],
)
def test_an_edit_with_metadata_that_no_engine_stores_is_refused(args: Any, value: Any, said: str) -> None:
    args.from_payload({"content": "Likes tea", "metadata": {"x": nested(METADATA_DEPTH_MAX - 1), "y": 2**63 - 1}})
    with pytest.raises(ValidationError, match=said):
        args.from_payload({"content": "Likes tea", "metadata": {"x": value}})
