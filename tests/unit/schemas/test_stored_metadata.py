"""Metadata that is nested too deeply is not stored: an engine could not read the collection afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from memstream.schemas.base import METADATA_DEPTH_MAX, is_storable
from memstream.schemas.edits.facts import FactRemember
from memstream.schemas.edits.working import WorkingAdd


def nested(depth: int) -> Any:
    value: Any = 1
    for n in range(depth):
        value = [value] if n % 2 else {"x": value}
    return value


def test_values_are_stored_up_to_a_depth() -> None:
    assert is_storable(nested(METADATA_DEPTH_MAX))
    assert not is_storable(nested(METADATA_DEPTH_MAX + 1))
    assert is_storable([{"a": list(range(1_000))}, "b"])


@pytest.mark.parametrize("args", [FactRemember, WorkingAdd])
def test_an_edit_with_deeper_metadata_is_refused(args: Any) -> None:
    args.from_payload({"content": "Likes tea", "metadata": {"x": nested(METADATA_DEPTH_MAX - 1)}})
    with pytest.raises(ValidationError, match="nested deeper than 32 levels"):
        args.from_payload({"content": "Likes tea", "metadata": {"x": nested(METADATA_DEPTH_MAX)}})
