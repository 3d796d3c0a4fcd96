"""Recall asks for the tiers that are on, and for no others."""

from __future__ import annotations

from datetime import datetime

import pytest

from memstream.memory.policies import TiersPolicy
from memstream.recall.kept import KeptTiers
from memstream.recall.request import RecallRequest
from memstream.recall.service import Recalled
from memstream.schemas.recalled import TIERS, Tier
from tests.support.memory import NOW, OWNER

WITHOUT_FACTS = TiersPolicy(semantic=False, digest=False)
ALONE = TiersPolicy(episodic=False, semantic=False, digest=False)


class Asked:
    def __init__(self) -> None:
        self.requests: list[RecallRequest] = []

    async def recall(self, request: RecallRequest, *, now: datetime) -> Recalled:
        self.requests.append(request)
        return Recalled((), ())


@pytest.mark.parametrize(
    ("policy", "wanted", "asked"),
    [
        (TiersPolicy(), TIERS, TIERS),
        (TiersPolicy(digest=False), TIERS, TIERS),
        (WITHOUT_FACTS, TIERS, ("working", "episodic", "turns")),
        (ALONE, TIERS, ("working", "turns")),
        (ALONE, ("semantic", "working", "episodic"), ("working",)),
        (WITHOUT_FACTS, ("semantic",), None),
    ],
)
async def test_only_tiers_that_are_on_are_read(
    policy: TiersPolicy, wanted: tuple[Tier, ...], asked: tuple[Tier, ...] | None
) -> None:
    inner = Asked()
    request = RecallRequest(tenant_id="acme", owner=OWNER, cue="tea", tiers=wanted)
    answer = await KeptTiers(inner, policy).recall(request, now=NOW)
    assert [each.tiers for each in inner.requests] == ([] if asked is None else [asked])
    assert (answer.items, answer.missing, answer.silent) == ((), (), False)
