"""The chat services of the soak. Sessions begin and end at a steady rate, and acknowledged turns are kept.

A few turns are sent twice, have no key, are undecodable, or get no usable answer from the model.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bench.soak.conversation import FILLER, UNSPEAKABLE, sentence
from memstream.schemas import ids
from memstream.schemas.errors import Transient
from memstream.schemas.topics import TURNS
from memstream.streams.log.port import Log

TENANTS = tuple(f"tenant-{number}" for number in range(5))
SESSIONS_OF_A_USER = 2
PAUSE = 7.0
"""Mean seconds between two turns of a session."""
WITHOUT_KEY = 0.02
"""Share of sessions whose service sets no key. The observer sends their turns again to the correct partition."""
TWICE = 0.01
UNSPEAKABLES = 0.003
UNREADABLES = 0.003
AGAIN_AFTER = 0.5
"""Seconds until an unacknowledged record is sent again."""


@dataclass(frozen=True, slots=True)
class Saying:
    """One record to produce, `at` seconds after the start."""

    at: float
    value: bytes
    turn_id: str | None
    """The turn id; None when the record is not a turn."""
    unspeakable: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    tenant: str
    user: str
    name: str
    keyed: bool
    sayings: tuple[Saying, ...]

    @property
    def key(self) -> str:
        return ids.session_key(self.tenant, self.user, self.name)


def sessions(*, seed: int, seconds: float, count: int, rate: float) -> Iterator[Session]:
    """Yield `count` sessions that begin one after the other over `seconds`. Together they send about `rate` turns/s."""
    rng = random.Random(f"traffic/{seed}")
    each = rate * seconds / count
    note = 0
    for number in range(count):
        user = number // SESSIONS_OF_A_USER
        tenant, who, name = TENANTS[user % len(TENANTS)], f"user-{user}", f"session-{number}"
        at = max(0.0, seconds - PAUSE * each) * number / count
        sayings: list[Saying] = []
        for n in range(1, max(1, round(each * rng.uniform(0.5, 1.5))) + 1):
            if at > seconds:
                break
            note += 1
            unspeakable = rng.random() < UNSPEAKABLES
            text = f"{sentence(rng)} {UNSPEAKABLE if unspeakable else ''} (note {note})"
            value = turn_value(tenant, who, name, f"t{n}", text, rng)
            sayings.append(Saying(at, value, f"t{n}", unspeakable))
            if rng.random() < TWICE and not unspeakable:  # a second copy of a dead letter would be tried again
                sayings.append(Saying(at + 0.1, value, f"t{n}", unspeakable))
            if rng.random() < UNREADABLES:
                sayings.append(Saying(at + 0.2, rng.choice((b"\xff\xfe", b'{"tenant_id": 1}', b"[]")), None))
            at += rng.expovariate(1 / PAUSE)
        yield Session(tenant, who, name, rng.random() >= WITHOUT_KEY, tuple(sayings))


def turn_value(tenant: str, user: str, session: str, turn_id: str, text: str, rng: random.Random) -> bytes:
    """Return a turn's value: the user's text, and an assistant's answer of about a hundred characters."""
    answer = FILLER[: rng.randrange(60, len(FILLER))]
    return json.dumps(
        {
            "tenant_id": tenant,
            "user_id": user,
            "session_id": session,
            "turn_id": turn_id,
            "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": answer}],
        }
    ).encode()


@dataclass(slots=True)
class Sent:
    """The acknowledged records. Turns are kept by session key and turn id."""

    turns: set[tuple[str, str]] = field(default_factory=set)
    unspeakable: set[tuple[str, str]] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    users: set[tuple[str, str]] = field(default_factory=set)
    tenants: set[str] = field(default_factory=set)
    records: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    late: float = 0.0
    """The longest delay of an acknowledgement in seconds, caused by an outage of the broker."""


def parts(every: Sequence[Session], middle: float) -> tuple[list[Session], list[Session]]:
    """Split the sessions: their records before `middle` seconds, and their later records."""

    def kept(*, early: bool) -> list[Session]:
        cut = (replace(s, sayings=tuple(each for each in s.sayings if (each.at < middle) is early)) for s in every)
        return [session for session in cut if session.sayings]

    return kept(early=True), kept(early=False)


def later(every: Sequence[Session], seconds: float) -> list[Session]:
    return [replace(s, sayings=tuple(replace(each, at=each.at + seconds) for each in s.sayings)) for s in every]


async def produce(log: Log, every: Sequence[Session], sent: Sent, *, now: Callable[[], float]) -> None:
    """Send all records at their times, each session's in order. Repeat each until the log has acknowledged it."""
    async with asyncio.TaskGroup() as group:
        for session in every:
            group.create_task(_converse(log, session, sent, now))


async def _converse(log: Log, session: Session, sent: Sent, now: Callable[[], float]) -> None:
    for saying in session.sayings:
        await asyncio.sleep(saying.at - now())
        await _until_acknowledged(log, session, saying, sent)
        sent.late = max(sent.late, now() - saying.at)
        _note(session, saying, sent)


async def _until_acknowledged(log: Log, session: Session, saying: Saying, sent: Sent) -> None:
    """Send a record until it is acknowledged. After a time-out it may have arrived; its repetition is a duplicate."""
    while True:
        try:
            await log.append(TURNS.name, key=session.key.encode() if session.keyed else None, value=saying.value)
            return
        except Transient:
            sent.counted["sent again"] += 1
            await asyncio.sleep(AGAIN_AFTER)


def _note(session: Session, saying: Saying, sent: Sent) -> None:
    sent.records += 1
    if saying.turn_id is None:
        sent.counted["unreadable"] += 1
        return
    name = (session.key, saying.turn_id)
    sent.counted["twice"] += name in sent.turns
    sent.counted["without key"] += not session.keyed
    sent.turns.add(name)
    sent.sessions.add(session.key)
    sent.users.add((session.tenant, session.user))
    sent.tenants.add(session.tenant)
    if saying.unspeakable:
        sent.unspeakable.add(name)
