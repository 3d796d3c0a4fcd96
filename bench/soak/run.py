"""One soak, from the first process to the last verdict."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import aiohttp
import structlog

from bench.soak import edits, faults, growth, hostile, sampling, schedule, traffic
from bench.soak.verdict import Slope, history_verdicts, lag_verdict, slopes
from bench.soak.volumes import Size, volumes
from bench.soak.workers import Ended
from bench.soak.world import SESSION_TIMEOUT, World, running
from memstream.client import connect
from memstream.schemas.errors import Transient
from memstream.schemas.topics import STAGES
from memstream.verification import InvariantVerdict

log = structlog.get_logger(__name__)

CALL_TIMEOUT = 30.0
"""Time-out in seconds of an editor's call, including the wait for its result."""
START_WITHIN = 300.0
STARTING = 20.0
"""Seconds in which a new process imports its modules and joins its group."""
LAG_GONE_WITHIN = 180.0
"""Maximum seconds until no lag after the last record: three observe patiences of a deferred turn, one breaker pause,
and the recovery of a restarted worker's table.
"""
SETTLED_LOOKS = 3
"""Number of consecutive checks that must find no lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of a soak. `rate` in turns per second."""

    minutes: float
    sessions: int
    rate: float
    seed: int
    embedded: bool
    grow_to: int | None = None
    """The partition count after the middle of the load; None for no growth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The results of a soak."""

    wanted: Wanted
    at: datetime
    seconds: float
    sent: traffic.Sent
    attacked: hostile.Attacked
    editors: Sequence[edits.Editor]
    struck: Sequence[faults.Struck]
    samples: sampling.Samples
    ends: Sequence[Ended]
    lag: dict[str, int]
    """Lag by stage at the end."""
    lag_gone_after: float | None
    """Seconds until no lag after the last record; None if there was lag at the deadline."""
    slopes: Sequence[Slope]
    verdicts: Sequence[InvariantVerdict]
    model: dict[str, object]
    volumes: Sequence[Size]
    grown: growth.Grown | None = None

    def broken(self) -> list[str]:
        """Return the violated invariants and limits; empty when the soak passed."""
        found = [
            f"{verdict.invariant}: {len(verdict.violations)} violations, the first: {verdict.violations[0].what}"
            for verdict in self.verdicts
            if not verdict.ok
        ]
        found += [
            f"{end.seat} ended by itself with {end.code} at {end.at:.0f} s" for end in self.ends if not end.as_it_should
        ]
        found += [
            f"{slope.name} (pid {slope.pid}) grew by {slope.mb_a_minute:.2f} MB a minute"
            for slope in self.slopes
            if not slope.within
        ]
        if len(self.sent.sessions) < self.wanted.sessions:
            found.append(f"only {len(self.sent.sessions)} of {self.wanted.sessions} sessions came to speak")
        return found

    def edits_by_kind(self) -> Counter[str]:
        return sum((editor.kinds for editor in self.editors), Counter[str]())

    def faults_by_kind(self) -> Counter[str]:
        return Counter(each.kind for each in self.struck)

    def as_json(self) -> dict[str, object]:
        """Return all results except the samples, in a form for JSON."""
        return {
            "at": self.at.isoformat(timespec="seconds"),
            **asdict(self.wanted),
            "seconds": round(self.seconds, 1),
            "turns": len(self.sent.turns),
            "records": self.sent.records,
            "sessions_seen": len(self.sent.sessions),
            "users": len(self.sent.users),
            "tenants": len(self.sent.tenants),
            "sent": dict(self.sent.counted),
            "edits": dict(self.edits_by_kind()),
            "attacks": dict(self.attacked.counted),
            "acknowledged_late_by": round(self.sent.late, 1),
            "faults": [asdict(each) for each in self.struck],
            "ends": [asdict(each) for each in self.ends],
            "lag_at_the_end": self.lag,
            "lag_gone_after": self.lag_gone_after,
            "slopes": [asdict(each) for each in self.slopes],
            "invariants": {
                each.invariant: {
                    "checked": each.checked,
                    "notes": each.notes,
                    "violations": [asdict(one) for one in each.violations[:50]],
                }
                for each in self.verdicts
            },
            "model": self.model,
            "cpu_seconds": self.cpu_by_name(),
            "cpu_ms_a_turn": self.cpu_a_turn(),
            "volumes": [asdict(each) for each in self.volumes],
            "grown": asdict(self.grown) if self.grown is not None else None,
            "broken": self.broken(),
        }

    def cpu_by_name(self) -> dict[str, float]:
        """Return the CPU seconds of each seat or server over all of its processes."""
        most: dict[tuple[str, int], float] = {}
        for each in self.samples.used:
            most[each.name, each.pid] = each.cpu
        total: Counter[str] = Counter()
        for (name, _), cpu in most.items():
            total[name] += cpu  # type: ignore[assignment]
        return {name: round(cpu, 1) for name, cpu in total.items()}

    def cpu_a_turn(self) -> dict[str, float]:
        """Return the CPU milliseconds per turn, by stage and server, without the starts of processes."""
        total: Counter[str] = Counter()
        used = sorted(self.samples.used, key=lambda each: (each.name, each.pid, each.at))
        for (name, _), samples in groupby(used, key=lambda each: (each.name, each.pid)):
            life = list(samples)
            started = next((each for each in life if each.at - life[0].at >= STARTING), None)
            if started is not None:
                stage = next((stage for stage in STAGES if name.startswith(stage)), name)
                total[stage] += life[-1].cpu - started.cpu  # type: ignore[assignment]
        return {name: round(1_000 * cpu / max(1, len(self.sent.turns)), 2) for name, cpu in sorted(total.items())}


