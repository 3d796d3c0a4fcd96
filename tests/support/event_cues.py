"""The corpus of cues whose time is an event of the user's own memory, and for each cue the record that answers it.

Half of the cues of `en` and `de` were written before the code (`written` is `before`), half after it; five defects that
the second half showed were then mended. The cues of `de-2` were written after that, without a change of the code since.
`python -m tests.support.event_cues` prints how many cues have the right message first and how many have it before its
twin (the message of the same topic at another time), with the events and without.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.memory.recall.cue_times import CueTime
from memstream.recall.deadline import DeadlineReads
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.schemas.facts import Evidence
from memstream.schemas.turns import Owner
from tests.support.stored_memory import StoredMemory

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "event_cues"
LIVES = ("en", "de", "de-2")
Written = Literal["before", "after"]
OBSERVATION = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class EventCue:
    text: str
    right: str
    """The content of the message that answers it."""
    twin: str
    """The content of the message of the same topic at another time."""
    written: Written


@dataclass(frozen=True)
class Life:
    name: str
    language: str
    now: datetime
    facts: tuple[dict[str, Any], ...]
    messages: dict[str, tuple[str, datetime]]
    cues: tuple[EventCue, ...]


def load_life(name: str) -> Life:
    row: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    messages = {each["id"]: (each["content"], datetime.fromisoformat(each["at"])) for each in row["messages"]}
    cues = tuple(
        EventCue(each["cue"], messages[each["right"]][0], messages[_twin(each["right"])][0], each["written"])
        for each in row["cues"]
    )
    return Life(name, row["language"], datetime.fromisoformat(row["now"]), tuple(row["facts"]), messages, cues)


def _twin(message_id: str) -> str:
    topic, number = message_id.split("/")
    return f"{topic}/{3 - int(number)}"


async def store_life(life: Life, store: VectorStore) -> RecallRequest:
    """Store the records, in a tenant of the life. Return the request of their owner."""
    memory, owner = StoredMemory(store), Owner(scope="user", id="u1")
    stored: dict[str, str] = {}
    for each in life.facts:
        begin = datetime.fromisoformat(each["valid_from"])
        said = Evidence(
            turn_id="t1", session_id="s1", observation_id=OBSERVATION, occurred_at=begin, quote=each["content"]
        )
        fields = {name: each[name] for name in ("state", "slot", "category", "valid_from_told")}
        times = {"valid_from": begin, "recorded_at": begin, "evidence": (said,)}
        if each["valid_to"]:
            times["valid_to"] = datetime.fromisoformat(each["valid_to"])
        follows = stored.get(each["supersedes"])
        stored[each["id"]] = await memory.fact(each["content"], tenant=life.name, supersedes=follows, **fields, **times)
    for content, at in life.messages.values():
        await memory.message(content, tenant=life.name, occurred_at=at)
    return RecallRequest(tenant_id=life.name, owner=owner, limit=5)


class WithoutEvents(RecallService):
    """A recall that reads no events."""

    async def _event_time(
        self, request: RecallRequest, now: datetime, parts: DeadlineReads, collections: Collection[str]
    ) -> CueTime | None:
        return None


@dataclass(frozen=True)
class Found:
    cue: EventCue
    contents: tuple[str, ...]
    """The messages that were found, best first."""

    @property
    def is_first(self) -> bool:
        return self.contents[:1] == (self.cue.right,)

    @property
    def is_before_twin(self) -> bool:
        return next((each for each in self.contents if each in (self.cue.right, self.cue.twin)), None) == self.cue.right


async def find_messages(life: Life, request: RecallRequest, recall: RecallService) -> list[Found]:
    """Return what is found for each cue."""
    reads = [(cue, replace(request, cue=cue.text, tiers=("turns",), limit=len(life.messages))) for cue in life.cues]
    results = [(cue, await recall.recall(read, now=life.now)) for cue, read in reads]
    return [Found(cue, tuple(each.item.content for each in result.items)) for cue, result in results]


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        for name in LIVES:
            life = load_life(name)
            request = await store_life(life, store)
            for kind in (WithoutEvents, RecallService):
                recall = kind(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(), locale=life.language)
                found = await find_messages(life, request, recall)
                for written in get_args(Written):
                    half = [each for each in found if each.cue.written == written]
                    first, before = sum(each.is_first for each in half), sum(each.is_before_twin for each in half)
                    print(name, kind.__name__, written, f"first {first}, before its twin {before}, of {len(half)}")
                print("   not first:", [each.cue.text for each in found if not each.is_first])
        await store.close()


if __name__ == "__main__":
    asyncio.run(_measure())
