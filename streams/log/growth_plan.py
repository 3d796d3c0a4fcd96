"""Plan of the row moves when a compacted topic gets more partitions. Pure: records in, steps out.

A row moves in two steps. First the row is written to the new partition of its key. When this write is durable, a
tombstone removes the row from the old partition. So the row always exists on at least one partition. After an
interruption, a new plan contains the remaining steps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from ...schemas.cloudevents import MOVED_HEADER
from ...schemas.errors import Fatal
from ...schemas.row_keys import INDEX_BUILT, SESSION_EPOCHS, partition_key
from ...schemas.session_epochs import SessionEpochs
from .markers import MARKER_KEY, OWN_KEYS, Marker
from .partitioner import partition_for
from .port import Record

SHOWN = 5
"""Maximum number of rows named in an error."""
KeyOf = Callable[[bytes], bytes]
"""Function from a row's key to the key that decides the row's partition. Raises ValueError if the row's key does not
contain that key."""


class Unplaceable(Fatal):
    """Some rows have no known partition, or different values on two partitions. Nothing was moved."""


def event_key(row_key: bytes) -> bytes:
    """Return the key of the events that write a table's row: a session key or an owner key. Raises ValueError."""
    key = partition_key(row_key.decode())
    if key is None or not all(key.split("/")):
        raise ValueError("it does not begin with the key of a session or an owner")
    return key.encode()


def own_key(key: bytes) -> bytes:
    """Return the key unchanged: the record's own key decides its partition."""
    return key


@dataclass(frozen=True, slots=True)
class Row:
    """The last record of a key in a partition."""

    offset: int
    digest: bytes
    """Digest of the value."""


@dataclass(slots=True)
class CompactedPartition:
    """The latest row of each key in a partition, as after compaction. Takes about 200 bytes per row."""

    rows: dict[bytes, Row] = field(default_factory=dict)
    erased: set[bytes] = field(default_factory=set)
    """Keys whose last record is a tombstone, except rows that were moved to another partition."""
    marker: Marker | None = None
    epochs: SessionEpochs = field(default_factory=SessionEpochs)
    """Session epochs (schemas/session_epochs.py), which only the observer's table has."""

    def take(self, record: Record) -> None:
        """Apply the next record of the partition."""
        key = record.key
        if key is None:
            return
        if key == MARKER_KEY.encode():
            self.marker = Marker.of(record.value)
        elif key == SESSION_EPOCHS.encode():
            self.epochs = SessionEpochs.read(record.value)
        elif key.startswith((OWN_KEYS.encode(), INDEX_BUILT.encode())):
            # These entries belong to the partition and are not moved. The next worker rebuilds the partition's index,
            # because the partition count has changed.
            return
        elif record.value is not None:
            self.rows[key] = Row(record.position.offset, hashlib.blake2b(record.value, digest_size=16).digest())
            self.erased.discard(key)
        else:
            self.rows.pop(key, None)
            if not any(name == MOVED_HEADER for name, _ in record.headers):
                self.erased.add(key)


@dataclass(frozen=True, slots=True)
class Move:
    """A row to be moved. `copy` is True when the row's value is not on the target partition yet."""

    key: bytes
    source: int
    target: int
    offset: int
    copy: bool


@dataclass(frozen=True, slots=True)
class MoveStep:
    """One write: the row's value to the target partition, or the tombstone to the source partition."""

    kind: Literal["copy", "remove"]
    move: Move


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The moves. `rows`: the rows of the topic after the moves, as the digest of each row's value by key."""

    moves: Sequence[Move]
    rows: Mapping[bytes, bytes]


def plan_moves(
    topic: str,
    image: Sequence[CompactedPartition],
    partitions: int,
    *,
    key_of: KeyOf,
    newest_on_target: bool = False,
) -> MovePlan:
    """Plan the moves for a new count of `partitions`. Raises Unplaceable.

    `newest_on_target`: producers already use the new count, so if a key has two values, the value on the key's target
    partition is the latest. Without this argument, two values of one key are an error.
    """
    moves: list[Move] = []
    rows: dict[bytes, bytes] = {}
    problems: list[str] = []
    for source, part in enumerate(image):
        for key, row in part.rows.items():
            try:
                target = partition_for(key_of(key), partitions)
            except ValueError as error:
                problems.append(f"partition {source}: the row {_shown(key)}: {error}")
                continue
            there = image[target] if target < len(image) else CompactedPartition()
            known = None if source == target else there.rows.get(key)
            erased = newest_on_target and source != target and key in there.erased
            if known is not None and known.digest != row.digest and not newest_on_target:
                problems.append(f"the row {_shown(key)} has two values, on partitions {source} and {target}")
            elif known is None and not erased and rows.setdefault(key, row.digest) != row.digest:
                problems.append(f"the row {_shown(key)} has two values, one of them on partition {source}")
            if source != target:
                moves.append(Move(key, source, target, row.offset, copy=known is None and not erased))
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise Unplaceable(
            f"{topic} has rows that cannot be placed, nothing was moved: {'; '.join(problems[:SHOWN])}{more}"
        )
    return MovePlan(moves, rows)


def steps(moves: Sequence[Move]) -> Iterator[Sequence[MoveStep]]:
    """Yield the steps in groups. A group may begin when the previous group is durable. The steps of one group may run
    in any order."""
    for _, group in groupby(sorted(moves, key=_source), key=_source):
        here = list(group)
        yield [MoveStep("copy", move) for move in here if move.copy]
        yield [MoveStep("remove", move) for move in here]


def _source(move: Move) -> int:
    return move.source


def misplaced_rows(plan: MovePlan, image: Sequence[CompactedPartition], partitions: int, *, key_of: KeyOf) -> list[str]:
    """Compare a topic after the moves with its plan. Return the problems; empty when each row is on its partition."""
    problems: list[str] = []
    found: dict[bytes, bytes] = {}
    for partition, part in enumerate(image):
        for key, row in part.rows.items():
            if partition_for(key_of(key), partitions) != partition:
                problems.append(f"the row {_shown(key)} is on partition {partition}")
            elif plan.rows.get(key) != row.digest:
                problems.append(f"the row {_shown(key)} has another value than before")
            found[key] = row.digest
    problems += [f"the row {_shown(key)} is missing" for key in plan.rows if key not in found]
    return problems


def _shown(key: bytes) -> str:
    return repr(key.decode("utf-8", "backslashreplace")[:200])
