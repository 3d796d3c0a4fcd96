"""What a flush takes out of the working set, for whom, and what it knows of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.observer.flush import FlushResult, flushed, origins_after
from memstream.agents.observer.rows import EntryOrigin, SessionRow
from memstream.memory.policies import WorkingSetPolicy
from memstream.memory.working_set.entries import EntryCandidate, apply_turn
from memstream.schemas import ids
from memstream.schemas.commands import KEPT_MAX, Command, EpisodesKeep, SessionRef
from memstream.schemas.observations import Observation
from memstream.schemas.turns import Owner
from memstream.schemas.working_set import ENTRIES_MAX
from tests.support.record_builders import NOW, OWNER, observation

AGENT = Owner(scope="agent", id="bot")
POLICY = WorkingSetPolicy(capacity=ENTRIES_MAX)
FLUSH = Command(
    command_id="c1/ä",
    kind="flush_important",
    tenant_id="acme",
    session=SessionRef(user_id="u1", session_id="s1"),
    issued_at=NOW,
)


def heard(
    session: SessionRow, *said: Observation, turn: str = "t1", owner: Owner = OWNER, policy: WorkingSetPolicy = POLICY
) -> SessionRow:
    """The session after a turn in which this was observed."""
    working = apply_turn(session.working, [EntryCandidate(each) for each in said], policy=policy).working
    new = [EntryOrigin.of(each, turn_id=turn, occurred_at=NOW, owner=owner, user_id="u1") for each in said]
    return session.model_copy(
        update={"working": working, "origins": origins_after(session.origins, new, working), "turns": session.turns + 1}
    )


def done(session: SessionRow, threshold: float = 0.6) -> FlushResult:
    return flushed(session, FLUSH, threshold=threshold, issued_by="/memstream/observer", now=NOW)


def contents(flush: FlushResult) -> list[str]:
    args = [EpisodesKeep.from_payload(each.args) for each in flush.commands]
    return sorted(kept.observation.content for each in args for kept in each.observations)


@pytest.mark.parametrize(
    ("threshold", "kept"), [(0.0, ["A", "B", "C"]), (0.6, ["B", "C"]), (0.61, ["C"]), (1.0, ["C"])]
)
def test_what_is_at_the_threshold_or_above_goes_however_long_it_holds(threshold: float, kept: list[str]) -> None:
    session = heard(
        SessionRow(),
        observation("A", importance=0.2),
        observation("B", importance=0.6, durability="transient"),
        observation("C", importance=1.0, durability="session", category="task"),
    )
    flush = done(session, threshold)
    assert (contents(flush), flush.entries, flush.left) == (kept, len(kept), 0)


def test_an_observation_goes_as_it_was_told() -> None:
    said = observation(
        "Runs a lot",
        turn="t7",
        valid_from=NOW,
        emotion={"valence": 0.5, "arousal": -0.5},
        source_role="assistant",
        evidence="you run a lot",
        sensitivity="secret",
    )
    (command,) = done(heard(SessionRow(), said, turn="t7")).commands
    assert (command.kind, command.owner, command.session, command.expires_at) == ("episodes.keep", OWNER, None, None)
    args = EpisodesKeep.from_payload(command.args)
    (kept,) = args.observations
    assert (args.user_id, args.session_id, kept.turn_id, kept.occurred_at) == ("u1", "s1", "t7", NOW)
    assert kept.observation == said
    assert args.as_derived("acme") == (said,)


def test_each_owner_gets_its_own_and_the_ids_follow_from_the_flush() -> None:
    session = heard(SessionRow(), observation("A"))
    session = heard(session, observation("B", turn="t2"), turn="t2", owner=AGENT)
    first, second = done(session).commands
    assert {first.key, second.key} == {"acme/user/u1", "acme/agent/bot"}
    assert [first.command_id, second.command_id] == [ids.kept_command_id("acme/u1/s1", "c1/ä", n) for n in (0, 1)]
    assert done(session) == done(session)
    other = FLUSH.model_copy(update={"command_id": "c2"})
    again = flushed(session, other, threshold=0.6, issued_by="", now=NOW)
    assert not {each.command_id for each in again.commands} & {first.command_id, second.command_id}


def test_a_command_holds_no_more_than_twenty() -> None:
    session = SessionRow()
    for n in range(KEPT_MAX * 2 + 1):
        session = heard(session, observation(f"Says {n}", turn=f"t{n}"), turn=f"t{n}")
    sizes = [len(EpisodesKeep.from_payload(each.args).observations) for each in done(session).commands]
    assert sizes == [KEPT_MAX, KEPT_MAX, 1]


def test_an_entry_without_an_origin_is_told_and_left() -> None:
    session = heard(SessionRow(), observation("A"), observation("B"))
    session = session.model_copy(update={"origins": session.origins[:1]})
    assert (contents(done(session)), done(session).entries, done(session).left) == (["A"], 1, 1)


def test_an_entry_that_was_said_again_goes_as_the_observation_that_it_stands_for() -> None:
    weak = observation("Likes tea", importance=0.6, durability="session", evidence="tea, please")
    strong = observation("Likes tea", turn="t2", importance=0.9, durability="permanent", evidence="I like tea")
    for first, second in ((weak, strong), (strong, weak)):
        session = heard(SessionRow(), first, turn="t1" if first is weak else "t2")
        session = heard(session, second, turn="t1" if second is weak else "t2")
        (kept,) = EpisodesKeep.from_payload(done(session).commands[0].args).observations
        assert (kept.turn_id, kept.observation) == ("t2", strong)


@given(st.lists(st.lists(st.integers(0, 9), max_size=3, unique=True), max_size=12), st.integers(1, 4))
def test_every_entry_has_its_origin_and_no_other_is_kept(turns: list[list[int]], capacity: int) -> None:
    session = SessionRow()
    policy = WorkingSetPolicy(capacity=capacity, max_pinned=0)
    for n, said in enumerate(turns):
        made: list[Any] = [observation(f"Says {each}", turn=f"t{n}") for each in said]
        session = heard(session, *made, turn=f"t{n}", policy=policy)
        assert sorted(each.observation_id for each in session.origins) == sorted(
            each.observation_id for each in session.working.entries
        )
    assert done(session, 0.0).left == 0


def test_an_origin_takes_little_room_in_the_row_and_comes_back_whole() -> None:
    said = [observation("A", valid_from=NOW, emotion={"valence": 1.0, "arousal": 0.0}), observation("B")]
    session = heard(heard(SessionRow(), *said), observation("C", turn="t2"), turn="t2", owner=AGENT)
    raw = session.to_bytes()
    assert SessionRow.read(raw) == session
    origins = json.loads(raw)["origins"]
    assert [sorted(each) for each in origins][1] == [
        "evidence",
        "observation_id",
        "occurred_at",
        "source_role",
        "turn_id",
    ]
    assert origins[0]["valid_from"] == "2026-11-20T10:00:00Z"
    assert origins[2]["owner"] == {"scope": "agent", "id": "bot"}
