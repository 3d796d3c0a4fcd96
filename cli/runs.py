"""Commands that a person asks for: a run of consolidation, or the flush of a session. The command, its result, and the
verdicts of what it proposed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from ..memory.policies import MemoryPolicy
from ..schemas import ids
from ..schemas.cloudevents import CloudEvent
from ..schemas.commands import Command, CommandResult, SessionRef
from ..schemas.topics import COMMANDS, COMMANDS_SESSION, RESULTS, TURNS, StageName, Topic, group_of
from ..schemas.turns import Owner
from ..streams.partitioner import partition_for
from ..streams.ports import Log
from . import output
from .inprocess import stages_or_beside
from .settings import Settings

PATIENCE = 60.0
WAITING = "waiting"
LOOK_SECONDS = 0.1
Kind = Literal["consolidate", "prune", "digest", "hygiene", "compact"]


@dataclass(slots=True)
class Run:
    """What came of the command so far. `status` is that of its result; `waiting` until there is one."""

    run_id: str
    status: str = WAITING
    episodes: int = 0
    changes: list[JsonValue] = field(default_factory=list)
    made: list[JsonValue] = field(default_factory=list)
    """Verdicts of episodes that were proposed."""
    missing: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    """What its parts did, by name."""
    why: str = ""

    def payload(self) -> dict[str, JsonValue]:
        return {"run_id": self.run_id, "status": self.status, "episodes": self.episodes, "changes": self.changes}

    def session_payload(self, *counts: str) -> dict[str, JsonValue]:
        """Of a command on a session's log: these counts, and what became of each episode."""
        return {"status": self.status, **{name: self.counts.get(name, 0) for name in counts}, "episodes": self.made}

    @property
    def complete(self) -> bool:
        return self.status != WAITING and not self.missing


async def ran(
    kind: Kind,
    settings: Settings,
    policy: MemoryPolicy,
    *,
    tenant: str,
    owner: Owner,
    force: bool = False,
    args: Mapping[str, JsonValue] | None = None,
) -> Run:
    """Ask, and wait for all that comes of it, at most 60 s. Beside a worker, or with the stages in this process."""
    command = Command(
        command_id=str(uuid.uuid4()),
        kind=kind,
        tenant_id=tenant,
        owner=owner,
        args=dict(args or {}) | ({"force": True} if force else {}),
        issued_by=f"memstream {kind}",
        issued_at=datetime.now(UTC),
    )
    async with _log_of("consolidation", settings, policy, purpose=kind) as log:
        run_id = ids.run_id(command.key, command.command_id)
        return await _answered(command, COMMANDS, log, run_id=run_id, until=time.monotonic() + PATIENCE)


async def flushed(
    settings: Settings, policy: MemoryPolicy, *, tenant: str, session: SessionRef, args: Mapping[str, JsonValue]
) -> Run:
    """The same for `flush_important`, once the observer has read the turns that the session's partition has by now."""
    command = Command(
        command_id=str(uuid.uuid4()),
        kind="flush_important",
        tenant_id=tenant,
        session=session,
        args=dict(args),
        issued_by="memstream flush",
        issued_at=datetime.now(UTC),
    )
    until = time.monotonic() + PATIENCE
    async with _log_of("observer", settings, policy, purpose="flush") as log:
        await _turns_are_read(log, command.key, until=until)
        return await _answered(command, COMMANDS_SESSION, log, run_id="", until=until)


@asynccontextmanager
async def _log_of(stage: StageName, settings: Settings, policy: MemoryPolicy, *, purpose: str) -> AsyncIterator[Log]:
    async with stages_or_beside(settings, policy, purpose=purpose) as ports:
        if not await ports.log.members(group_of(stage)):
            output.advice(f"no {stage} worker is running: the command waits in the log for one")
        yield ports.log


async def _turns_are_read(log: Log, session_key: str, *, until: float) -> None:
    """Until the observer is where the session's partition ends now, or nobody is there to read it."""
    ends = await log.ends(TURNS.name)
    partition = partition_for(session_key.encode(), len(ends))
    group = group_of("observer")
    while time.monotonic() < until and await log.members(group):
        if ((await log.committed(group, TURNS.name))[partition] or 0) >= ends[partition]:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _answered(command: Command, topic: Topic, log: Log, *, run_id: str, until: float) -> Run:
    start = dict(enumerate(await log.ends(RESULTS.name)))
    source = f"/memstream/{command.kind}"
    event = CloudEvent(command.command_id, source, "memstream.command.v1", command.key, command.issued_at)
    await log.append(topic.name, key=command.key.encode(), value=command.to_bytes(), headers=event.headers())
    done = Run(run_id)
    await _follow(_results(log, start), command.command_id, done, until=until)
    if not done.complete:
        done.why = done.why or f"not all of it was done within {PATIENCE:.0f} s; it goes on"
    return done


async def _follow(results: AsyncIterator[CommandResult], command_id: str, done: Run, *, until: float) -> None:
    """Until the result and a verdict for every change were seen; what comes before the result is kept for it."""
    early: dict[str, CommandResult] = {}
    while not done.complete:
        try:
            result = await asyncio.wait_for(anext(results), max(0.0, until - time.monotonic()))
        except TimeoutError:
            return
        if result.command_id == command_id:
            _take_run(result, done)
            for each in sorted(done.missing & set(early)):
                _take_verdicts(early[each], done)
        elif result.command_id in done.missing:
            _take_verdicts(result, done)
        elif done.status == WAITING:
            early[result.command_id] = result


def _take_run(result: CommandResult, done: Run) -> None:
    fields: dict[str, Any] = result.result or {}
    done.status = result.status
    done.run_id = str(fields.get("run_id") or done.run_id)
    done.episodes = int(fields.get("episodes") or 0)
    parts = fields.get("phases", (fields,))  # a flush has none
    done.counts = {name: n for part in parts for name, n in part.items() if isinstance(n, int)}
    done.missing = {str(each) for each in fields.get("command_ids") or ()}
    done.why = result.error.message if result.error is not None else ""


def _take_verdicts(result: CommandResult, done: Run) -> None:
    done.missing.discard(result.command_id)
    fields: dict[str, Any] = result.result or {}
    for change in fields.get("changes") or ():
        done.changes.append({name: change.get(name) for name in ("action", "fact_id", "verdict")})
    done.made += fields.get("episodes") or ()
    if result.error is not None:
        done.why = result.error.message


async def _results(log: Log, start: dict[int, int]) -> AsyncIterator[CommandResult]:
    async for record in log.read(RESULTS.name, start=start, follow=True):
        try:
            yield CommandResult.read(record.value or b"")
        except ValidationError:
            continue  # nothing that a stage of ours wrote
