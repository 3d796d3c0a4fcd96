"""The soak's pure parts: its plan of faults, what is said in it, and how it is judged."""

from __future__ import annotations

import base64
import json
import random
import signal
from collections import Counter
from dataclasses import fields, replace
from unittest.mock import AsyncMock, Mock

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bench.soak import run, sampling
from bench.soak.conversation import noted
from bench.soak.edits import Editor, edit_verdict
from bench.soak.hostile import (
    FORGED,
    INVISIBLE,
    ORDER,
    SECRETS,
    Attacked,
    attack_verdict,
    attacks,
    leaks,
    secret_sentence,
    unsafe_payload,
)
from bench.soak.report import longest
from bench.soak.sampling import Used
from bench.soak.schedule import BAG, OUTAGE, planned
from bench.soak.traffic import sessions
from bench.soak.verdict import AT_LEAST, WARM_UP, lag_verdict, slopes
from bench.soak.workers import Ended
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, TURNS
from memstream.schemas.turns import TURN_MAX_BYTES, Turn
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.log.port import Position
from memstream.verification import InvariantVerdict
from memstream.verification.rows import DeadLetterRow, EventRow, History
from tests.support.hostile_records import framed_turns

MB_A_MINUTE = 2.0


def growing(name: str, pid: int, *, began: float, ended: float, rate: float = MB_A_MINUTE) -> list[Used]:
    return [Used(at, name, pid, 100 + rate * (at - began) / 60, 0.0) for at in range(int(began), int(ended))]


# --------------------------------------------------------------------------- the plan
def test_a_seed_gives_one_plan_in_which_every_kind_comes() -> None:
    plan = planned(seed=7, seconds=1_200, session_timeout=10)
    assert plan == planned(seed=7, seconds=1_200, session_timeout=10)
    assert plan != planned(seed=8, seconds=1_200, session_timeout=10)
    assert {fault.kind for fault in plan} == set(BAG)


def test_every_fault_is_over_before_the_end_and_outages_of_the_broker_are_survived() -> None:
    for seed in range(50):
        plan = planned(seed=seed, seconds=1_200, session_timeout=10)
        assert all(fault.at + fault.lasts <= 1_200 for fault in plan)
        outages = [fault for fault in plan if fault.kind.startswith("broker")]
        assert outages
        assert all(fault.lasts <= OUTAGE for fault in outages)
        assert all(fault.lasts > 10 for fault in plan if fault.kind == "SIGSTOP"), "longer than the session time-out"


