"""The run that erases a user (docs/design/erasure.md).

1. The marker is durable: from now on every stage ignores the user.
2. Each worker has acknowledged the marker, and has handled all records from before.
3. A scan finds what memory has of the user. Commands erase it, in the lane of each session and owner.
4. A scan finds nothing more, or finds the same again. The marker is closed and the receipt is written.

A run that is killed is begun again with the same user. It continues with the open marker.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from ...adapters.ports import VectorStore
from ...memory.erasures import ErasedUsers
from ...memory.user_traces import UserTraces
from ...schemas import ids
from ...schemas.base import Contract
from ...schemas.cloudevents import CloudEvent
from ...schemas.command_kinds import ERASE_OWNER, ERASE_SESSION, ERASE_UPKEEP
from ...schemas.commands import NO_MARKER, Command, CommandResult, SessionRef
from ...schemas.erasures import (
    RECEIPT_PREFIX,
    ROW_KEYS_MAX,
    USER_PREFIX,
    ErasedPlace,
    ErasureMarker,
    ErasureReceipt,
    OwnerErase,
    SessionErase,
)
from ...schemas.errors import Transient
from ...schemas.topics import COMMANDS, COMMANDS_SESSION, ERASURES, RESULTS, STAGES, StageName, group_of, read_by
from ...schemas.turns import Owner
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Log
from ...streams.senders.commands import command_record
from .log_ends import log_ends
from .scan import UserRecords, UserScan

ROUNDS_MAX: Final = 4
"""Maximum number of times that the commands are sent. Nothing new arrives, so the second round finds nothing."""
AT_ONCE: Final = 200
"""Maximum number of commands that wait for their results at a time."""
LOOK: Final = 0.1
RESEND: Final = 0.3
"""Seconds until a command is sent again to a worker that did not know the marker."""
KINDS: Final = (ERASE_UPKEEP, ERASE_OWNER)
"""Kinds of the commands for an owner, in the order of their rounds: consolidation proposes to the reflector."""
SESSIONS_KEPT: Final = ROW_KEYS_MAX


class ErasureStalled(Exception):
    """A stage did not answer. The marker is durable, so the user stays ignored. The message says what to do."""


class _Ended(Exception):
    """Another run of this erasure has ended it. `receipt` is the receipt of that run."""

    def __init__(self, receipt: ErasureReceipt) -> None:
        super().__init__(receipt.erasure_id)
        self.receipt = receipt


@dataclass(slots=True, kw_only=True)
class UserEraser:
    """One run. `patience`: seconds without progress of a stage after which the run ends with ErasureStalled."""

    store: VectorStore
    log: Log
    now: Callable[[], datetime]
    tenant_id: str
    user_id: str
    issued_by: str
    patience: float = 60.0
    told: Callable[[str], None] = lambda text: None
    _texts: set[str] = field(default_factory=set)
    _removed: dict[str, int] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)
    """Records that the last scan has found, by place."""

    # ------------------------------------------------------------------------------------------------ the run
    async def run(self) -> ErasureReceipt:
        """Erase the user, and return the receipt. Raises ErasureStalled and Transient; then run it again."""
        return await self.finish(await self.begin())

    async def finish(self, marker: ErasureMarker) -> ErasureReceipt:
        """Erase the user of an open marker, and return the receipt. If another run ends the erasure, return the receipt
        of that run. Raises ErasureStalled and Transient."""
        written = await read_receipt(self.log, marker.erasure_id)
        if written is not None:  # a run was killed between receipt and closing: keep what it has counted
            for place in written.places:
                self._removed[place.place] = max(self._removed.get(place.place, 0), place.removed)
        try:
            await self._acknowledged(marker)
            await self._handled()
            found, rounds = await self._erased(marker)
            await self._require_open(marker)
            return await self._closed(marker, found, rounds)
        except _Ended as ended:
            return ended.receipt

    async def scan(self) -> UserRecords:
        """Return what memory has of the user. Nothing is changed."""
        traces = UserTraces(self.tenant_id, ids.user_hash(self.tenant_id, self.user_id), self._texts)
        return await UserScan(store=self.store, log=self.log, tenant_id=self.tenant_id, traces=traces).run()

    async def begin(self) -> ErasureMarker:
        """Make the marker durable, or take the open marker of a run that was killed."""
        key = USER_PREFIX + ids.user_hash(self.tenant_id, self.user_id)
        known = (await _latest(self.log, key)).get(key)
        before = None if known is None else ErasureMarker.read(known)
        if before is not None and before.state == "open":
            self.told(f"erasure {before.erasure_id} continues")
            return before
        marker = ErasureMarker(
            erasure_id=ids.erasure_id(key.removeprefix(USER_PREFIX), "" if before is None else before.erasure_id),
            state="open",
            at=self.now(),
            tenant_id=self.tenant_id,
            user_id=self.user_id,
        )
        await self._append(key, marker)
        self.told(f"erasure {marker.erasure_id} begins: memory ignores the user from now on")
        return marker

    async def _require_open(self, marker: ErasureMarker) -> None:
        """Raise _Ended if another run has closed the marker."""
        key = USER_PREFIX + ids.user_hash(self.tenant_id, self.user_id)
        known = (await _latest(self.log, key)).get(key)
        now = None if known is None else ErasureMarker.read(known)
        if now is not None and (now.state, now.erasure_id) == ("open", marker.erasure_id):
            return
        receipt = await read_receipt(self.log, marker.erasure_id)
        if receipt is not None:
            raise _Ended(receipt)
        raise ErasureStalled(
            f"{ERASURES.name} has lost the marker of erasure {marker.erasure_id}: run the command again, which begins "
            "a new erasure"
        )

    async def _acknowledged(self, marker: ErasureMarker) -> None:
        """Wait until the worker of each partition knows the marker. The commands go to keys that have no memory."""
        sessions, owners = await self._partitions(COMMANDS_SESSION.name), await self._partitions(COMMANDS.name)
        commands = [
            self._session_command(marker, session_id, ())
            for session_id in _keys_of(sessions, lambda n: ids.session_key(self.tenant_id, self.user_id, n), marker)
        ]
        for owner_id in _keys_of(owners, lambda n: ids.owner_key(self.tenant_id, "user", n), marker):
            owner = Owner(scope="user", id=owner_id)
            commands += [self._owner_command(marker, kind, owner, (), ()) for kind in KINDS]
        await self._ask(marker, commands)
        self.told("every worker knows it")

    async def _handled(self) -> None:
        """Wait until each stage has handled the records that the log has now, which it may have begun before it knew
        the marker. Raises ErasureStalled."""
        for stage in STAGES:
            for topic in read_by(stage):
                await self._read_to(stage, topic.name, await self.log.ends(topic.name))

    async def _read_to(self, stage: StageName, topic: str, ends: Sequence[int]) -> None:
        changed, before = time.monotonic(), -1
        while True:
            committed = await self.log.committed(group_of(stage), topic)
            left = sum(max(0, end - (at or 0)) for end, at in zip(ends, committed, strict=True) if end)
            if not left:
                return
            if left != before:
                changed, before = time.monotonic(), left
            if time.monotonic() - changed > self.patience:
                raise ErasureStalled(
                    f"{stage} has not handled {left} records of {topic} from before the erasure: start its worker, "
                    "and run the command again. The user stays ignored meanwhile"
                )
            await asyncio.sleep(LOOK)

    async def _erased(self, marker: ErasureMarker) -> tuple[UserRecords, int]:
        """Send the commands until a scan finds nothing, or the same as before. Return the last scan and the rounds."""
        found = await self.scan()
        self._texts |= found.texts
        self._note(found)
        rounds, before = 0, -1
        while rounds == 0 or (found.left and found.left != before and rounds < ROUNDS_MAX):
            rounds, before = rounds + 1, found.left
            self.told(f"round {rounds}: {found.left} records name the user")
            await self._send(marker, found)
            await self._handled()  # a stage deletes rows after it has published the result
            found = await self.scan()
            self._note(found)
        return found, rounds

    def _note(self, found: UserRecords) -> None:
        """Count the records that are gone since the scan before, also since a scan of a failed attempt of this run."""
        for place in found.places.values():
            gone = max(0, self._left.get(place.place, 0) - place.with_ids)
            self._removed[place.place] = self._removed.get(place.place, 0) + gone
            self._left[place.place] = place.with_ids

    async def _send(self, marker: ErasureMarker, found: UserRecords) -> None:
        """Send the commands of one round: sessions, then upkeep, then facts. A later stage may hold what an earlier
        one has sent."""
        me = Owner(scope="user", id=self.user_id)
        own = me.key(self.tenant_id)
        keys = {ids.session_key(self.tenant_id, self.user_id, each): each for each in sorted(found.sessions)}
        rows = found.rows
        await self._ask(
            marker,
            (
                self._session_command(marker, session_id, part)
                for key, session_id in keys.items()
                for part in _split(rows.get(("observer", key), ()))
            ),
        )
        sessions = tuple(sorted(found.sessions_of_evidence))[:SESSIONS_KEPT]
        stages: dict[str, StageName] = {ERASE_UPKEEP: "consolidation", ERASE_OWNER: "reflector"}
        for kind in KINDS:
            for owner_key in (own, *sorted(found.owners - {own})):
                owner = Owner.of_key(owner_key)
                await self._ask(
                    marker,
                    (
                        self._owner_command(marker, kind, owner, part, sessions)
                        for part in _split(rows.get((stages[kind], owner_key), ()))
                    ),
                )

    async def _closed(self, marker: ErasureMarker, found: UserRecords, rounds: int) -> ErasureReceipt:
        """Write the receipt, then close the marker. After a crash between the two, the run writes another receipt."""
        ended = self.now()
        user = ids.user_hash(self.tenant_id, self.user_id)
        receipt = ErasureReceipt(
            erasure_id=marker.erasure_id,
            tenant_id=self.tenant_id,
            user_hash=user,
            began_at=marker.at,
            ended_at=ended,
            rounds=rounds,
            places=tuple(
                place.model_copy(update={"removed": self._removed.get(place.place, 0)})
                for place in found.places.values()
            ),
            texts=len(self._texts),
            logs=await log_ends(self.log, ended),
        )
        receipt = signed(receipt)
        await self._append(RECEIPT_PREFIX + marker.erasure_id, receipt)
        closed = ErasureMarker(erasure_id=marker.erasure_id, state="closed", at=ended)
        await self._append(USER_PREFIX + user, closed)
        return receipt

    # ------------------------------------------------------------------------------------------------ commands
    def _session_command(self, marker: ErasureMarker, session_id: str, rows: Sequence[str]) -> Command:
        return self._command(
            ERASE_SESSION,
            SessionErase(erasure_id=marker.erasure_id, row_keys=tuple(rows)),
            session=SessionRef(user_id=self.user_id, session_id=session_id),
        )

    def _owner_command(
        self, marker: ErasureMarker, kind: str, owner: Owner, rows: Sequence[str], sessions: Sequence[str]
    ) -> Command:
        args = OwnerErase(
            erasure_id=marker.erasure_id, user_id=self.user_id, row_keys=tuple(rows), session_ids=tuple(sessions)
        )
        return self._command(kind, args, owner=owner)

    def _command(
        self, kind: str, args: Contract, *, owner: Owner | None = None, session: SessionRef | None = None
    ) -> Command:
        return Command(
            command_id=str(uuid.uuid4()),
            kind=kind,
            tenant_id=self.tenant_id,
            owner=owner,
            session=session,
            args=args.to_payload(),
            issued_by=self.issued_by,
            issued_at=self.now(),
        )

    async def _ask(self, marker: ErasureMarker, commands: Iterable[Command]) -> None:
        """Send commands, and wait until each is applied. Raises _Ended and ErasureStalled."""
        waiting = list(commands)
        applied_at = time.monotonic()
        while waiting:
            sent = waiting[:AT_ONCE]
            refused = await self._answers(sent)
            waiting = [*refused, *waiting[AT_ONCE:]]
            if len(refused) < len(sent):
                applied_at = time.monotonic()
            if refused:
                await self._require_open(marker)
                if time.monotonic() - applied_at > self.patience:
                    raise ErasureStalled(
                        f"the workers have refused {len(refused)} commands for {self.patience:.0f} s, because they do "
                        f"not know the marker on {ERASURES.name}: look for erasures_not_read in their log, restart "
                        "them, and run the command again. The user stays ignored by all workers that know it"
                    )
                await asyncio.sleep(RESEND)

    async def _answers(self, commands: Sequence[Command]) -> list[Command]:
        """Send these commands and wait for their results. Return the commands of workers that do not know the marker,
        with new ids. Raises ErasureStalled."""
        starts = dict(enumerate(await self.log.ends(RESULTS.name)))
        for each in commands:
            record = command_record(each, source="/memstream/erase")
            await self.log.append(record.topic, key=record.key, value=record.value, headers=record.headers)
        waiting = {each.command_id: each for each in commands}
        refused: list[Command] = []
        until = time.monotonic() + self.patience
        async with aclosing(self.log.read(RESULTS.name, start=starts, follow=True)) as records:
            while waiting:
                try:
                    async with asyncio.timeout(max(0.0, until - time.monotonic())):
                        answer = await anext(records)
                except TimeoutError:
                    kinds = ", ".join(sorted({each.kind for each in waiting.values()}))
                    raise ErasureStalled(
                        f"{len(waiting)} commands ({kinds}) had no result for {self.patience:.0f} s: start the workers "
                        "of all stages, look at `memstream doctor`, and run the command again. The user stays ignored "
                        "meanwhile"
                    ) from None
                result = _result(answer.value)
                if result is None or result.command_id not in waiting:
                    continue
                until = time.monotonic() + self.patience
                command = waiting.pop(result.command_id)
                if result.status == "applied":
                    continue
                if result.error is None or result.error.code != NO_MARKER:
                    why = result.status if result.error is None else result.error.message
                    raise ErasureStalled(
                        f"{command.kind} was refused ({why}): start workers of the same version as this command, and "
                        "run it again. The user stays ignored meanwhile"
                    )
                refused.append(command.model_copy(update={"command_id": str(uuid.uuid4())}))
        return refused

    # ------------------------------------------------------------------------------------------------ log
    async def _partitions(self, topic: str) -> int:
        count = await self.log.partitions(topic)
        if count is None:
            raise Transient("broker", f"there is no topic {topic}", remedy="memstream topics create")
        return count

    async def _append(self, key: str, value: Contract) -> None:
        if await self.log.partitions(ERASURES.name) is None:
            raise Transient("broker", f"there is no topic {ERASURES.name}", remedy="memstream topics create")
        event = CloudEvent(str(uuid.uuid4()), "/memstream/erase", "memstream.erasure.v1", key, self.now())
        await self.log.append(ERASURES.name, key=key.encode(), value=value.to_bytes(), headers=event.headers())


def signed(receipt: ErasureReceipt) -> ErasureReceipt:
    """Return the receipt with the SHA-256 of its JSON without this field."""
    plain = receipt.model_copy(update={"sha256": None})
    return receipt.model_copy(update={"sha256": ids.text_hash(plain.model_dump_json(exclude={"sha256"}))})


async def read_receipt(log: Log, erasure_id: str) -> ErasureReceipt | None:
    """Return a receipt, or None if there is none. Raises Transient."""
    key = RECEIPT_PREFIX + erasure_id
    value = (await _latest(log, key)).get(key)
    return None if value is None else ErasureReceipt.read(value)


async def read_marker(log: Log, erasure_id: str) -> ErasureMarker | None:
    """Return the marker of an erasure, or None. Raises Transient."""
    for key, value in (await _latest(log)).items():
        if key.startswith(USER_PREFIX) and (marker := ErasureMarker.read(value)).erasure_id == erasure_id:
            return marker
    return None


async def read_erased_users(log: Log) -> ErasedUsers:
    """Return all markers. Raises Transient."""
    erased = ErasedUsers()
    for key, value in (await _latest(log)).items():
        if key.startswith(USER_PREFIX):
            erased.set(key.removeprefix(USER_PREFIX), ErasureMarker.read(value))
    return erased


async def check_again(store: VectorStore, log: Log, receipt: ErasureReceipt) -> ErasureReceipt:
    """Scan again for the user of a receipt. Return the receipt with the new numbers. Records of a user who came
    back are found, too."""
    traces = UserTraces(receipt.tenant_id, receipt.user_hash)
    found = await UserScan(store=store, log=log, tenant_id=receipt.tenant_id, traces=traces).run()
    removed = {place.place: place.removed for place in receipt.places}
    places: tuple[ErasedPlace, ...] = tuple(
        place.model_copy(update={"removed": removed.get(place.place, 0)}) for place in found.places.values()
    )
    return signed(receipt.model_copy(update={"places": places, "logs": await log_ends(log, receipt.ended_at)}))


async def _latest(log: Log, only: str | None = None) -> dict[str, bytes]:
    """Return the last value of each key of memory.erasures, or of one key."""
    if await log.partitions(ERASURES.name) is None:
        return {}
    latest: dict[str, bytes] = {}
    async with aclosing(log.read(ERASURES.name)) as records:
        async for record in records:
            key = (record.key or b"").decode("utf-8", "replace")
            if record.value is not None and only in (None, key):
                latest[key] = record.value
    return latest


def _keys_of(partitions: int, key_of: Callable[[str], str], marker: ErasureMarker) -> Iterator[str]:
    """Yield an id for each partition, whose key is on this partition."""
    missing = set(range(partitions))
    n = 0
    while missing:
        name = f"erasure-{marker.erasure_id}-{n}"
        partition = partition_for(key_of(name).encode(), partitions)
        if partition in missing:
            missing.remove(partition)
            yield name
        n += 1


def _split(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the rows in parts that fit into a command: at least one part, which may be empty."""
    yield rows[:ROW_KEYS_MAX]
    for start in range(ROW_KEYS_MAX, len(rows), ROW_KEYS_MAX):
        yield rows[start : start + ROW_KEYS_MAX]


def _result(value: bytes | None) -> CommandResult | None:
    try:
        return CommandResult.read(value or b"")
    except ValidationError:
        return None
