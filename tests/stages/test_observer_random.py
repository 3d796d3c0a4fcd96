"""Turns, backlogs, outages, commands and deaths in any order: each turn is observed once, or refused once, and none is
lost; what waits at the end is asked for by the observer's own reminders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.agents.observer.rows import WAITS, SessionRow
from memstream.memory.policies import MemoryPolicy, ObservePolicy, WorkingSetPolicy
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.row_keys import INDEX, index_key, index_prefix
from memstream.streams.log.port import Record
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import LETTERS, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import Killed
from tests.support.table_rows import take_over

SESSIONS = (("acme", "u1", "s1"), ("acme", "u2", "s1"), ("globex", "u1", "s1"))
POLICY = MemoryPolicy(
    observe=ObservePolicy(patience=0.0005, together=3, rounds=2), working=WorkingSetPolicy(capacity=3, max_pinned=1)
)


@dataclass(frozen=True)
class Step:
    """A turn, a command, the model's going away and coming back, or the partition's falling behind and its being read;
    `has_queued_successor`: another event of the session follows at once; perhaps a death `dies` steps into it, after
    which
    `again` of the events before it come again, with (or without) the local store, perhaps the commands first: the
    order among topics is nobody's."""

    kind: str
    session: int
    has_queued_successor: bool
    dies: int
    again: int
    empty_folder: bool
    commands_first: bool


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(
            [
                "turn",
                "turn",
                "turn",
                "poison",
                "silent",
                "end",
                "duplicate",
                "command",
                "away",
                "back",
                "behind",
                "read",
            ]
        ),
        session=st.integers(0, 2),
        has_queued_successor=st.booleans(),
        dies=st.sampled_from([0, 0, 1, 2, 3, 4, 5, 6, 8, 11]),
        again=st.integers(0, 6),
        empty_folder=st.booleans(),
        commands_first=st.booleans(),
    ),
    max_size=25,
)


class Model:
    def __init__(self) -> None:
        self.away = False

    def __call__(self, ask: Ask) -> Answer:
        if self.away:
            raise Transient("model", "away")
        if any("poison" in text for text in ask.turns.values()):
            raise Poison("refused_by_model", "no")
        found = [
            {**OBSERVATION, "turn": name, "subject": "word",
             "content": f"Answer {ask.number} on {name}", "evidence": "very plain word",
             "replaces": "w1" if ask.number % 3 == 0 else None, "importance": ask.number % 10 / 10}
            for name in ask.turns
        ]  # fmt: skip
        return {"observations": [*found]}


class Play:
    """Records in the order of the log; a death goes back to where the commit was."""

    def __init__(self) -> None:
        self.model = Model()
        self.world = ObserverWorld(self.model, policy=POLICY)
        self.log: list[Record] = []
        self.good: list[tuple[tuple[str, str, str], str]] = []
        self.bad: list[int] = []

    def record(self, step: Step) -> Record | None:
        session, n = SESSIONS[step.session], len(self.log)
        if step.kind in ("away", "back"):
            self.model.away = step.kind == "away"
            return None
        if step.kind in ("behind", "read"):
            self.world.unread = 10_000 if step.kind == "behind" else 0
            return None
        if step.kind == "command":
            return self.world.command(f"c{n}", session=session)
        if step.kind == "duplicate":
            known = [turn for who, turn in self.good if who == session]
            return self.world.turn("another very plain word", known[n % len(known)], session=session) if known else None
        text = {
            "turn": "a very plain word",
            "poison": "a poison very plain word",
            "silent": " ",
            "end": "a last very plain word",
        }[step.kind]
        turn = self.world.turn(text, f"t{n}", session=session, ends_session=step.kind == "end")
        if step.kind == "poison":
            self.bad.append(turn.position.offset)
        else:
            self.good.append((session, f"t{n}"))
        return turn

    async def step(self, step: Step) -> None:
        record = self.record(step)
        if record is None:
            return
        self.log.append(record)
        followers = []
        if step.has_queued_successor:
            followers = [self.world.command(f"f{len(self.log)}", kind="dance", session=SESSIONS[step.session])]
        await self.delivered(record, step, followers)
        self.check_index()
        for follower in followers:
            self.log.append(follower)
            await self.world.deliver(follower)

    async def delivered(self, record: Record, step: Step, followers: list[Record]) -> None:
        harness = self.world.harness
        harness._kill_at = len(harness.steps) + step.dies if step.dies else None
        try:
            await self.world.deliver(record, ahead=followers)
        except Killed:
            if step.empty_folder:
                harness.rows.local = dict(harness.rows.changelog)
            harness.start()
            await take_over(self.world.observer, harness.rows)
            uncommitted = self.log[-1 - step.again :]
            if step.commands_first:
                uncommitted.sort(key=lambda again: again.position.topic)
            for again in uncommitted:
                await self.world.deliver(again)
        harness._kill_at = None

    def check_index(self) -> None:
        """The index is what a look at every row finds."""
        rows = self.world.harness.rows.changelog
        waits = {
            index_key(WAITS, key)
            for key, value in rows.items()
            if key.count("/") == 2 and not key.startswith(INDEX) and SessionRow.read(value).waiting
        }
        assert {key for key in rows if key.startswith(index_prefix(WAITS))} == waits
        assert rows == self.world.harness.rows.local

    async def end(self) -> None:
        """The model is there, all is read, the pause is over. What an event left goes on by itself; then there is one
        reminder for each session that waits, and no more."""
        self.model.away, self.world.unread = False, 0
        await self.world.deliver_rest()
        self.world.clock.seconds += POLICY.observe.patience
        waiting = {key.rpartition("/")[0] for key in self.world.waiting()}
        reminders = await self.world.reminders()
        assert {out.key.decode() for out in reminders if out.key} == waiting
        await self.world.deliver_rest()
        while await self.world.reminders():  # an event makes two calls at most
            await self.world.deliver_rest()


@given(STEPS)
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.slow
async def test_each_turn_is_observed_once_or_refused_once(steps: list[Step]) -> None:
    play = Play()
    for step in steps:
        await play.step(step)
    await play.end()
    world = play.world
    world.harness.check_equal_bytes()
    observed = [((r.tenant_id, r.user_id, r.session_id), r.turn_id) for r in world.observed()]
    assert Counter(observed) == Counter(play.good)
    letters = {int(dict(out.headers)["kafka_dlt-original-offset"]) for out in world.harness.on(LETTERS)}
    assert letters == set(play.bad)
    assert world.waiting() == []
    assert world.harness.rows.local == world.harness.rows.changelog
    for session in SESSIONS:
        mine = [
            (r.turn_number, r.turn_id)
            for r in world.observed()
            if r.tenant_id == session[0] and r.user_id == session[1]
        ]
        assert [number for number, _ in mine] == list(range(1, len(mine) + 1))
        assert world.projected(session) == sorted(world.working(session))
    answered = [result.command_id for result in world.results()]
    assert len(answered) == len(set(answered))
