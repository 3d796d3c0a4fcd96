"""A recall reads only the tiers that are switched on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from memstream.memory.policies import TiersPolicy
from memstream.recall.deadline import UnansweredPart
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult, TierFilter
from memstream.schemas.recall import TIERS, Tier
from tests.support.record_builders import NOW, OWNER

WITHOUT_FACTS = TiersPolicy(semantic=False, digest=False)
ALONE = TiersPolicy(episodic=False, semantic=False, digest=False)
ANSWER = RecallResult((), (UnansweredPart("turns.lexical", "it is away"),), silent=True)


class Asked:
    def __init__(self) -> None:
        self.requests: list[RecallRequest] = []

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        assert now == NOW
        self.requests.append(request)
        return ANSWER


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
    request = RecallRequest(tenant_id="acme", owner=OWNER, cue="tea", tiers=wanted, limit=3)
    answer = await TierFilter(inner, policy).recall(request, now=NOW)
    assert inner.requests == ([] if asked is None else [replace(request, tiers=asked)])
    assert answer == (RecallResult((), ()) if asked is None else ANSWER)
