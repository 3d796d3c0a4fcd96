"""A whole run as data: every record of every topic and every point of every collection, as the checker reads them.

`real_run` makes one: all stages in this process, on a folder, with a scripted model. Tests remove something from a
copy, or add something, and the checker has to report it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from memstream.adapters.ports import StoredPoint, VectorStore
from memstream.cli.wiring.local_stages import LocalStages, local_stages
from memstream.cli.wiring.settings import Settings
from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.schemas import ids
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.topics import STAGES, TURNS, catalogue, group_of, read_by
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Log, Position, Record
from memstream.verification import Expected, History, HistoryScope, InvariantVerdict, read_history, verify
from tests.support.conversation import KNOWN, consolidated, conversation
from tests.support.model_server import Answer, Ask, ModelServer, garbage, observing
from tests.support.pipeline import Json, turn
from tests.support.polling import wait_for

PARTITIONS = 4
TENANTS = ("acme", "zeta")
REFUSED = "Say something that no model answers."
NO_JSON = b"\xff\xfe no json"
Fields = dict[str, Any]


@dataclass(repr=False)
class Dump:
    """The records and points of a run. Offsets are those of the run; `ends` stay when a record is taken out."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    ends: dict[str, list[int]] = field(default_factory=dict)
    starts: dict[str, list[int]] = field(default_factory=dict)
    committed: dict[tuple[str, str], list[int | None]] = field(default_factory=dict)
    points: dict[str, dict[str, Fields]] = field(default_factory=dict)

    def copy(self) -> Dump:
        return Dump(
            records={topic: list(records) for topic, records in self.records.items()},
            ends={topic: list(ends) for topic, ends in self.ends.items()},
            starts={topic: list(starts) for topic, starts in self.starts.items()},
            committed={which: list(offsets) for which, offsets in self.committed.items()},
            points={name: {each: dict(fields) for each, fields in of.items()} for name, of in self.points.items()},
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Shorten the representation, because hypothesis would print the whole dump."""
        printer.text("Dump()")

    # ------------------------------------------------------------------------------------------------ planting
    def drop(self, topic: str, which: Callable[[Fields], bool] = lambda fields: True) -> Record:
        """Remove the first record whose value fits, as if it had never arrived."""
        at = self.find(topic, which)
        return self.records[topic].pop(at)

    def find(self, topic: str, which: Callable[[Fields], bool] = lambda fields: True) -> int:
        for at, record in enumerate(self.records[topic]):
            if which(parsed(record.value)):
                return at
        raise AssertionError(f"no such record on {topic}")

    def edit(self, topic: str, change: Callable[[Fields], None], which: Callable[[Fields], bool]) -> None:
        """Change the value of the first record that fits."""
        at = self.find(topic, which)
        record = self.records[topic][at]
        fields = parsed(record.value)
        change(fields)
        self.records[topic][at] = replace(record, value=json.dumps(fields).encode())

    def append(self, record: Record, *, partition: int | None = None) -> Record:
        """Append a record at the end of its partition, committed by all readers."""
        topic = record.position.topic
        part = record.position.partition if partition is None else partition
        at = Position(topic, part, self.ends[topic][part])
        self.ends[topic][part] += 1
        added = replace(record, position=at)
        self.records[topic].append(added)
        for (_, read), offsets in self.committed.items():
            if read == topic:
                offsets[part] = self.ends[topic][part]
        return added

    def point(self, collection: str, which: Callable[[Fields], bool]) -> tuple[str, Fields]:
        return next((each, payload) for each, payload in self.points[collection].items() if which(payload))

    # ------------------------------------------------------------------------------------------------ checking
    async def history(self, **scope: Any) -> History:
        log, store = cast(Log, DumpLog(self)), cast(VectorStore, DumpStore(self))
        return await read_history(log=log, store=store, scope=HistoryScope(**scope))

    async def verdicts(self, *, tenant: str | None = None, **expected: Any) -> dict[str, InvariantVerdict]:
        history = await self.history(tenant=tenant)
        return {verdict.invariant: verdict for verdict in verify(history, Expected(**{"tier": "standard"} | expected))}

    async def broken(self, **expected: Any) -> set[str]:
        """Return the names of the violated invariants."""
        return {name for name, verdict in (await self.verdicts(**expected)).items() if not verdict.ok}


class DumpLog:
    """The reading methods of `Log` over a dump."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump

    async def partitions(self, topic: str) -> int | None:
        return len(self._dump.ends[topic]) if topic in self._dump.ends else None

    async def ends(self, topic: str) -> tuple[int, ...]:
        return tuple(self._dump.ends[topic])

    async def starts(self, topic: str) -> tuple[int, ...]:
        return tuple(self._dump.starts[topic])

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        return tuple(self._dump.committed[group, topic])

    async def read(self, topic: str, *, start: Mapping[int, int] | None = None) -> AsyncIterator[Record]:
        for record in sorted(self._dump.records[topic], key=lambda each: each.position.offset):
            position = record.position
            asked = 0 if start is None else start.get(position.partition)
            if asked is not None and position.offset >= max(asked, self._dump.starts[topic][position.partition]):
                yield record


class DumpStore:
    """The reading methods of `VectorStore` over a dump."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump

    async def exists(self, collection: str) -> bool:
        return collection in self._dump.points

    async def select(self, collection: str, *, tenant_id: str) -> list[StoredPoint]:
        points = self._dump.points[collection]
        return [StoredPoint(each, payload) for each, payload in points.items() if payload["tenant_id"] == tenant_id]


def parsed(value: bytes | None) -> Fields:
    try:
        fields = json.loads(value or b"")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


async def taken(log: Log, store: VectorStore) -> Dump:
    """Return a dump of a log and a store."""
    dump = Dump()
    for topic in catalogue():
        if await log.partitions(topic.name) is not None:
            dump.records[topic.name] = [record async for record in log.read(topic.name)]
            dump.ends[topic.name] = list(await log.ends(topic.name))
            dump.starts[topic.name] = list(await log.starts(topic.name))
    for stage in STAGES:
        for read in read_by(stage):
            dump.committed[group_of(stage), read.name] = list(await log.committed(group_of(stage), read.name))
    for spec in COLLECTIONS:
        found = [each for tenant in TENANTS for each in await store.select(spec.name, tenant_id=tenant)]
        dump.points[spec.name] = {each.id: dict(each.payload) for each in found}
    return dump


# ------------------------------------------------------------------------------------------------ a real run
def script(ask: Ask) -> Answer:
    """Answer as the model: observe the conversation, consolidate episodes, refuse one text."""
    if any(REFUSED in text for text in ask.turns.values()):
        return garbage()
    return observing(KNOWN, otherwise=consolidated)(ask)


async def real_run(folder: Path) -> Dump:
    """Run two tenants with the same ids, three sessions each.

    The run has duplicates, a misplaced turn, undecodable records, a turn that the model refuses and that is requeued,
    and a session whose turns still wait.
    """
    with ModelServer(script) as model:
        settings = Settings(
            broker=f"embedded://{folder}",
            qdrant=f"embedded://{folder}",
            datadir=folder,
            partitions=PARTITIONS,
            tier="standard",
            model="scripted-1",
            OPENAI_API_KEY=SecretStr("scripted"),
            OPENAI_BASE_URL=model.base_url,
        )
        async with local_stages(settings, MemoryPolicy(), purpose="test") as run:
            for tenant in TENANTS:
                await _converse(run.log, tenant)
            await _settled(run)
            await _trouble(run.log)
            await _settled(run)
        holding_back = MemoryPolicy(observe=ObservePolicy(unobserved_tokens=1_000_000))
        async with local_stages(settings, holding_back, purpose="test") as run:
            for n, text in enumerate(("I like green tea.", "I work at Google."), start=1):
                await send(run.log, turn(text, n, session="held", user="u1", tenant_id="acme"))
            for n, ends in enumerate((False, False, True), start=1):
                said = turn(f"I like green tea, part {n}.", n, session="round", tenant_id="acme")
                await send(run.log, said | {"ends_session": ends})
            await _settled(run)
            assert not model.script_errors
            return await taken(run.log, run.store)


async def _converse(log: Log, tenant: str) -> None:
    for fields in (conversation(tenant_id=tenant), conversation(tenant_id=tenant, user_id="u2")):
        for each in fields:
            await send(log, each)
    await send(log, turn("I like green tea.", 40, session="s2", tenant_id=tenant))


async def _trouble(log: Log) -> None:
    await send(log, conversation(tenant_id="acme")[0])  # again, under another offset
    astray = turn("I like green tea.", 50, session="astray", tenant_id="acme")
    right = partition_for(key_of(astray), PARTITIONS)
    await log.append(TURNS.name, key=None, value=json.dumps(astray).encode(), partition=(right + 1) % PARTITIONS)
    refused = turn(REFUSED, 51, tenant_id="acme")
    await send(log, refused)
    await send(log, turn("I like green tea, again.", 52, tenant_id="acme"))
    await log.append(TURNS.name, key=b"any", value=NO_JSON)
    await log.append(TURNS.name, key=b"any", value=None)
    await log.append(TURNS.name, key=b"any", value=json.dumps({"tenant_id": "acme", "turn_id": "t1"}).encode())
    for topic in ("memory.observations", "memory.commands"):
        await log.append(topic, key=b"any", value=NO_JSON)


def key_of(fields: Json) -> bytes:
    return ids.session_key(fields["tenant_id"], fields["user_id"], fields["session_id"]).encode()


async def send(log: Log, fields: Json) -> Position:
    return await log.append(TURNS.name, key=key_of(fields), value=json.dumps(fields).encode())


async def _settled(run: LocalStages, deadline: float = 60.0) -> None:
    quiet = 0

    def three_times_none(behind: Sequence[tuple[str, str]]) -> bool:
        nonlocal quiet
        quiet = 0 if behind else quiet + 1
        return quiet == 3

    await wait_for(lambda: _behind(run.log), "no lag three times", until=three_times_none, deadline=deadline)


async def _behind(log: Log) -> Sequence[tuple[str, str]]:
    return [
        (stage, topic.name)
        for stage in STAGES
        for topic in read_by(stage)
        if tuple(await log.ends(topic.name))
        != tuple(at or 0 for at in await log.committed(group_of(stage), topic.name))
    ]
