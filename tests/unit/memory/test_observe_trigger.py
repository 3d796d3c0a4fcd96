from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import ObservePolicy
from memstream.memory.working_set.observe_trigger import (
    ObserveNow,
    UnobservedTurns,
    Wait,
    is_behind,
    time_to_observe,
    turns_that_fit,
)

ONE = UnobservedTurns(turns=1, tokens=5)


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
        (replace(ONE, has_queued_successor=True), ObservePolicy(), ObserveNow(1)),
        (replace(ONE, behind=True), ObservePolicy(), Wait("backlog")),
        (replace(ONE, behind=True, turns=7), ObservePolicy(), Wait("backlog")),
        (replace(ONE, behind=True, has_queued_successor=True, turns=8), ObservePolicy(), ObserveNow(8)),
        (replace(ONE, behind=True, tokens=8_000), ObservePolicy(), ObserveNow(1)),
        (replace(ONE, behind=True, has_queued_successor=True, ends_session=True), ObservePolicy(), ObserveNow(1)),
        (replace(ONE, behind=True, has_queued_successor=True, asked=True), ObservePolicy(), ObserveNow(1)),
        (replace(ONE, behind=True, has_queued_successor=True), ObservePolicy(together=1), ObserveNow(1)),
    ],
)
def test_when(session: UnobservedTurns, policy: ObservePolicy, answer: ObserveNow | Wait) -> None:
    assert time_to_observe(session, policy) == answer


@given(st.integers(0, 100), st.integers(1, 64))
def test_rounds_end(turns: int, together: int) -> None:
    policy, rounds = ObservePolicy(together=together), 0
    while isinstance(answer := time_to_observe(UnobservedTurns(turns=turns), policy), ObserveNow):
        assert 1 <= answer.turns <= together
        turns -= answer.turns
        rounds += 1
    assert turns == 0


# ------------------------------------------------------------------------------------------------ how many
@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=10), st.integers(1, 8_000))
def test_a_round_has_no_more_tokens_than_it_may_and_no_fewer_turns_than_it_can(sizes: list[int], bound: int) -> None:
    fit = turns_that_fit(sizes, ObservePolicy(round_tokens=bound))
    assert 1 <= fit <= len(sizes)
    assert fit == 1 or sum(sizes[:fit]) <= bound
    assert fit == len(sizes) or sum(sizes[: fit + 1]) > bound


# ------------------------------------------------------------------------------------------------ backlog
@pytest.mark.parametrize(
    ("unread", "held", "was", "waiting", "behind"),
    [
        (0, 0, False, 0, False),
        (32, 100, False, 0, False),
        (33, 0, False, 0, True),
        (32, 0, True, 0, True),
        (1, 0, True, 0, True),
        (0, 100, True, 0, False),
        (20, 0, True, 20, False),
        (20, 1, True, 20, True),
        (4_900, 100, False, 5_000, False),
        (4_901, 100, False, 5_000, True),
    ],
)
def test_when_a_partition_is_behind(unread: int, held: int, was: bool, waiting: int, behind: bool) -> None:
    assert is_behind(unread, held=held, was=was, waiting=waiting, policy=ObservePolicy(backlog=32)) is behind


@dataclass
class Log:
    """A partition that is read event by event by a worker that holds `held` of them. Each event asks with the turns of
    its session that are queued behind it. What waits for company when all is read is asked once, as the reminders do.
    """

    sessions: list[int]
    held: int
    policy: ObservePolicy
    waiting: dict[int, int] = field(default_factory=dict)
    calls: int = 0
    observed: int = 0

    def run(self) -> None:
        unread = deque(self.sessions)
        queued: deque[int] = deque()
        was = False
        while unread or queued:
            while unread and len(queued) < self.held:
                queued.append(unread.popleft())
            session = queued.popleft()
            waits = sum(1 for turns in self.waiting.values() if turns)
            was = is_behind(len(unread), held=1 + len(queued), was=was, waiting=waits, policy=self.policy)
            along = min(queued.count(session), self.policy.together - 1)
            for _ in range(self.ask(session, self.waiting.get(session, 0), 1 + along, behind=was)):
                queued.remove(session)
        for session, turns in list(self.waiting.items()):
            self.ask(session, turns, 0, asked=True)

    def ask(self, session: int, waiting: int, here: int, *, behind: bool = False, asked: bool = False) -> int:
        """Return how many queued turns were observed along."""
        along = 0
        while isinstance(
            answer := time_to_observe(UnobservedTurns(turns=waiting + here, behind=behind, asked=asked), self.policy),
            ObserveNow,
        ):
            new = answer.turns - min(waiting, answer.turns)
            waiting -= answer.turns - new
            if new:
                along, here = new - 1, 0
            self.calls += 1
            self.observed += answer.turns
        self.waiting[session] = waiting + (here > 0)
        return along


@given(
    sessions=st.lists(st.integers(0, 12), max_size=200),
    held=st.integers(1, 40),
    backlog=st.integers(0, 60),
    together=st.integers(1, 9),
)
def test_whatever_the_backlog_every_turn_is_observed_and_the_last_ones_by_one_question_a_session(
    sessions: list[int], held: int, backlog: int, together: int
) -> None:
    log = Log(sessions, held, ObservePolicy(backlog=backlog, together=together))
    log.run()
    assert log.observed == len(sessions)
    assert not any(log.waiting.values())
    assert log.calls <= len(sessions)
    assert together > 1 or log.calls == len(sessions)


@pytest.mark.parametrize("sessions", [20, 200, 1_000])
@pytest.mark.parametrize("turns", [5, 8, 20])
def test_a_backlog_of_interleaved_sessions_takes_at_most_three_calls_for_ten_turns(sessions: int, turns: int) -> None:
    log = Log([session for _ in range(turns) for session in range(sessions)], 1_000, ObservePolicy())
    log.run()
    assert log.observed == sessions * turns
    assert log.calls / log.observed <= 0.3


def test_without_a_backlog_every_turn_is_a_call_of_its_own() -> None:
    log = Log([n % 10 for n in range(20)], 5, ObservePolicy())
    log.run()
    assert log.calls == log.observed == 20
