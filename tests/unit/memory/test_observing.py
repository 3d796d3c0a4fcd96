from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.observing import ObserveNow, Unobserved, Wait, time_to_observe
from memstream.memory.policies import ObservePolicy

ONE = Unobserved(turns=1, tokens=5)


@pytest.mark.parametrize(
    ("session", "policy", "answer"),
    [
        (ONE, ObservePolicy(), ObserveNow(1)),
        (replace(ONE, turns=20), ObservePolicy(), ObserveNow(8)),
        (replace(ONE, turns=20), ObservePolicy(together=1), ObserveNow(1)),
        (replace(ONE, turns=0, ends_session=True), ObservePolicy(), Wait("nothing")),
        (replace(ONE, model_away=True, ends_session=True), ObservePolicy(), Wait("model_away")),
        (replace(ONE, budget_left=False), ObservePolicy(), Wait("budget")),
        (ONE, ObservePolicy(unobserved_tokens=100), Wait("few_tokens")),
        (replace(ONE, tokens=100), ObservePolicy(unobserved_tokens=100), ObserveNow(1)),
        (replace(ONE, ends_session=True), ObservePolicy(unobserved_tokens=100), ObserveNow(1)),
        (replace(ONE, asked=True), ObservePolicy(unobserved_tokens=100), ObserveNow(1)),
    ],
)
def test_when(session: Unobserved, policy: ObservePolicy, answer: ObserveNow | Wait) -> None:
    assert time_to_observe(session, policy) == answer


@given(st.integers(0, 100), st.integers(1, 64))
def test_rounds_end(turns: int, together: int) -> None:
    policy, rounds = ObservePolicy(together=together), 0
    while isinstance(answer := time_to_observe(Unobserved(turns=turns), policy), ObserveNow):
        assert 1 <= answer.turns <= together
        turns -= answer.turns
        rounds += 1
    assert turns == 0
