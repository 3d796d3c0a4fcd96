"""R10: time until an edit is applied and the next read of the same session shows it; and edits per second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memstream.adapters.ports import VectorStore
from memstream.recall.record_reader import RecordReader
from memstream.schemas.commands import SessionRef
from memstream.schemas.edits.blocks import BlockRethink
from memstream.schemas.edits.facts import FactRemember
from memstream.schemas.turns import Owner
from memstream.streams.senders.commands import CommandSender
from memstream.tools.editor import EditTarget, MemoryEditor

from .freshness import opened_store, start_all
from .report import Figure
from .turns import TENANT, percentile
from .world import World

TARGETS = {"kafka": 150.0, "embedded": 60.0}
"""Milliseconds, p95."""
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    edits: int
    together: int
    """Number of concurrent edits in the measurement of edits per second."""


FULL = Load(edits=100, together=8)
QUICK = Load(edits=3, together=2)


async def measure(world: World, load: Load) -> list[Figure]:
    start_all(world)
    editor = MemoryEditor(commands=CommandSender(world.log, "bench"), now=lambda: datetime.now(UTC))
    async with opened_store(world) as store:
        await _block(editor, store, "warm")
        await _fact(editor, store, "warm")
        blocks = [await _block(editor, store, f"b{n}") for n in range(load.edits)]
        facts = [await _fact(editor, store, f"f{n}") for n in range(load.edits)]
        began = time.perf_counter()
        for at in range(0, load.edits, load.together):
            await asyncio.gather(*(_block(editor, store, f"t{n}") for n in range(at, at + load.together)))
        rate = load.edits / (time.perf_counter() - began)
    await world.stop()
    return [
        _figure(world, "a block of a session written → read", blocks),
        _figure(world, "a fact remembered → read", facts),
        Figure(
            ratio="R10",
            what=f"edits a second, {load.together} at once",
            on=world.kind,
            value=rate,
            unit="1/s",
            target=None,
            better="higher",
        ),
    ]


async def _block(editor: MemoryEditor, store: VectorStore, mark: str) -> float:
    """Write a block in a separate session, read it, and return the seconds."""
    began = time.perf_counter()
    target = EditTarget(TENANT, session=SessionRef(user_id="u1", session_id=mark))
    edit = BlockRethink(name="Task", value=mark)
    answer = await editor.edit("blocks.rethink", edit, target=target, caller="bench", patience=PATIENCE)
    assert answer.result is not None
    held = await RecordReader(store=store).holdings(TENANT, "u1", mark)
    assert held is not None
    assert held.blocks[0].value == mark
    return time.perf_counter() - began


async def _fact(editor: MemoryEditor, store: VectorStore, mark: str) -> float:
    began = time.perf_counter()
    owner = Owner(scope="user", id=f"user of {mark}")
    edit = FactRemember(content=f"Likes tea number {mark}")
    answer = await editor.edit(
        "facts.remember", edit, target=EditTarget(TENANT, owner=owner), caller="bench", patience=PATIENCE
    )
    assert answer.result is not None
    fact_id = str(answer.result.to_payload()["fact_id"])
    assert await RecordReader(store=store).fact(TENANT, fact_id) is not None
    return time.perf_counter() - began


def _figure(world: World, what: str, seconds: Sequence[float]) -> Figure:
    return Figure(
        ratio="R10",
        what=f"{what}, p95",
        on=world.kind,
        value=1_000 * percentile(list(seconds), 0.95),
        unit="ms",
        target=TARGETS[world.kind],
        better="lower",
        detail={"p50": 1_000 * percentile(list(seconds), 0.5), "edits": len(seconds)},
    )
