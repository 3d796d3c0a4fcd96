"""Commands that a person sends to a stage from the command line: runs of consolidation, flushes and reviews.

A run collects the command's result and the verdicts on its proposals.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import JsonValue

from ...memory.policies import MemoryPolicy
from ...recall.record_reader import RecordReader
from ...schemas import ids
from ...schemas.commands import Command, CommandResult, FactReview, SessionRef
from ...schemas.topics import TURNS, StageName, group_of
from ...schemas.turns import Owner
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Log
from ...streams.senders.commands import CommandSender
from ...tools.audit import audit
from ...tools.audit_topic import AuditPublisher
from ...tools.editor import ProtectedCommands
from ..errors import PATIENCE, usage
from ..output import console
from ..output.logs import open_audit
from ..process.account import account
from .local_stages import LocalStages, RunningStages, local_stages
from .secret_detectors import new_secret_filter
from .settings import Settings

LOOK_SECONDS: Final = 0.1
PROGRESS_SECONDS: Final = 10.0
CONSOLIDATION: Final[StageName] = "consolidation"
EARLY_MAX: Final = 1_000
"""Maximum number of results to keep until the run's own result arrives and names the proposals. Most results belong to
other commands."""
WAITING: Final = "waiting"
Kind = Literal["consolidate", "prune", "digest", "hygiene", "compact"]


@dataclass(slots=True)
class CommandRun:
    """State of a command. `status` is the status of its result, or `waiting` before the result."""

    command_id: str
    run_id: str = ""
    status: str = WAITING
    episodes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Counts of the run's steps, by name."""
    command_ids: tuple[str, ...] = ()
    """Command ids of the run's proposals. Each proposal gets a result."""
    verdicts: dict[str, CommandResult] = field(default_factory=dict)
    """Results of proposals, by command id."""
    why: str = ""

    @property
    def complete(self) -> bool:
        return self.status != WAITING and all(each in self.verdicts for each in self.command_ids)

    @property
    def changes(self) -> list[JsonValue]:
        """Changes of facts, in the order of the proposals."""
        changes = self._listed("changes")
        return [{name: each.get(name) for name in ("action", "fact_id", "verdict")} for each in changes]

    @property
    def made(self) -> list[JsonValue]:
        """Verdicts on proposed episodes, in the order of the proposals."""
        return [*self._listed("episodes")]

    def _listed(self, what: str) -> list[dict[str, JsonValue]]:
        taken = [self.verdicts[each] for each in self.command_ids if each in self.verdicts]
        results: list[dict[str, Any]] = [each.result or {} for each in taken]
        return [each for result in results for each in result.get(what) or ()]

    def payload(self) -> dict[str, JsonValue]:
        return {"run_id": self.run_id, "status": self.status, "episodes": self.episodes, "changes": self.changes}

    def session_payload(self, *counts: str) -> dict[str, JsonValue]:
        """Return the result of a command on a session: these counts, and the verdict on each episode."""
        return {"status": self.status, **{name: self.counts.get(name, 0) for name in counts}, "episodes": self.made}

    def take(self, result: CommandResult) -> None:
        """Store a result if it is the run's own result or a verdict on its proposals; ignore others."""
        if result.command_id == self.command_id:
            self._ran(result)
        elif result.command_id in self.command_ids:
            self.verdicts[result.command_id] = result
        else:
            return
        if result.error is not None:
            self.why = result.error.message

    def _ran(self, result: CommandResult) -> None:
        fields: dict[str, Any] = result.result or {}
        self.status = result.status
        self.run_id = str(fields.get("run_id") or self.run_id)
        self.episodes = int(fields.get("episodes") or 0)
        parts = fields.get("phases", (fields,))  # a flush has no phases
        self.counts = {name: n for part in parts for name, n in part.items() if isinstance(n, int)}
        self.command_ids = tuple(str(each) for each in fields.get("command_ids") or ())


async def ran(
    kind: Kind, settings: Settings, policy: MemoryPolicy, *, tenant: str, owner: Owner, args: Mapping[str, JsonValue]
) -> CommandRun:
    """Send a command and wait for all its effects.

    A worker executes the command, and the wait is at most 60 s. If the folder is free, the stages in this process
    execute it, and the wait ends when they stop working (`while_at_work`).
    """
    start_audit(settings)
    command = Command(
        command_id=str(uuid.uuid4()),
        kind=kind,
        tenant_id=tenant,
        owner=owner,
        args=dict(args),
        issued_by=f"memstream {kind}",
        issued_at=datetime.now(UTC),
    )
    run = CommandRun(command.command_id, ids.run_id(command.key, command.command_id))
    async with _stages(CONSOLIDATION, settings, policy, purpose=kind) as ports:
        return await _answered(command, run, ports, CONSOLIDATION)


async def flushed(
    settings: Settings, policy: MemoryPolicy, *, tenant: str, session: SessionRef, args: Mapping[str, JsonValue]
) -> CommandRun:
    """Send `flush_important` after the observer has read the session's partition up to its current end."""
    start_audit(settings)
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
    async with _stages("observer", settings, policy, purpose="flush") as ports:
        await _turns_are_read(ports.log, command.key, until=until)
        return await _answered(command, CommandRun(command.command_id), ports, "observer", until=until)


