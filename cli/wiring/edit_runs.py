"""Edits by a person from the command line. A stage in this process or in a worker applies the edits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ...memory.policies import MemoryPolicy
from ...recall.record_reader import RecordReader
from ...schemas.base import Contract
from ...schemas.command_kinds import command_kind
from ...schemas.episodes import Episode
from ...schemas.facts import Fact
from ...schemas.tools import TRACE_PREFIX
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


@asynccontextmanager
async def edit_session(
    settings: Settings, policy: MemoryPolicy, *, purpose: str, key: str | None = None
) -> AsyncIterator[EditSession]:
    """Open the audit log and the ports for an edit. `key` is the idempotency key."""
    start_audit(settings)
    async with local_stages(settings, policy, purpose=purpose) as ports, AuditPublisher(log=ports.log).running():
        yield EditSession(ports, policy, key)
