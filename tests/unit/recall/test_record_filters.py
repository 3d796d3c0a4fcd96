"""Which facts a selection lists."""

from __future__ import annotations

from typing import get_args

import pytest
from qdrant_client import models

from memstream.recall.record_filters import ALL, RecordSelection, facts_filter
from memstream.schemas.facts import FactState


def states(selection: RecordSelection) -> set[str]:
    """The states that the filter lets through, read from its condition on `state`."""
    for condition in facts_filter(selection).must or ():
        if isinstance(condition, models.FieldCondition) and condition.key == "state":
            match = condition.match
            if isinstance(match, models.MatchAny):
                return {str(each) for each in match.any}
            assert isinstance(match, models.MatchValue)
            return {str(match.value)}
    return set(get_args(FactState))


def test_all_leaves_out_what_must_be_asked_for_by_name() -> None:
    assert states(RecordSelection(tenant_id="acme", state=ALL)) == {
        *("active", "pending", "superseded", "invalidated", "expired")
    }


@pytest.mark.parametrize("state", get_args(FactState))
def test_each_state_is_listed_by_its_name(state: FactState) -> None:
    assert states(RecordSelection(tenant_id="acme", state=state)) == {state}