async def soak(wanted: Wanted, folder: Path) -> Found:
    """Run a soak. Raises errors of the soak itself; violations are in Found."""
    seconds = wanted.minutes * 60
    plan = schedule.planned(
        seed=wanted.seed,
        seconds=seconds - 10,
        session_timeout=SESSION_TIMEOUT,
        bag=schedule.EMBEDDED_BAG if wanted.embedded else schedule.BAG,
    )
    every = list(traffic.sessions(seed=wanted.seed, seconds=seconds, count=wanted.sessions, rate=wanted.rate))
    hostilities = list(hostile.attacks(seed=wanted.seed, seconds=seconds))
    at = datetime.now(UTC)
    sent, struck, samples = traffic.Sent(), list[faults.Struck](), sampling.Samples()
    attacked, editors = hostile.Attacked(), edits.editors(wanted.seed)

    async def load(
        until: float, sessions: Sequence[traffic.Session], attacks: Sequence[hostile.Attack], plan: list[schedule.Fault]
    ) -> None:
        """Run sessions, attackers and editors while the faults occur."""
        producing = world.log()
        await producing.start()
        try:
            async with connect(world.server, timeout=CALL_TIMEOUT) as memory, asyncio.TaskGroup() as group:
                for work in (
                    traffic.produce(producing, sessions, sent, now=world.now),
                    hostile.attack(producing, attacks, sent, attacked, now=world.now),
                    edits.edit_until(until, memory.api, editors, sent, now=world.now),
                    faults.strike(world, plan, struck),
                ):
                    group.create_task(work)
        finally:
            await producing.close()

    async with running(folder=folder, seed=wanted.seed, embedded=wanted.embedded) as world:
        world.fill_seats()
        await _all_ready(world)
        world.clock = time.monotonic()
        log.info("soak_began", sessions=len(every), turns=sum(len(each.sayings) for each in every), faults=len(plan))
        async with _beside(sampling.sample(world, samples)):
            grown = None
            if wanted.grow_to is None:
                await load(seconds, every, hostilities, plan)
            else:
                early, late = traffic.parts(every, seconds / 2)
                early_faults, late_faults = schedule.parts(plan, seconds / 2)
                first, second = hostile.parts(hostilities, seconds / 2)
                await load(seconds / 2, early, first, early_faults)
                await _drained(world)
                grown = await growth.grow(world, wanted.grow_to, drain=lambda: _drained(world))
                await _all_ready(world)
                pause = world.now() - seconds / 2
                late, late_faults = traffic.later(late, pause), schedule.later(late_faults, pause)
                await load(seconds + pause, late, hostile.later(second, pause), late_faults)
            ended = world.now()
            log.info("producing_stopped", turns=len(sent.turns), at=round(ended, 1))
            gone, lag = await _until_no_lag(world)
            async with connect(world.server, timeout=CALL_TIMEOUT) as memory:
                await edits.look(memory.api, editors)
        log.info("lag", gone_after=gone, **lag)
        model = await world.model_counts()
        seats = [*world.left_seats, *world.seats]
        await world.stop_workers()
        verdicts = [*await history_verdicts(world, sent, attacked, editors), lag_verdict(lag, gone)]
        verdicts.sort(key=lambda each: each.invariant)
        sizes = await volumes(world)
        return Found(
            wanted=wanted,
            at=at,
            seconds=ended,
            sent=sent,
            attacked=attacked,
            editors=editors,
            struck=struck,
            samples=samples,
            ends=[end for seat in seats for end in seat.ends],
            lag=lag,
            lag_gone_after=gone,
            slopes=slopes(samples.used, half=ended / 2, end=ended, names=sorted({seat.name for seat in seats})),
            verdicts=verdicts,
            model=model,
            volumes=sizes,
            grown=grown,
        )


