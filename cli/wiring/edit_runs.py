"""Edits by a person from the command line. A stage in this process or in a worker applies the edits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from ...memory.policies import MemoryPolicy
from ...recall.record_reader import RecordReader
from ...schemas.base import Contract
from ...schemas.command_kinds import command_kind
from ...schemas.commands import CommandResult
from ...schemas.episodes import Episode
from ...schemas.facts import Fact
from ...schemas.tools import TRACE_PREFIX
from ...schemas.topics import RESULTS
from ...streams.senders.commands import CommandSender
from ...tools.audit_topic import AuditPublisher
from ...tools.editor import EditAnswer, EditRefused, EditTarget, MemoryEditor
from ..errors import PATIENCE, CommandFailed, Exit
from ..process.account import account
from .command_runs import start_audit, warn_without_worker
from .local_stages import LocalStages, local_stages
from .secret_detectors import new_secret_filter
from .settings import Settings
from .stages import utc_now


@dataclass(frozen=True, slots=True)
class EditSession:
    """Open ports of a command that edits memory."""

    ports: LocalStages
    policy: MemoryPolicy
    key: str | None

    @property
    def records(self) -> RecordReader:
        return RecordReader(store=self.ports.store)

    async def send(self, kind: str, args: Contract, target: EditTarget) -> EditAnswer:
        """Send an edit and wait for its result, at most 60 s. Raises CommandFailed (exit 1) if it is refused."""
        known = command_kind(target.address, kind)
        assert known is not None, kind
        await warn_without_worker(known.writer, self.ports.log)
        commands = CommandSender(self.ports.log, "edit")
        editor = MemoryEditor(commands=commands, now=utc_now, secrets=new_secret_filter(self.policy))
        try:
            return await editor.edit(
                kind, args, target=target, caller=f"cli:{account()}", patience=PATIENCE, idempotency_key=self.key
            )
        except EditRefused as refused:
            raise CommandFailed(Exit.PARTLY, str(refused)) from None

    async def send_all(self, kind: str, args: Contract, target: EditTarget) -> EditAnswer:
        """Send an edit, and wait also for the commands that it causes, at most 60 s. Raises CommandFailed (exit 1)."""
        start = dict(enumerate(await self.ports.log.ends(RESULTS.name)))
        answer = await self.send(kind, args, target)
        caused = () if answer.result is None else _caused(answer.result.to_payload())
        try:
            async with (
                asyncio.timeout(PATIENCE),
                aclosing(CommandSender(self.ports.log, "edit").results(start)) as results,
            ):
                await read_caused(results, caused)
        except TimeoutError:
            message = f"memory has not applied all of it within {PATIENCE:.0f} s; the commands wait in the log"
            raise CommandFailed(Exit.PARTLY, message) from None
        return answer

    async def record(self, tenant: str, given: str) -> Fact | Episode:
        """Return the fact or episode with this id. Raises CommandFailed (exit 1) if there is none."""
        record_id = given.removeprefix(TRACE_PREFIX)
        found = await self.records.fact(tenant, record_id, ceiling="secret")
        episode = None if found is not None else await self.records.episode(tenant, record_id, ceiling="secret")
        if found is None and episode is None:
            raise CommandFailed(
                Exit.PARTLY,
                f"tenant {tenant} has neither a fact nor an episode {given}: "
                "`memstream show facts` and `show episodes` have ids",
            )
        return found if found is not None else episode  # type: ignore[return-value]


async def read_caused(results: AsyncIterator[CommandResult], caused: Collection[str]) -> None:
    """Read results until there is one for each of these commands, and for the commands that they cause.

    Results are on several partitions, so the result of a command may come before the result of its cause.
    """
    missing = set(caused)
    told: dict[str, Mapping[str, JsonValue]] = {}
    while missing:
        result = await anext(results)
        told[result.command_id] = result.result or {}
        while found := missing & told.keys():
            missing -= found
            missing |= {each for cause in found for each in _caused(told.pop(cause))}


def _caused(result: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the ids of the commands that a result names."""
    named = result.get("command_ids") or []
    assert isinstance(named, list)  # by the contracts of results
    return tuple(str(each) for each in (*named, result.get("command_id")) if each is not None)


@asynccontextmanager
async def edit_session(
    settings: Settings, policy: MemoryPolicy, *, purpose: str, key: str | None = None
) -> AsyncIterator[EditSession]:
    """Open the audit log and the ports for an edit. `key` is the idempotency key."""
    start_audit(settings)
    async with local_stages(settings, policy, purpose=purpose) as ports, AuditPublisher(log=ports.log).running():
        yield EditSession(ports, policy, key)
