"""The verdict on a soak. The functions are pure, except the history checker, which reads log and store."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from bench.soak.edits import Editor, edit_verdict
from bench.soak.hostile import Attacked, attack_verdict, leaks, unsafe_payload
from bench.soak.sampling import Used
from bench.soak.traffic import TENANTS, Sent
from bench.soak.world import World
from memstream.adapters.completions.offline import NAME as OFFLINE_MODEL
from memstream.adapters.vectors.store import QdrantStore
from memstream.cli.wiring.settings import load
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.topics import TURNS
from memstream.streams.log.port import Log
from memstream.verification import Expected, HistoryScope, InvariantVerdict, Violation, read_history, verify
from tests.support.verification import store_of

WARM_UP = 300.0
"""Warm-up of a process in seconds, ignored by its slope: imports, growth of the heap, and RocksDB's caches and
write buffers, which fill within some minutes at the soak's rate.
"""
AT_LEAST = 240.0
"""Minimum length in seconds of a line whose slope is judged."""
LIMIT = 1.0
"""Maximum slope in MB per minute."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The line fitted to a process's memory over the last half of the soak, without its warm-up."""

    name: str
    pid: int
    began: float
    ended: float
    mb_a_minute: float | None
    """The slope; None when the line is too short."""
    first: float
    """Memory in MB at the beginning of the line."""
    last: float
    most: float

    @property
    def within(self) -> bool:
        return self.mb_a_minute is None or self.mb_a_minute <= LIMIT


def slopes(used: Sequence[Used], *, half: float, end: float, names: Sequence[str]) -> list[Slope]:
    """Return one slope per process; a restarted worker is a new process. `half` and `end` are seconds of the soak."""
    found: list[Slope] = []
    mine = sorted((each for each in used if each.name in names), key=lambda each: (each.name, each.pid, each.at))
    for (name, pid), samples in groupby(mine, key=lambda each: (each.name, each.pid)):
        life = list(samples)
        line = [each for each in life if max(half, life[0].at + WARM_UP) <= each.at <= end]
        slope = None
        if line and line[-1].at - line[0].at >= AT_LEAST:
            fit = statistics.linear_regression([each.at / 60 for each in line], [each.rss for each in line])
            slope = fit.slope
        shown = line or life
        found.append(
            Slope(name, pid, shown[0].at, shown[-1].at, slope, shown[0].rss, shown[-1].rss, max(e.rss for e in life))
        )
    return found


def lag_verdict(lag: Mapping[str, int], gone_after: float | None) -> InvariantVerdict:
    """Judge I8 from the samples taken while the workers ran.

    After they have stopped, it cannot be judged: a reminder that was sent during the stop waits in the log for the next
    workers.
    """
    left: tuple[Violation, ...] = ()
    if gone_after is None:
        left = tuple(Violation(f"{what}: {n}") for what, n in lag.items() if n) or (Violation("never zero for long"),)
    return InvariantVerdict("I8", "lag comes back to zero", len(lag), left)


async def history_verdicts(
    world: World, sent: Sent, attacked: Attacked, every: Sequence[Editor]
) -> tuple[InvariantVerdict, ...]:
    """Judge all other invariants, and the edits and attacks, over the whole log and the store."""
    policy = load(config=world.folder / "memstream.toml")[1]
    log = world.log()
    await log.start()
    try:
        async with store_of(world.environment()) as store:
            history = await read_history(log=log, store=store, scope=HistoryScope(policy=policy))
            exposed = await _exposed(world, log, store)
    finally:
        await log.close()
    verdicts = verify(
        history,
        Expected(
            policy=policy,
            tier="standard",
            free_models=frozenset((OFFLINE_MODEL,)),
            acknowledged=frozenset(sent.turns),
            refused_by_model=frozenset(sent.unspeakable),
        ),
    )
    return (
        *(each for each in verdicts if each.invariant != "I8"),
        edit_verdict(every, history),
        attack_verdict(attacked, history),
        exposed,
    )


async def _exposed(world: World, log: Log, store: QdrantStore) -> InvariantVerdict:
    """Search topics, changelogs, collections and logs for secrets, forgeries, instructions and invisible characters.

    memory.turns is left out, because it has the turns as producers sent them.
    """
    found: Counter[str] = Counter()
    checked = 0
    for topic in await log.topics():
        if topic == TURNS.name or topic.startswith("__"):
            continue
        async for record in log.read(topic):
            checked += 1
            headers = b"\n".join(value for _, value in record.headers)
            found.update(leaks(topic, b"\n".join((record.key or b"", record.value or b"", headers))))
    for collection in COLLECTIONS:
        if not await store.exists(collection.name):
            continue
        for tenant in TENANTS:
            for point in await store.select(collection.name, tenant_id=tenant):
                checked += 1
                found.update(unsafe_payload(collection.name, point.payload))
    for path in world.folder.glob("*.log"):
        checked += 1
        found.update(leaks(path.name, path.read_bytes()))
    violations = tuple(Violation(f"{what}, {count} times") for what, count in sorted(found.items()))
    return InvariantVerdict("exposed", "no secret in clear, nothing forged, no order in memory", checked, violations)
