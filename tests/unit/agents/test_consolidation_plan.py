"""What a run is made of: its steps by kind and phase, and how often it may ask a model."""

from __future__ import annotations

from itertools import combinations
from typing import Any, cast, get_args

import pytest

from memstream.agents.consolidation.plan import CALLS_MAX, Steps
from memstream.agents.consolidation.rows import Kind
from memstream.memory.policies import MemoryPolicy
from memstream.memory.policies.budget import PHASES, Phase

STEPS = Steps(cast(Any, None), cast(Any, None), MemoryPolicy())
SETS = [frozenset(each) for size in range(4) for each in combinations(PHASES, size)]


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_run_asks_a_bounded_number_of_questions(kind: Kind, phases: frozenset[Phase]) -> None:
    asking = [step for step in STEPS.of(kind, phases) if hasattr(step, "asking")]
    assert len(asking) <= CALLS_MAX


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
def test_only_the_phases_of_the_tier_and_in_their_order(phases: frozenset[Phase]) -> None:
    parts = [step.part for step in STEPS.of("consolidate", phases)]
    assert set(parts) == phases
    assert parts == sorted(parts, key=lambda part: PHASES.index(cast(Phase, part)))


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
def test_light_asks_for_summaries_alone_and_pending_facts_are_judged_once_a_run(phases: frozenset[Phase]) -> None:
    steps = STEPS.of("consolidate", phases)
    asking = [type(step).__name__ for step in steps if hasattr(step, "asking") and step.part == "light"]
    assert asking == (["Summarise"] if "light" in phases else [])
    judges = [step.part for step in steps if type(step).__name__ == "Judge"]
    assert judges == (["deep"] if "deep" in phases else ["standard"] if "standard" in phases else [])


def test_what_follows_a_run_ends_with_the_digest() -> None:
    after = STEPS.after_run
    assert (after[0], after[-1]) == ("prune", "digest")
    assert set(after) <= set(get_args(Kind)) - {"consolidate"}
