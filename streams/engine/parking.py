"""Parked keys: keys whose last outcome cannot be applied. Other keys continue (docs/design/stage.md, "Parked keys").

The row of a parked key contains the outcome and a mark. The mark is authoritative. The topic memory-parked has a copy
of the mark, so that a partition's next owner, `memstream doctor` and /readyz know of the parked key. When the next try
is due, a worker sends a command `outcome.retry` with the key. The handler handles this command in the key's lane like
any other event, and tries the outcome again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic import ValidationError

from ...schemas import ids
from ...schemas.commands import Command, SessionRef
from ...schemas.outcomes import Outcome, OutRecord, Source
from ...schemas.parking import ERROR_MAX, OutcomeRetry, ParkedKey
from ...schemas.row_keys import partition_key
from ...schemas.topics import COMMANDS, COMMANDS_SESSION, PARKED, StageName
from ...schemas.turns import Owner
from ..log.partitioner import partition_for
from ..log.port import Log, Record
from ..senders.commands import command_record
from .metrics import StageMetrics
from .shared_deaths import DEATHS
from .unread import UNREAD

log = structlog.get_logger(__name__)

PARKED_MAX: Final = 20
"""Maximum number of a stage's parked keys in one worker. When the outcome of one more key cannot be applied, the worker
ends: if many keys fail, the cause is not in the keys."""
FIRST_WAIT, LONGEST_WAIT = 60.0, 600.0
"""Seconds until an outcome is tried again: 60 after its key was parked, then twice as long after each failed try, at
most 600. After a start or a rebalance, the outcome is tried immediately."""
RETRY: Final = "outcome.retry"
REDRIVE: Final = "put its letters back: memstream dlq redrive --reason parked"
REMEDY: Final = (
    "fix the cause; the outcome is tried again when a worker starts, and every 1 to 10 minutes. When the log says "
    "key_unparked, put the letters back: memstream dlq redrive --reason parked"
)
ROW_VERSION_PARKED: Final = 2
"""`row_version` of a parked row. It stops workers of earlier versions, which do not know parked keys and would treat
the outcome in the row as applied."""
_MARK: Final = b'{"parked":'
_ROW: Final = b',"row":'
_END: Final = b',"row_version":%d}' % ROW_VERSION_PARKED
_NAMED_MAX = 3
"""Maximum number of parked keys that /readyz names."""


# ------------------------------------------------------------------------------------------------ rows
def is_parked(row: bytes) -> bool:
    """Return whether a stored row belongs to a parked key."""
    return row.startswith(_MARK)


def parked_row(row: bytes, entry: ParkedKey) -> bytes:
    """Return a row that contains the mark and the original row."""
    return _MARK + entry.to_bytes() + _ROW + row + _END


def read_parked(row: bytes) -> tuple[ParkedKey, bytes]:
    """Return the mark of a parked row, and the original row."""
    at = row.index(_ROW)  # the first match is the mark's end: quotes inside JSON strings are escaped
    return ParkedKey.read(row[len(_MARK) : at]), row[at + len(_ROW) : -len(_END)]


def without_mark(row: bytes) -> bytes:
    """Return a stored row as its stage wrote it, without the mark if its key is parked."""
    return read_parked(row)[1] if is_parked(row) else row


def outcome_of(row: bytes) -> Outcome:
    """Return the outcome in a row. Every row with an outcome contains the outcome in the field `last`."""
    return Outcome.model_validate_json(json.dumps(json.loads(row)["last"]))


# ------------------------------------------------------------------------------------------------ records
def _lane_of(key: str) -> str:
    """Return the lane of a row: the session key or owner key in the row's key."""
    lane = partition_key(key)
    assert lane is not None  # a row with an outcome belongs to a session or an owner
    return lane


def _topic_key(stage: str, key: str) -> bytes:
    return f"{stage}/{key}".encode()


def parked_record(entry: ParkedKey) -> OutRecord:
    return OutRecord(topic=PARKED.name, key=_topic_key(entry.stage, entry.key), value=entry.to_bytes())


def unparked_record(stage: str, key: str) -> OutRecord:
    return OutRecord(topic=PARKED.name, key=_topic_key(stage, key), value=None)


def retry_record(stage: StageName, key: str, *, now: datetime) -> OutRecord:
    """Build the command that tries a parked outcome again."""
    tenant_id, second, third = ids.split(_lane_of(key))
    of_session = stage == "observer"
    command = Command(
        command_id=f"command/retry/{stage}/{ids.short_hash(key)}/{int(now.timestamp() * 1000)}",
        kind=RETRY,
        tenant_id=tenant_id,
        owner=None if of_session else Owner.model_validate({"scope": second, "id": third}),
        session=SessionRef(user_id=second, session_id=third) if of_session else None,
        args=OutcomeRetry(stage=stage, key=key).to_payload(),
        issued_by=f"/memstream/{stage}",
        issued_at=now,
    )
    return command_record(command, source=f"/memstream/{stage}")