@asynccontextmanager
async def _beside(work: object) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    try:
        yield
    finally:
        if task.done():
            task.result()  # it ends only with an error
        task.cancel()
        await asyncio.wait([task])


async def _all_ready(world: World) -> None:
    """Return when every worker is ready. Raises RuntimeError after START_WITHIN, with the reasons of the others."""
    said = {seat.name: "nothing yet" for seat in world.seats}
    try:
        async with asyncio.timeout(START_WITHIN), aiohttp.ClientSession() as http:
            while said:
                for seat in [each for each in world.seats if each.name in said]:
                    answer = await _readiness(http, seat.health_port)
                    if answer is None:
                        del said[seat.name]
                    else:
                        said[seat.name] = answer
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise RuntimeError(f"not ready within {START_WITHIN:g} s: {said}") from None


async def _readiness(http: aiohttp.ClientSession, port: int) -> str | None:
    """Return the reason why a worker is not ready; None when it is ready."""
    try:
        async with http.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return None if answer.status == 200 else await answer.text()
    except aiohttp.ClientError as error:
        return repr(error)


async def _drained(world: World) -> None:
    await _all_ready(world)
    gone, lag = await _until_no_lag(world)
    if gone is None:
        raise RuntimeError(f"the lag of {lag} does not go away, so the partitions cannot grow")


async def _until_no_lag(world: World) -> tuple[float | None, dict[str, int]]:
    """Return the seconds until no stage had lag and no turn waited, and what remains. None: not before the deadline."""
    began = time.monotonic()
    looking = world.log(timeout=10.0)
    await looking.start()
    http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=sampling.ASKED_WITHIN))
    try:
        found: dict[str, int] = {}
        quiet, since = 0, 0.0
        while quiet < SETTLED_LOOKS:
            passed = time.monotonic() - began
            if passed > LAG_GONE_WITHIN:
                return None, found
            try:
                found = await sampling.lags(looking)
                found["waiting turns"] = await sampling.waiting_turns(http, world)
            except (Transient, aiohttp.ClientError, TimeoutError):
                quiet = 0
                await asyncio.sleep(0.5)
                continue
            if any(found.values()):
                quiet = 0
            else:
                since = passed if quiet == 0 else since
                quiet += 1
            await asyncio.sleep(0.5)
        return round(since, 1), found
    finally:
        await http.close()
        await looking.close()
