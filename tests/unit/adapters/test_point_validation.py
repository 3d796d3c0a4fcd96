"""Validation of records that come back from an engine. Every query names a tenant, and an engine that still returns
another tenant's record must be noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from memstream.adapters.ports import StoredPoint
from memstream.adapters.vectors import point_validation
from memstream.schemas.errors import Fatal

VECTORS = {"dense": [0.6, 0.8], "window": [1.0, 0.0]}


class Back(NamedTuple):
    """`EngineHit`, as an engine returns it."""

    id: str
    payload: dict[str, Any] | None
    vector: Any = None
    order_value: None = None
    score: float = 0.5


def as_rows(records: Sequence[Back]) -> list[StoredPoint]:
    return point_validation.stored_points(records, tenants=("acme", "rival"), collection="facts", dense_name="dense")


def as_hits(records: Sequence[Back]) -> list[StoredPoint]:
    return point_validation.scored_points(records, tenants=("acme", "rival"), collection="facts")


@pytest.mark.parametrize("read", [as_rows, as_hits])
@pytest.mark.parametrize("payload", [{"tenant_id": "other"}, {"content": "of nobody"}, {}, None])
def test_a_record_that_is_not_of_the_tenants_asked_for_fails_the_read(
    read: Callable[[Sequence[Back]], list[StoredPoint]], payload: dict[str, Any] | None
) -> None:
    mine = Back("a", {"tenant_id": "acme"})
    with pytest.raises(Fatal, match="a query returned point b of another tenant"):
        read([mine, Back("b", payload), mine])


def test_records_come_back_in_their_order_with_what_was_asked_of_them() -> None:
    one, other = Back("a", {"tenant_id": "acme", "content": "x"}), Back("b", {"tenant_id": "rival"}, VECTORS)
    assert as_rows([one, other]) == [
        StoredPoint("a", {"tenant_id": "acme", "content": "x"}, None, None),
        StoredPoint("b", {"tenant_id": "rival"}, None, [0.6, 0.8]),
    ]
    assert as_hits([other, one]) == [StoredPoint(each.id, each.payload or {}, 0.5, None) for each in (other, one)]
