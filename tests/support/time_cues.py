"""The corpus of cues with time words: one person's year, and for each cue the record that answers it.

The cues were written before the ranking that they measure. Every other cue tunes it (`half`).
`python -m tests.support.time_cues` prints both halves, with the time words and without.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.memory.recall.cue_times import CueTime
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.schemas.facts import Evidence
from memstream.schemas.turns import Owner
from tests.support.stored_memory import StoredMemory

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "time_cues"
LANGUAGES = ("en", "de")
Half = Literal["tune", "test"]


@dataclass(frozen=True)
class TimeCue:
    text: str
    right: str
    """The content of the record that answers it."""
    half: Half


@dataclass(frozen=True)
class Year:
    language: str
    now: datetime
    records: dict[str, tuple[str, str, datetime]]
    """By id the kind (`messages` or `facts`), the content and the time."""
    cues: tuple[TimeCue, ...]


def load_year(language: str) -> Year:
    row: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    records = {
        each["id"]: (kind, each["content"], datetime.fromisoformat(each["at"]))
        for kind in ("messages", "facts")
        for each in row[kind]
    }
    cues = tuple(
        TimeCue(each["cue"], records[each["right"]][1], "test" if place % 2 else "tune")
        for place, each in enumerate(row["cues"])
    )
    return Year(language, datetime.fromisoformat(row["now"]), records, cues)


async def store_year(year: Year, store: VectorStore) -> RecallRequest:
    """Store the records, each in a tenant of the language. Return the request of its owner."""
    memory, owner = StoredMemory(store), Owner(scope="user", id="u1")
    for kind, content, at in year.records.values():
        if kind == "messages":
            await memory.message(content, tenant=year.language, occurred_at=at)
            continue
        said = Evidence(turn_id="t1", session_id="s1", observation_id=OBSERVATION, occurred_at=at, quote=content)
        times = {"valid_from": at, "recorded_at": at, "evidence": (said,)}
        await memory.fact(content, tenant=year.language, category="event", **times)
    return RecallRequest(tenant_id=year.language, owner=owner, limit=5)


OBSERVATION = "00000000-0000-4000-8000-000000000001"


class WithoutTimes(RecallService):
    """A recall that reads no time words."""

    def _named_time(self, request: RecallRequest, now: datetime) -> CueTime | None:
        return None


async def ranks(year: Year, request: RecallRequest, recall: RecallService) -> dict[TimeCue, int | None]:
    """Return the rank of the right record for each cue, from 0; None when it is not among five."""
    found: dict[TimeCue, int | None] = {}
    for cue in year.cues:
        items = (await recall.recall(replace(request, cue=cue.text), now=year.now)).items
        found[cue] = next((place for place, each in enumerate(items) if each.item.content == cue.right), None)
    return found


def first(found: dict[TimeCue, int | None], half: Half, *, within: int = 1) -> int:
    """Return how many cues of the half have their record among the first."""
    return sum(rank is not None and rank < within for cue, rank in found.items() if cue.half == half)


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        for language in LANGUAGES:
            year = load_year(language)
            request = await store_year(year, store)
            for kind in (WithoutTimes, RecallService):
                recall = kind(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(), locale=language)
                found = await ranks(year, request, recall)
                halves = {half: [first(found, half), first(found, half, within=3)] for half in ("tune", "test")}
                print(language, kind.__name__, "first, among three (of 15):", halves)
                wrong = [f"{cue.text} {rank}" for cue, rank in found.items() if cue.half == "tune" and rank != 0]
                print("   tuning cues not first:", wrong)
        await store.close()


if __name__ == "__main__":
    asyncio.run(_measure())