# --------------------------------------------------------------------------- the traffic
def test_sessions_come_and_go_at_a_steady_rate() -> None:
    every = list(sessions(seed=1, seconds=600, count=500, rate=10))
    assert len({session.key for session in every}) == 500
    by_minute = Counter(int(saying.at // 60) for session in every for saying in session.sayings)
    assert all(450 < by_minute[minute] < 750 for minute in range(2, 9)), by_minute
    assert len({session.tenant for session in every}) == 5


def test_turns_are_valid_and_some_records_are_not() -> None:
    every = [saying for session in sessions(seed=1, seconds=600, count=500, rate=10) for saying in session.sayings]
    for saying in every:
        if saying.turn_id is not None:
            assert Turn.read(saying.value).turn_id == saying.turn_id
    assert any(saying.turn_id is None for saying in every)
    assert any(saying.unspeakable for saying in every)


def test_what_is_noted_can_be_quoted() -> None:
    said = "Sorry, I meant: my name is Mia. I moved to Oslo."
    found = noted(said)
    assert [note.content for _, note in found] == ["Lives in Oslo", "Is named Mia"]
    assert all(words in said for words, _ in found)
    assert json.dumps(noted("Thanks, that helps.")) == "[]"


# --------------------------------------------------------------------------- memory
def test_growth_over_the_last_half_is_found() -> None:
    (slope,) = slopes(growing("observer-1", 1, began=0, ended=1_200), half=600, end=1_200, names=["observer-1"])
    assert slope.mb_a_minute is not None
    assert abs(slope.mb_a_minute - MB_A_MINUTE) < 0.01
    assert slope.began == 600
    assert not slope.within


def test_a_process_that_was_started_again_begins_a_new_line_without_its_warm_up() -> None:
    used = growing("observer-1", 1, began=0, ended=700, rate=0) + growing("observer-1", 2, began=700, ended=1_300)
    first, second = slopes(used, half=600, end=1_300, names=["observer-1"])
    assert first.mb_a_minute is None, "a hundred seconds of the last half are too short"
    assert second.began == 700 + WARM_UP
    assert second.ended - second.began >= AT_LEAST
    assert second.mb_a_minute is not None


def test_the_table_shows_the_line_that_was_judged() -> None:
    used = growing("observer-1", 1, began=0, ended=600) + growing("observer-1", 2, began=600, ended=1_200)
    ended, judged = slopes(used, half=600, end=1_200, names=["observer-1"])
    assert ended.ended - ended.began > judged.ended - judged.began
    assert ended.mb_a_minute is None
    assert longest([ended, judged]) == longest([judged, ended]) == [judged]


def test_only_workers_are_looked_at() -> None:
    assert slopes(growing("broker", 1, began=0, ended=1_200), half=600, end=1_200, names=["observer-1"]) == []


# --------------------------------------------------------------------------- lag
def test_turns_that_wait_are_counted_over_tenants() -> None:
    registry = CollectorRegistry()
    metrics = StageMetrics(Metrics(registry), "observer")
    for tenant, waiting in (("acme", 3), ("zeta", 12)):
        metrics.waiting_turns(tenant, waiting)
        metrics.waiting_judgements(tenant, 100)
    assert sampling.waiting_in(generate_latest(registry).decode()) == 15


async def test_turns_that_wait_are_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "lags", AsyncMock(return_value={"observer": 0}))
    monkeypatch.setattr(sampling, "waiting_turns", AsyncMock(return_value=2))
    monkeypatch.setattr(run, "LAG_GONE_WITHIN", 0.1)
    gone, lag = await run._until_no_lag(Mock(log=Mock(return_value=AsyncMock())))
    assert (gone, lag) == (None, {"observer": 0, "waiting turns": 2})
    (violation,) = lag_verdict(lag, gone).violations
    assert violation.what == "waiting turns: 2"


def test_lag_that_was_never_zero_for_long_is_no_success() -> None:
    assert lag_verdict({"observer": 0}, 3.0).ok
    assert not lag_verdict({"observer": 0}, None).ok
    assert not lag_verdict({}, None).ok, "no worker answered"


# --------------------------------------------------------------------------- ends of workers
def test_a_worker_may_not_end_by_itself_but_for_a_server_that_is_away() -> None:
    def ended(code: int, *, ours: bool) -> bool:
        return Ended("observer-1", 1.0, 1.0, code, ours).as_it_should

    assert ended(3, ours=False)
    assert ended(-signal.SIGKILL, ours=True)
    assert ended(0, ours=True)
    assert not ended(-signal.SIGKILL, ours=False), "out of memory"
    assert not ended(0, ours=False)
    assert not ended(4, ours=False)
    assert not ended(1, ours=True)


# --------------------------------------------------------------------------- attacks
def test_a_seed_gives_attacks_of_every_kind_and_the_valid_turns_among_them_are_valid() -> None:
    every = list(attacks(seed=3, seconds=1_200))
    assert every == list(attacks(seed=3, seconds=1_200))
    assert {each.name.partition(":")[0] for each in every} == {
        *("run", "order", "secret", "secret in a refused turn", "invisible", "timestamp"),
        *("odd turn", "odd command", "odd record of a stage", "forged"),
    }
    turns = [each for each in every if each.turn is not None]
    assert all(each.value is not None and Turn.read(each.value).turn_id == each.turn[1] for each in turns if each.turn)
    assert {each.topic for each in every if each.name == "forged"} == {COMMANDS.name, COMMANDS_SESSION.name}


def test_odd_turns_have_every_frame_and_the_largest_is_as_large_as_is_allowed() -> None:
    every = [each for seed in range(9) for each in attacks(seed=seed, seconds=3_600)]
    frames = framed_turns({"messages": [{"role": "user", "content": "x"}]})
    assert {(f"odd turn: {each.name}", each.reason) for each in frames} <= {(each.name, each.reason) for each in every}
    accepted = [each for each in every if each.name.startswith("odd turn") and each.reason is None]
    assert max(len(each.value or b"") for each in accepted) == TURN_MAX_BYTES


def attacked_with(reason: str | None, *letters: str) -> InvariantVerdict:
    """Judge one attack that has to be refused for `reason` and has these dead letters."""
    (attack, *_) = (each for each in attacks(seed=3, seconds=600) if each.name == "run")
    place = Position(TURNS.name, 0, 7)
    rows = [
        DeadLetterRow(Position(f"{TURNS.name}.dlq", 0, n), 0, None, place, "observer", letter, None)
        for n, letter in enumerate(letters)
    ]
    return attack_verdict(Attacked([(replace(attack, reason=reason), place)]), History(dead_letters=rows))


def test_only_the_expected_dead_letters_of_attacks_are_well() -> None:
    for reason, letters, violations in (
        (None, (), 0),
        ("invalid", ("invalid",), 0),
        ("invalid", ("invalid", "invalid"), 0),  # a worker died between the letter and its commit
        (None, ("invalid",), 1),
        ("invalid", (), 1),
        ("invalid", ("undecodable",), 1),
        (None, ("fatal",), 2),
    ):
        assert len(attacked_with(reason, *letters).violations) == violations, (reason, letters)


def test_secrets_and_forged_statements_are_found_in_every_form() -> None:
    secret = SECRETS["password"][1].encode()
    row = base64.urlsafe_b64encode(b'{"content":"' + secret + b'"}')
    for raw, found in (
        (secret, 1),
        (b'{"row":"' + row + b'"}', 1),
        (SECRETS["card"][1].replace(" ", "").encode(), 1),
        (b"[password] [card]", 0),
    ):
        assert len(list(leaks("x", raw))) == found, raw
    for collection, payload, found in (
        ("facts", {"content": "Likes tea", "state": "active"}, 0),
        ("facts", {"content": ORDER, "state": "active"}, 1),
        ("facts", {"content": ORDER, "state": "quarantined"}, 0),
        ("turns", {"content": ORDER}, 0),
        ("working", {"entries": [{"content": FORGED}]}, 1),
        ("turns", {"content": f"I like {INVISIBLE}tea"}, 1),
        ("turns", {"content": secret_sentence("iban")}, 1),
    ):
        assert len(list(unsafe_payload(collection, payload))) == found, (collection, payload)


# --------------------------------------------------------------------------- edits
def test_an_edit_of_a_fact_has_exactly_one_event() -> None:
    editor = Editor("tenant-0", "editor-0", random.Random(1), one_event={"c1": "facts.update number 1"})
    event = EventRow(**{each.name: "c1" for each in fields(EventRow)})  # type: ignore[arg-type]
    for events, violations in (((), 1), (("e1",), 0), (("e1", "e2"), 1)):
        rows = {name: [event] for name in events}
        assert len(edit_verdict([editor], History(events=rows)).violations) == violations
