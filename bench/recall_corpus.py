"""Generated memories: any number of facts, a few episodes and messages for each queried owner, 384 dimensions.

Texts use a vocabulary with the word frequencies of a language (Zipf); vectors have a few thousand directions plus
noise, so that both words and meanings vary. The same seed gives the same memory.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from memstream.adapters.ports import EmbedderIdentity, Point, VectorStore
from memstream.schemas import ids
from memstream.schemas.collections import EPISODES, FACTS, TURNS
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import Evidence, StoredFact
from memstream.schemas.turns import Owner
from memstream.schemas.working_set import StoredMessage

DIMENSION: Final = 384
VOCABULARY: Final = 20_000
WORDS: Final = 9
DIRECTIONS: Final = 4_096
BATCH: Final = 500
EACH: Final = 1_000
"""Number of facts per owner in a memory of many owners."""
ASKED: Final = 10
"""Number of queried owners in a memory of many owners. Only these have episodes and messages."""
EPISODES_EACH: Final = 200
MESSAGES_EACH: Final = 1_000
NOW: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
IDENTITY: Final = EmbedderIdentity(name="bench", dimension=DIMENSION)


@dataclass(frozen=True, slots=True)
class Whose:
    """The owner of a memory."""

    tenant_id: str
    user_id: str

    @property
    def owner(self) -> Owner:
        return Owner(scope="user", id=self.user_id)

    @property
    def key(self) -> str:
        return self.owner.key(self.tenant_id)


@dataclass(frozen=True, slots=True)
class Cue:
    whose: Whose
    text: str
    vector: list[float]


class Texts:
    """Sentences and their vectors."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._share = 1.0 / np.arange(1, VOCABULARY + 1)
        self._share /= self._share.sum()
        self._directions = self._random.standard_normal((DIRECTIONS, DIMENSION)).astype(np.float32)

    def batch(self, count: int) -> list[tuple[str, list[float]]]:
        numbers = self._random.choice(VOCABULARY, size=(count, WORDS), p=self._share)
        near = self._directions[self._random.integers(0, DIRECTIONS, count)]
        vectors = near + 0.6 * self._random.standard_normal((count, DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        texts = (" ".join(f"w{number}" for number in row) for row in numbers)
        return list(zip(texts, vectors.tolist(), strict=True))


class Embedded:
    """An `Embedder` that knows the vectors of its cues, so that no model's time is measured."""

    def __init__(self, cues: Sequence[Cue]) -> None:
        self._vectors = {cue.text: cue.vector for cue in cues}

    @property
    def identity(self) -> EmbedderIdentity:
        return IDENTITY

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        return [self._vectors[text] for text in texts]

    async def close(self) -> None:
        return None


async def fill(
    store: VectorStore, *, facts: int, owners: Sequence[Whose], messages: int = MESSAGES_EACH, seed: int = 7
) -> float:
    """Write the facts, spread evenly over the owners, and `messages` for each queried owner. Return the seconds."""
    began, texts = time.monotonic(), Texts(seed)
    whose = itertools.cycle(owners)
    for size in _batches(facts):
        await store.insert(FACTS, [_fact(next(whose), *each) for each in texts.batch(size)])
    for one in owners[:ASKED]:
        for size in _batches(EPISODES_EACH):
            await store.insert(EPISODES, [_episode(one, *each) for each in texts.batch(size)])
        for size in _batches(messages):
            await store.insert(TURNS, [_message(one, *each) for each in texts.batch(size)])
    return time.monotonic() - began


def cues(count: int, *, owners: Sequence[Whose], seed: int = 11) -> list[Cue]:
    whose = itertools.cycle(owners[:ASKED])
    return [Cue(next(whose), text, vector) for text, vector in Texts(seed).batch(count)]


def _batches(count: int) -> Iterator[int]:
    return (min(BATCH, count - done) for done in range(0, count, BATCH))


# ------------------------------------------------------------------------------------------------ records
def _fact(whose: Whose, text: str, vector: list[float]) -> Point:
    """Build a payload like a record's, without the cost of validating a million payloads."""
    observation = str(uuid.uuid4())
    identity = ids.fact_id(whose.key, observation)
    payload = _FACT | {
        "fact_id": identity,
        **_of(whose),
        "content": text,
        "content_hash": ids.content_hash(text),
        "recorded_at": _ago(identity),
        "applied": [observation],
        "evidence": [_EVIDENCE | {"observation_id": observation, "quote": text}],
    }
    return Point(identity, payload, dense=vector, text=text)


def _episode(whose: Whose, text: str, vector: list[float]) -> Point:
    observation = str(uuid.uuid4())
    identity = ids.episode_id(observation)
    payload = _EPISODE | {
        "episode_id": identity,
        **_of(whose),
        "observation_id": observation,
        "content": text,
        "content_hash": ids.content_hash(text),
        "occurred_at": _ago(identity),
    }
    return Point(identity, payload, dense=vector, text=text)


def _message(whose: Whose, text: str, vector: list[float]) -> Point:
    turn = str(uuid.uuid4())
    identity = ids.message_id(ids.session_key(whose.tenant_id, whose.user_id, "s1"), turn, 0)
    payload = _MESSAGE | {
        "message_id": identity,
        **_of(whose),
        "turn_id": turn,
        "content": text,
        "occurred_at": _ago(identity),
    }
    return Point(identity, payload, dense=vector, text=text, window=vector)


def _of(whose: Whose) -> dict[str, Any]:
    return {"tenant_id": whose.tenant_id, "owner_key": whose.key}


def _ago(identity: str) -> str:
    return (NOW - timedelta(minutes=int(identity[:4], 16))).isoformat().replace("+00:00", "Z")


def _payload(record: Any) -> dict[str, Any]:
    payload: dict[str, Any] = record.to_payload()
    return payload


_NIL: Final = str(uuid.UUID(int=0))
_EVIDENCE: Final = _payload(
    Evidence(turn_id="t1", session_id="s1", observation_id=_NIL, occurred_at=NOW, quote="as it was said")
)
_FACT: Final = _payload(
    StoredFact(
        fact_id=_NIL,
        version=1,
        tenant_id="t",
        owner=Owner(scope="user", id="u1"),
        subject="user",
        content="a statement",
        category="preference",
        confidence=0.8,
        state="active",
        valid_from=NOW - timedelta(days=90),
        recorded_at=NOW,
        embedder=IDENTITY.name,
        content_hash=ids.content_hash("a statement"),
        owner_key="t",
    )
)
_EPISODE: Final = _payload(
    StoredEpisode(
        episode_id=_NIL,
        tenant_id="t",
        owner=Owner(scope="user", id="u1"),
        session_id="s1",
        turn_id="t1",
        observation_id=_NIL,
        subject="user",
        content="an event",
        category="event",
        durability="persistent",
        importance=0.7,
        occurred_at=NOW,
        valid_from=NOW - timedelta(days=90),
        recorded_at=NOW,
        evidence="an event",
        content_hash=ids.content_hash("an event"),
        owner_key="t",
        user_id="u1",
    )
)
_MESSAGE: Final = _payload(
    StoredMessage(
        message_id=_NIL,
        message_index=0,
        role="user",
        content="some words",
        tenant_id="t",
        owner_key="t",
        user_id="u1",
        session_id="s1",
        turn_id="t1",
        occurred_at=NOW,
    )
)