def retry_of(record: Record) -> OutcomeRetry | None:
    """Return the retry that a record requests; None for every other record."""
    if record.position.topic not in (COMMANDS.name, COMMANDS_SESSION.name) or RETRY.encode() not in (
        record.value or b""
    ):
        return None
    try:
        command = Command.read(record.value or b"")
        return OutcomeRetry.from_payload(command.args) if command.kind == RETRY else None
    except ValidationError:
        return None


async def read_parked_keys(log_client: Log) -> Mapping[bytes, ParkedKey]:
    """Read memory-parked to its end. Return the parked keys by record key. Raises Transient."""
    entries: dict[bytes, ParkedKey] = {}
    if await log_client.partitions(PARKED.name) is None:
        return entries  # the deployment is older than the topic; workers refuse to start without it
    async with aclosing(log_client.read(PARKED.name)) as records:
        async for record in records:
            key = record.key or b""
            entries.pop(key, None)
            try:
                if record.value and not key.startswith((DEATHS, UNREAD)):
                    entries[key] = ParkedKey.read(record.value)
            except ValidationError:
                log.warning("parked_key_not_read", offset=record.position.offset)
    return entries


# ------------------------------------------------------------------------------------------------ state of a worker
@dataclass(slots=True)
class _Parked:
    entry: ParkedKey
    due: float
    tries: int = 0


class ParkedKeys:
    """One stage's parked keys in this worker's partitions, with the time of each key's next try."""

    def __init__(
        self,
        *,
        stage: StageName,
        send: Callable[[tuple[OutRecord, ...]], Awaitable[None]],
        metrics: StageMetrics,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stage: StageName = stage
        self._send = send
        self._metrics = metrics
        self._clock = clock
        self._now = now
        self._keys: dict[str, _Parked] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def entry(self, key: str, source: Source, error: str) -> ParkedKey:
        """Build the mark of a key whose outcome for this event cannot be applied."""
        return ParkedKey(
            stage=self._stage,
            key=key,
            topic=source.topic,
            partition=source.partition,
            offset=source.offset,
            event_id=source.id,
            parked_at=self._now(),
            error=error[:ERROR_MAX],
        )

    async def park(self, entry: ParkedKey) -> None:
        """Publish durably that a key is parked. Its row must already have the mark. Does nothing for a known key."""
        if entry.key in self._keys:
            return
        await self._send((parked_record(entry),))
        self._keys[entry.key] = _Parked(entry, self._clock() + FIRST_WAIT)
        self._metrics.parked(len(self._keys))
        log.error("key_parked", stage=self._stage, key=entry.key, why=entry.error, remedy=REMEDY)

    async def unpark(self, key: str) -> None:
        """Publish durably that a key's outcome is applied and its row no longer has a mark."""
        await self._send((unparked_record(self._stage, key),))
        self._keys.pop(key, None)
        self._metrics.parked(len(self._keys))
        log.warning(
            "key_unparked",
            stage=self._stage,
            key=key,
            remedy=REDRIVE,
        )

    def failed_again(self, key: str, why: str) -> None:
        """Log that a parked key's outcome failed again."""
        log.warning("key_still_parked", stage=self._stage, key=key, why=why[:ERROR_MAX], remedy=REMEDY)

    def assign(self, partitions: frozenset[int], known: Iterable[ParkedKey], *, count: int) -> None:
        """Take over the parked keys in these partitions, and forget the keys in other partitions.

        A new key is due immediately. `count`: the number of partitions.
        """
        for entry in known:
            if entry.stage == self._stage and entry.key not in self._keys:
                self._keys[entry.key] = _Parked(entry, self._clock())
        here = {key for key in self._keys if partition_for(_lane_of(key).encode(), count) in partitions}
        self._keys = {key: parked for key, parked in self._keys.items() if key in here}
        self._metrics.parked(len(self._keys))

    def due(self) -> Iterator[OutRecord]:
        """Yield the commands that are due, and schedule each key's next command."""
        now = self._clock()
        for key, parked in self._keys.items():
            if parked.due <= now:
                parked.due = now + min(FIRST_WAIT * 2.0**parked.tries, LONGEST_WAIT)
                parked.tries = min(parked.tries + 1, 10)
                yield retry_record(self._stage, key, now=self._now())

    def told(self) -> str:
        """Return the text about parked keys for /readyz; empty when no key is parked."""
        if not self._keys:
            return ""
        named = [f"{key}: {parked.entry.error}" for key, parked in list(self._keys.items())[:_NAMED_MAX]]
        more = f"; and {len(self._keys) - _NAMED_MAX} more" if len(self._keys) > _NAMED_MAX else ""
        return f"parked keys: {len(self._keys)}: {'; '.join(named)}{more} (memstream doctor)"
