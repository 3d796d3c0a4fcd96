"""The corpus of cues whose time is an event of the user's own memory, and for each cue the record that answers it.

Half of the cues of a language were written before the code (`written` is `before`), half after it, without a change of
the code since. `python -m tests.support.event_cues` prints both halves, with the events and without.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

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
LANGUAGES = ("en", "de")
Written = Literal["before", "after"]
OBSERVATION = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class EventCue:
    text: str
    right: str
    """The content of the message that answers it."""
    written: Written


@dataclass(frozen=True)
class Life:
    language: str
    now: datetime
    facts: tuple[dict[str, Any], ...]
    messages: dict[str, tuple[str, datetime]]
    cues: tuple[EventCue, ...]


def load_life(language: str) -> Life:
    row: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    messages = {each["id"]: (each["content"], datetime.fromisoformat(each["at"])) for each in row["messages"]}
    cues = tuple(EventCue(each["cue"], messages[each["right"]][0], each["written"]) for each in row["cues"])
    return Life(language, datetime.fromisoformat(row["now"]), tuple(row["facts"]), messages, cues)


async def store_life(life: Life, store: VectorStore) -> RecallRequest:
    """Store the records, in a tenant of the language. Return the request of their owner."""
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
        stored[each["id"]] = await memory.fact(
            each["content"], tenant=life.language, supersedes=follows, **fields, **times
        )
    for content, at in life.messages.values():
        await memory.message(content, tenant=life.language, occurred_at=at)
    return RecallRequest(tenant_id=life.language, owner=owner, limit=5)


class WithoutEvents(RecallService):
    """A recall that reads no events."""

    async def _event_time(
        self, request: RecallRequest, now: datetime, parts: DeadlineReads, collections: Collection[str]
    ) -> CueTime | None:
        return None


async def event_ranks(life: Life, request: RecallRequest, recall: RecallService) -> dict[EventCue, int | None]:
    """Return the rank of the right message among the messages for each cue, from 0; None when it is not found."""
    found: dict[EventCue, int | None] = {}
    for cue in life.cues:
        items = (await recall.recall(replace(request, cue=cue.text, tiers=("turns",)), now=life.now)).items
        found[cue] = next((place for place, each in enumerate(items) if each.item.content == cue.right), None)
    return found


def best_of(found: dict[EventCue, int | None], written: Written) -> int:
    """Return how many cues of the half have their message first."""
    return sum(rank == 0 for cue, rank in found.items() if cue.written == written)


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        for language in LANGUAGES:
            life = load_life(language)
            request = await store_life(life, store)
            for kind in (WithoutEvents, RecallService):
                recall = kind(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(), locale=language)
                found = await event_ranks(life, request, recall)
                print(language, kind.__name__, {half: best_of(found, half) for half in ("before", "after")}, len(found))
                print("   not first:", [f"{cue.text} {rank}" for cue, rank in found.items() if rank != 0])
        await store.close()


if __name__ == "__main__":
    asyncio.run(_measure())
