"""Valid and invalid parameters of a recall."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.recall.request import RecallRequest
from memstream.schemas.turns import Owner

OWNER = Owner(scope="user", id="u1")


def test_the_least_that_is_asked() -> None:
    request = RecallRequest(tenant_id="acme", owner=OWNER)
    assert request.owner_keys == ("acme/user/u1",)
    assert request.search_text is None
    assert request.ceiling == "internal"


@pytest.mark.parametrize("cue", [None, "", "  \n"])
def test_a_blank_cue_is_none(cue: str | None) -> None:
    assert RecallRequest(tenant_id="acme", owner=OWNER, cue=cue).search_text is None


def test_groups_are_owners_of_the_same_tenant_each_once() -> None:
    request = RecallRequest(tenant_id="a/b", owner=OWNER, groups=("team", "team", "house/hold"))
    assert request.owner_keys == ("a%2Fb/user/u1", "a%2Fb/group/team", "a%2Fb/group/house%2Fhold")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant_id": ""},
        {"limit": 0},
        {"limit": 101},
        {"tiers": ()},
        {"tiers": ("turns", "turns")},
        {"cue": "x" * 2_001},
        {"cue": "half \ud83d"},
        {"mood": 1.5},
        {"min_score": -0.1},
        {"min_score": 1.1},
        {"groups": tuple("abcdefghijklmnopqrstuvwxyz1234567")},
        {"as_of": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"known_at": datetime(2026, 1, 1)},  # noqa: DTZ001
    ],
    ids=lambda wrong: str(wrong)[:80],
)
def test_what_is_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RecallRequest(**({"tenant_id": "acme", "owner": OWNER} | wrong))


def test_a_read_of_the_past_is_of_the_world_at_as_of_else_at_known_at() -> None:
    then, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    asked = RecallRequest(tenant_id="acme", owner=OWNER)
    assert asked.past is None
    assert replace(asked, known_at=later).past == later
    assert replace(asked, as_of=then, known_at=later).past == then