async def reviewed(
    kind: Literal["facts.approve", "facts.reject"],
    settings: Settings,
    policy: MemoryPolicy,
    *,
    tenant: str,
    fact_id: str,
    reason: str,
) -> tuple[str, CommandResult | None] | None:
    """Send a decision on a fact to the reflector.

    Return the command's id and its result; the result is None if it does not arrive within 60 s. Return None instead of
    the pair if the tenant has no such fact.
    """
    start_audit(settings)
    name = kind.removeprefix("facts.")
    async with local_stages(settings, policy, purpose=name) as ports, AuditPublisher(log=ports.log).running():
        fact = await RecordReader(store=ports.store).fact(tenant, fact_id, ceiling="secret")
        if fact is None:
            return None
        await warn_without_worker("reflector", ports.log)
        command = Command(
            command_id=str(uuid.uuid4()),
            kind=kind,
            tenant_id=tenant,
            owner=fact.owner,
            args=FactReview(fact_id=fact_id, reason=reason).to_payload(),
            issued_by=f"memstream {name}",
            issued_at=datetime.now(UTC),
        )
        commands = ProtectedCommands(CommandSender(ports.log, name), new_secret_filter(policy))
        result = await commands.ask(command, patience=PATIENCE)
        _audit(command, "accepted" if result is None else result.status, fact_id=fact_id)
        return command.command_id, result


@asynccontextmanager
async def _stages(
    stage: StageName, settings: Settings, policy: MemoryPolicy, *, purpose: str
) -> AsyncIterator[LocalStages]:
    async with local_stages(settings, policy, purpose=purpose) as ports, AuditPublisher(log=ports.log).running():
        await warn_without_worker(stage, ports.log)
        yield ports


async def warn_without_worker(stage: StageName, log: Log) -> None:
    if not await log.members(group_of(stage)):
        console.advice(f"no {stage} worker is running: the command waits in the log until one starts")


def start_audit(settings: Settings) -> None:
    """Open the audit log before a command is sent. Raises CommandFailed (exit 2) if it cannot be opened."""
    try:
        open_audit(settings.audit_log)
    except OSError as error:
        raise usage(f"MEMSTREAM_AUDIT_LOG={settings.audit_log}: {error.strerror or error}") from error


def _audit(command: Command, result: str, **ids: str) -> None:
    """Write the audit record of a command."""
    owner = command.owner
    if command.session is not None:
        owner = Owner(scope="user", id=command.session.user_id)
        ids["session_id"] = command.session.session_id
    audit(
        command.kind,
        who=f"cli:{account()}",
        tenant_id=command.tenant_id,
        owner=owner,
        result=result,
        command_id=command.command_id,
        **ids,
    )


async def _turns_are_read(log: Log, session_key: str, *, until: float) -> None:
    """Wait until the observer has read the session's partition up to its current end, or until no observer runs."""
    ends = await log.ends(TURNS.name)
    partition = partition_for(session_key.encode(), len(ends))
    group = group_of("observer")
    while time.monotonic() < until and await log.members(group):
        if ((await log.committed(group, TURNS.name))[partition] or 0) >= ends[partition]:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _answered(
    command: Command, run: CommandRun, ports: LocalStages, stage: StageName, *, until: float | None = None
) -> CommandRun:
    """Send a command and wait for its results. `until` is the end of the wait for a worker, by default in 60 s."""
    sender = CommandSender(ports.log, command.kind)
    patience = PATIENCE if until is None else max(0.0, until - time.monotonic())
    async with aclosing(sender.results(await sender.send(command))) as results:
        if ports.running is not None:
            why = await while_at_work(followed(results, run, patience=None), ports.running, stage, command.kind)
            late = f"{why}; the command waits in the folder, and the next command or worker there goes on with it"
        else:
            await followed(results, run, patience=patience)
            late = f"the command did not finish within {PATIENCE:.0f} s; the stages continue"
    _audit(command, "accepted" if run.status == WAITING else run.status)
    if not run.complete:
        run.why = run.why or late
    return run


async def while_at_work(waiting: Coroutine[Any, Any, None], running: RunningStages, stage: StageName, what: str) -> str:
    """Wait while the stages of this process work, and print a line every 10 s.

    The wait ends early when the stages end, or when the stage has been idle for 60 s: not ready, or without its model.
    Return the reason then, otherwise an empty text.
    """
    task = asyncio.create_task(waiting)
    began = worked = reported = time.monotonic()
    try:
        while not task.done() and not running.work.done():
            await asyncio.wait({task, running.work}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            why, now = running.why_idle(stage), time.monotonic()
            worked = worked if why else now
            if now - worked >= PATIENCE:
                return f"no progress for {PATIENCE:.0f} s: {why}"
            if now - reported >= PROGRESS_SECONDS:
                console.advice(f"{what}: {now - began:.0f} s so far{f', {why}' if why else ''} (Ctrl-C ends the wait)")
                reported = now
        if not task.done():
            return "the stages ended"
        await task
        return ""
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def followed(results: AsyncIterator[CommandResult], run: CommandRun, *, patience: float | None) -> None:
    """Read results until the run has its own result and a verdict on each proposal, for at most `patience` seconds;
    None: without a limit.

    A verdict may arrive before the run's own result, because it is on another partition.
    """
    early: deque[CommandResult] = deque(maxlen=EARLY_MAX)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            async for result in results:
                run.take(result)
                if run.status == WAITING:
                    early.append(result)
                while early and run.status != WAITING:
                    run.take(early.popleft())
                if run.complete:
                    return
