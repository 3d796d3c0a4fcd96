"""Runs of consolidation that a person asks for: the command, its result, and the verdicts of what it proposed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from ..memory.policies import MemoryPolicy
from ..schemas import ids
from ..schemas.cloudevents import CloudEvent
from ..schemas.commands import Command, CommandResult
from ..schemas.topics import COMMANDS, RESULTS, group_of
from ..schemas.turns import Owner
from ..streams.ports import Log
from . import output
from .inprocess import stages_or_beside
from .settings import Settings

PATIENCE = 60.0
WAITING = "waiting"
Kind = Literal["consolidate", "prune", "digest", "hygiene"]


@dataclass(slots=True)
class Run:
    """What came of the command so far. `status` is that of its result; `waiting` until there is one."""

    run_id: str
    status: str = WAITING
    episodes: int = 0
    changes: list[JsonValue] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    """What its parts did, by name."""
    why: str = ""

    def payload(self) -> dict[str, JsonValue]:
        return {"run_id": self.run_id, "status": self.status, "episodes": self.episodes, "changes": self.changes}

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
    async with stages_or_beside(settings, policy, purpose=kind) as ports:
        if not await ports.log.members(group_of("consolidation")):
            output.advice("no consolidation worker is running: the command waits in the log for one")
        start = dict(enumerate(await ports.log.ends(RESULTS.name)))
        command = Command(
            command_id=str(uuid.uuid4()),
            kind=kind,
            tenant_id=tenant,
            owner=owner,
            args=dict(args or {}) | ({"force": True} if force else {}),
            issued_by=f"memstream {kind}",
            issued_at=datetime.now(UTC),
        )
        event = CloudEvent(
            command.command_id, f"/memstream/{kind}", "memstream.command.v1", command.key, command.issued_at
        )
        await ports.log.append(
            COMMANDS.name, key=command.key.encode(), value=command.to_bytes(), headers=event.headers()
        )
        done = Run(ids.run_id(command.key, command.command_id))
        await _follow(_results(ports.log, start), command.command_id, done)
    if not done.complete:
        done.why = done.why or f"not all of it was done within {PATIENCE:.0f} s; it goes on"
    return done


async def _follow(results: AsyncIterator[CommandResult], command_id: str, done: Run) -> None:
    """Until the result and a verdict for every change were seen; what comes before the result is kept for it."""
    until = time.monotonic() + PATIENCE
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
    done.counts = {name: n for part in fields.get("phases") or () for name, n in part.items() if isinstance(n, int)}
    done.missing = {str(each) for each in fields.get("command_ids") or ()}
    done.why = result.error.message if result.error is not None else ""


def _take_verdicts(result: CommandResult, done: Run) -> None:
    done.missing.discard(result.command_id)
    for change in (result.result or {}).get("changes") or ():  # type: ignore[union-attr]
        if isinstance(change, dict):
            done.changes.append({name: change.get(name) for name in ("action", "fact_id", "verdict")})
    if result.error is not None:
        done.why = result.error.message


async def _results(log: Log, start: dict[int, int]) -> AsyncIterator[CommandResult]:
    async for record in log.read(RESULTS.name, start=start, follow=True):
        try:
            yield CommandResult.read(record.value or b"")
        except ValidationError:
            continue  # nothing that a stage of ours wrote
