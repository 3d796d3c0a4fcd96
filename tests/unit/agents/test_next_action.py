"""The observer's next action, as a table: what the session's row, this event and the worker say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.agents.observer.next_action import EventProgress, Surroundings, next_action
from memstream.agents.observer.rows import SessionRow
from memstream.memory.policies import ObservePolicy
from memstream.memory.working_set.observe_trigger import ObserveNow, Wait

QUIET = Surroundings(has_queued_successor=False, behind=False, breaker_open=False, held_back=None)
THREE_WAIT = EventProgress(SessionRow(waiting_next=3, waiting_tokens=30), new=None, requested=False)


@pytest.mark.parametrize(
    ("progress", "around", "action"),
    [
        (EventProgress(SessionRow(), new=None, requested=True), QUIET, Wait("nothing")),
        (THREE_WAIT, QUIET, ObserveNow(3)),
        (THREE_WAIT, replace(QUIET, refusing=True), ObserveNow(1)),
        (THREE_WAIT, replace(QUIET, refusing=True, breaker_open=True), Wait("model_away")),
        (THREE_WAIT, replace(QUIET, has_queued_successor=True), ObserveNow(3)),
        (THREE_WAIT, replace(QUIET, behind=True), Wait("backlog")),
        (replace(THREE_WAIT, requested=True), replace(QUIET, behind=True), ObserveNow(3)),
        (THREE_WAIT, replace(QUIET, breaker_open=True), Wait("model_away")),
        (THREE_WAIT, replace(QUIET, held_back="model_away"), Wait("model_away")),
        (THREE_WAIT, replace(QUIET, held_back="budget"), Wait("budget")),
        (THREE_WAIT.without_model(7.0), QUIET, Wait("model_away")),
        (THREE_WAIT.without_budget(None), QUIET, Wait("budget")),
        (THREE_WAIT.one_by_one(3), QUIET, ObserveNow(1)),
        (THREE_WAIT.one_by_one(3), replace(QUIET, behind=True), ObserveNow(1)),
        (THREE_WAIT.one_by_one(1).without_model(None), QUIET, Wait("model_away")),
        (replace(THREE_WAIT, rounds=3), QUIET, ObserveNow(3)),
        (replace(THREE_WAIT, rounds=4), QUIET, Wait("enough_rounds")),
        (replace(THREE_WAIT, rounds=4), replace(QUIET, has_queued_successor=True), Wait("next_is_here")),
        (replace(THREE_WAIT, rounds=4, requested=True), QUIET, Wait("enough_rounds")),
        (
            replace(THREE_WAIT, rounds=4, requested=True),
            replace(QUIET, has_queued_successor=True),
            Wait("enough_rounds"),
        ),
        (replace(THREE_WAIT, rounds=4, alone=1), QUIET, ObserveNow(1)),
        (replace(THREE_WAIT, rounds=4).without_model(None), QUIET, Wait("model_away")),
        (EventProgress(SessionRow(), new=None, requested=True, rounds=4), QUIET, Wait("nothing")),
    ],
)
def test_next_action(progress: EventProgress, around: Surroundings, action: ObserveNow | Wait) -> None:
    assert next_action(progress, around, ObservePolicy()) == action


def test_turns_are_asked_together_again_after_those_that_were_asked_alone() -> None:
    progress = THREE_WAIT.one_by_one(2)
    row = SessionRow(waiting_from=1, waiting_next=3, waiting_tokens=20)
    progress = progress.after(row, ())
    assert next_action(progress, QUIET, ObservePolicy()) == ObserveNow(1)
    progress = progress.after(row, ())
    assert next_action(progress, QUIET, ObservePolicy()) == ObserveNow(2)


def test_each_call_is_a_round() -> None:
    row = SessionRow(waiting_from=1, waiting_next=3, waiting_tokens=20)
    assert THREE_WAIT.one_by_one(2).after(row, ()).after(row, ()).rounds == 3
    assert THREE_WAIT.without_model(None).rounds == 0


def test_the_time_that_a_server_asked_for_is_remembered() -> None:
    assert THREE_WAIT.without_model(7.0).retry_after == 7.0
    assert THREE_WAIT.without_budget(None).retry_after == 0.0
