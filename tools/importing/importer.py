"""Importer: pages of an export become commands and turns on the log, at a bounded rate.

A page is sent when every record of the page before it has an answer. The ids of commands follow from their content, so
a page that is sent again after a crash has no second effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from ...adapters.ports import VectorStore
from ...memory.secrets.secret_filter import SecretFilter
from ...schemas import ids
from ...schemas.cloudevents import RESTORED_HEADER, CloudEvent
from ...schemas.collections import TURNS as TURNS_COLLECTION
from ...schemas.commands import REPEATED, Command, CommandResult
from ...schemas.errors import Transient
from ...schemas.imports import FACTS_MAX, FactsImport, FactToImport, ImportReport
from ...schemas.restore import RESTORED_MAX, RecordsRestore, RecordsRestored, RecordToRestore, TurnToRestore
from ...schemas.topics import TURNS, group_of
from ...schemas.turns import Turn
from ...streams.log.port import Log, Position
from ...streams.senders.commands import CommandPort
from ...streams.senders.turns import TurnSender
from ..audit import audit
from ..editor import ProtectedCommands
from ..erasure.eraser import read_erased_users
from .lines import CommandTarget, ImportLine, ImportPlan, Tally, read_page

PAGE_LINES: Final = 200
"""Lines of a page. At most this many records of an import are on their way at a time."""
COMMAND_BYTES: Final = 160 * 1024
"""Bytes of the records of a command. A longer record has a command of its own."""
KEYS_TOGETHER: Final = 8
"""Owners and sessions whose commands are sent concurrently. Commands of one owner are sent in order."""
LOOK_SECONDS: Final = 0.05
Sent = RecordToRestore | FactToImport


class MemoryImporter:
    """The importer. One instance serves concurrent imports."""

    def __init__(
        self,
        *,
        log: Log,
        store: VectorStore,
        commands: CommandPort,
        now: Callable[[], datetime],
        secrets: SecretFilter,
    ) -> None:
        self._log = log
        self._store = store
        self._commands = ProtectedCommands(commands, secrets)
        self._now = now
        self._secrets = secrets

    async def page(
        self, plan: ImportPlan, lines: Sequence[ImportLine], *, caller: str, patience: float
    ) -> ImportReport:
        """Import lines, and wait until each record has its answer, at most `patience` seconds for each command.

        Raises Transient if the log, the store or a stage does not answer. The page may then be imported in part, and
        may be sent again.
        """
        page = read_page(plan, lines, self._secrets, await read_erased_users(self._log))
        tally = page.tally
        if not plan.dry_run:
            await self._send(plan, page.commands, tally, caller=caller, patience=patience)
            await self._send_turns(plan, page.turns, tally, patience=patience)
            await self._say(page.said, tally, patience=patience)
            audit("import", who=caller, tenant_id=plan.target.tenant_id, owner=plan.target.owner, result="applied")
        return tally.report()

    # -------------------------------------------------------------------------------------------- commands
    async def _send(
        self,
        plan: ImportPlan,
        commands: Mapping[CommandTarget, Sequence[Sent]],
        tally: Tally,
        *,
        caller: str,
        patience: float,
    ) -> None:
        """Send the records of each owner and session in order."""
        places = asyncio.Semaphore(KEYS_TOGETHER)
        by_key: dict[str, list[tuple[CommandTarget, Sequence[Sent]]]] = {}
        for target, records in commands.items():
            key = repr((target.owner, target.session))
            by_key.setdefault(key, []).append((target, records))

        async def send(of_key: Sequence[tuple[CommandTarget, Sequence[Sent]]]) -> None:
            async with places:
                for target, records in of_key:
                    for part in _parts(records):
                        await self._command(plan, target, part, tally, caller=caller, patience=patience)

        for failed in await asyncio.gather(*map(send, by_key.values()), return_exceptions=True):
            if isinstance(failed, BaseException):
                raise failed

    async def _command(
        self,
        plan: ImportPlan,
        target: CommandTarget,
        records: Sequence[Sent],
        tally: Tally,
        *,
        caller: str,
        patience: float,
    ) -> None:
        args = _args(plan, records)
        command = Command(
            command_id=ids.restore_command_id(plan.source, args),
            kind=target.kind,
            tenant_id=target.tenant_id,
            owner=target.owner,
            session=target.session,
            args=args,
            issued_by=caller[:128],
            issued_at=self._now(),
        )
        result = await self._commands.ask(command, patience=patience)
        if result is None:
            raise Transient(
                "worker", f"no stage applied {target.kind} within {patience:.0f} s", remedy="import again: it continues"
            )
        self._count(plan, records, result, tally)

    def _count(self, plan: ImportPlan, records: Sequence[Sent], result: CommandResult, tally: Tally) -> None:
        if result.status == "applied" and result.result is not None:
            restored = RecordsRestored.from_payload(result.result)
            tally.imported += restored.imported
            tally.skipped += restored.skipped
            tally.errors += [plan.fault(each.line, each.why) for each in restored.refused]
        elif result.error is not None and result.error.code == REPEATED:
            tally.skipped += len(records)
        else:
            why = result.error.message if result.error is not None else f"the command {result.status}"
            tally.errors += [plan.fault(each.line, why) for each in records]

    # -------------------------------------------------------------------------------------------- turns
    async def _send_turns(
        self, plan: ImportPlan, turns: Sequence[tuple[int, TurnToRestore]], tally: Tally, *, patience: float
    ) -> None:
        """Send turns that the store does not have, and wait until the recorder has recorded them."""
        if not turns:
            return
        known = await self._recorded([turn for _, turn in turns])
        new = [turn for _, turn in turns if not known.issuperset(_message_ids(turn))]
        tally.skipped += len(turns) - len(new)
        for turn in new:
            await self._append(turn)
        until = time.monotonic() + patience
        wanted = {each for turn in new for each in _message_ids(turn)}
        while not (recorded := await self._recorded(new)).issuperset(wanted):
            if time.monotonic() > until:
                left = len(wanted - recorded)
                raise Transient(
                    "worker",
                    f"the recorder did not store {left} messages within {patience:.0f} s",
                    remedy="import again: it continues",
                )
            await asyncio.sleep(LOOK_SECONDS)
        tally.imported += len(new)

    async def _say(self, turns: Sequence[Turn], tally: Tally, *, patience: float) -> None:
        """Send turns that memory does not have, and wait until the recorder has read them."""
        if not turns:
            return
        known = await self._stored({turns[0].tenant_id: [_first_message(each) for each in turns]})
        new = [turn for turn in turns if _first_message(turn) not in known]
        tally.skipped += len(turns) - len(new)
        sender = TurnSender(self._log, "import")
        sent = await asyncio.gather(*(sender.send(turn, turn.to_bytes()) for turn in new))
        until = time.monotonic() + patience
        while left := _unread(sent, await self._log.committed(group_of("recorder"), TURNS.name)):
            if time.monotonic() > until:
                raise Transient(
                    "worker",
                    f"the recorder did not read {left} turns within {patience:.0f} s",
                    remedy="import again: it continues",
                )
            await asyncio.sleep(LOOK_SECONDS)
        tally.imported += len(new)

    async def _append(self, turn: TurnToRestore) -> None:
        event = CloudEvent(
            id=ids.turn_cause(turn.session_key, turn.turn_id),
            source="/memstream/import",
            type="memstream.turn.v1",
            subject=turn.session_key,
            time=self._now(),
        )
        headers = (*event.headers(), (RESTORED_HEADER, b"1"))
        await self._log.append(TURNS.name, key=turn.session_key.encode(), value=turn.to_bytes(), headers=headers)

    async def _recorded(self, turns: Sequence[TurnToRestore]) -> set[str]:
        """Return the ids of the messages of these turns that the store has."""
        named: dict[str, list[str]] = {}
        for turn in turns:
            named.setdefault(turn.tenant_id, []).extend(_message_ids(turn))
        return await self._stored(named)

    async def _stored(self, named: Mapping[str, Sequence[str]]) -> set[str]:
        """Return the messages that the store has, of ids by tenant."""
        if not named or not await self._store.exists(TURNS_COLLECTION):
            return set()
        found: set[str] = set()
        for tenant_id, wanted in named.items():
            found |= (await self._store.get(TURNS_COLLECTION, tenant_id=tenant_id, ids=wanted)).keys()
        return found


def _first_message(turn: Turn) -> str:
    return ids.message_id(turn.session_key, turn.turn_id, 0)


def _unread(sent: Sequence[Position], read: Sequence[int | None]) -> int:
    """Return the number of records that a group has not read, by its committed offsets."""
    return sum(each.offset >= (read[each.partition] or 0) for each in sent)


def _message_ids(turn: TurnToRestore) -> list[str]:
    return [each.message_id for each in turn.messages]


def _args(plan: ImportPlan, records: Sequence[Sent]) -> dict[str, JsonValue]:
    """Return the arguments of the command for these records, which are of one kind."""
    at, dedup = plan.header.at, plan.dedup
    facts = tuple(each for each in records if isinstance(each, FactToImport))
    if facts:
        file = Path(plan.file).name[-255:]
        return FactsImport(file=file, exported_at=at, trust=plan.trust, facts=facts, dedup=dedup).to_payload()
    restored = tuple(each for each in records if isinstance(each, RecordToRestore))
    return RecordsRestore(source=plan.source, exported_at=at, records=restored, dedup=dedup).to_payload()


def _parts(records: Sequence[Sent]) -> Iterator[Sequence[Sent]]:
    """Yield the records in parts of at most `RESTORED_MAX` records or `FACTS_MAX` statements, and `COMMAND_BYTES`, in
    order."""
    part: list[Sent] = []
    size = 0
    for each in records:
        bytes_of = len(each.to_bytes())
        most = FACTS_MAX if isinstance(each, FactToImport) else RESTORED_MAX
        if part and (len(part) == most or size + bytes_of > COMMAND_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += bytes_of
    if part:
        yield part
