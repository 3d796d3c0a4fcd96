"""Which commands are refused where a tier of memory is off, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstream.agents.common.tier_gate import refusal_by_tier
from memstream.memory.policies import TiersPolicy
from memstream.schemas.commands import Command, SessionRef
from memstream.schemas.turns import Owner

KINDS = ("consolidate", "digest", "episodes.record", "facts.apply", "hygiene", "prune", "observe", "nobodys")
ON_FACTS = {"consolidate", "facts.apply", "prune"}
ON_EPISODES = {"episodes.record", "hygiene"}


def command(kind: str) -> Command:
    about = {"session": SessionRef(user_id="u1", session_id="s1")} if kind == "observe" else {}
    owner = {} if about else {"owner": Owner(scope="user", id="u1")}
    at = datetime(2026, 11, 20, 10, tzinfo=UTC)
    return Command(command_id="c1", kind=kind, tenant_id="acme", issued_at=at, **about, **owner)


@pytest.mark.parametrize(
    ("tiers", "refused"),
    [
        (TiersPolicy(), set()),
        (TiersPolicy(digest=False), {"digest"}),
        (TiersPolicy(semantic=False, digest=False), {"digest"} | ON_FACTS),
        (TiersPolicy(episodic=False, semantic=False, digest=False), {"digest"} | ON_FACTS | ON_EPISODES),
    ],
)
def test_what_works_on_a_tier_that_is_off_is_refused_and_all_else_is_not(tiers: TiersPolicy, refused: set[str]) -> None:
    assert {kind for kind in KINDS if refusal_by_tier(command(kind), tiers) is not None} == refused


def test_it_names_the_tier_that_is_missing() -> None:
    alone = TiersPolicy(episodic=False, semantic=False, digest=False)
    for kind, tier in (("hygiene", "episodic"), ("facts.apply", "semantic"), ("digest", "digest")):
        error = refusal_by_tier(command(kind), alone)
        assert error is not None
        assert (error.code, error.message) == (
            "tier_off",
            f"{kind} works on the tier {tier}, which is off: memory.tiers.{tier}",
        )
