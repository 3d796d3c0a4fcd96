"""The plan of a run: its steps by kind and phase, and how often it may ask a model."""

from __future__ import annotations

from itertools import combinations
from typing import Any, cast, get_args

import pytest

from memstream.agents.consolidation.plan import Steps
from memstream.agents.consolidation.rows import Kind
from memstream.agents.consolidation.steps.gists import GistsStep
from memstream.agents.consolidation.steps.hygiene import HygieneStep
from memstream.agents.consolidation.steps.pending import JudgeStep
from memstream.memory.policies import MemoryPolicy
from memstream.memory.policies.budget import PHASES, Phase

POLICY = MemoryPolicy()
STEPS = Steps(cast(Any, None), cast(Any, None), POLICY)
CALLS_MAX = 5
"""A call waits up to a minute for an unreachable model, and the owner waits for the run."""
SETS = [frozenset(each) for size in range(4) for each in combinations(PHASES, size)]


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_run_asks_a_bounded_number_of_questions(kind: Kind, phases: frozenset[Phase]) -> None:
    assert sum(questions(step) for step in STEPS.of(kind, phases)) <= CALLS_MAX


def questions(step: object) -> int:
    """Return the most questions that a step asks in one run. Hygiene is a visit of the janitor or a maintenance run."""
    match step:
        case HygieneStep():
            steps = step.maintenance.proposing.values()
            return max(questions(step.janitor.gists), sum(questions(each) for each in steps))
        case GistsStep():
            return step.policy.calls
        case _:
            return int(hasattr(step, "caller"))


def test_hygiene_asks_for_gists_or_for_insights() -> None:
    (hygiene,) = STEPS.of("hygiene", frozenset(PHASES))
    assert isinstance(hygiene, HygieneStep)
    assert questions(hygiene.janitor.gists) == POLICY.gist.calls > 0
    assert questions(hygiene.maintenance.proposing["derived"]) == 1


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
def test_only_the_phases_of_the_tier_and_in_their_order(phases: frozenset[Phase]) -> None:
    parts = [step.part for step in STEPS.of("consolidate", phases)]
    assert set(parts) == phases
    assert parts == sorted(parts, key=lambda part: PHASES.index(cast(Phase, part)))


@pytest.mark.parametrize("phases", SETS, ids=lambda phases: "-".join(sorted(phases)) or "none")
def test_light_asks_for_summaries_alone_and_no_phase_judges(phases: frozenset[Phase]) -> None:
    steps = STEPS.of("consolidate", phases)
    asking = [type(step).__name__ for step in steps if hasattr(step, "caller") and step.part == "light"]
    assert asking == (["SummaryStep"] if "light" in phases else [])
    assert not any(isinstance(step, JudgeStep) for step in steps)
    assert [type(step) for step in STEPS.of("judge", phases)] == [JudgeStep]


def test_what_follows_a_run_ends_with_the_digest() -> None:
    after = STEPS.after_run
    assert (after[0], after[-1]) == ("prune", "digest")
    assert set(after) <= set(get_args(Kind)) - {"consolidate"}
