"""Redrive of dead letters: append the refused record to its topic again, with a header that names the dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...schemas.cloudevents import MASKED_HEADER
from ...schemas.topics import DEAD_LETTER_SUFFIX
from ..log.partitioner import partition_for
from ..log.port import Headers, Position, Record

REDRIVEN: Final = "memstream-redriven"
"""Header of a redriven record: `<dlq topic>/<partition>@<offset>` of its dead letter."""
_FIRST_OF_OURS: Final = "kafka_dlt-original-topic"
_CUT: Final = ("memstream-value-sha256", "memstream-key-sha256")


class NotRedrivable(ValueError):
    """A dead letter cannot be redriven. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """A record to append to its original topic."""

    letter: str
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    original: Position
    masked: bool
    """True when a secret in value or headers is masked. The redriven record contains the mask, not the secret."""

    def look_from(self, partitions: int) -> dict[int, int]:
        """Return the offset by partition from which to search for an earlier redrive of this record.

        If the key still belongs to the partition of the refused record, an earlier redrive can only be after that
        record. A redriven record without a key, or with a key that now belongs to another partition, may be on any
        partition.
        """
        if self.key is not None and partition_for(self.key, partitions) == self.original.partition:
            return {self.original.partition: self.original.offset + 1}
        return dict.fromkeys(range(partitions), 0)


def letter_name(position: Position) -> str:
    """Return the name of a dead letter, which is the value of the header `REDRIVEN`."""
    return f"{position.topic}/{position.partition}@{position.offset}"


def redriven_letter(record: Record) -> str | None:
    """Return the name of the dead letter that was redriven as this record; None for any other record."""
    found = [value for name, value in record.headers if name == REDRIVEN]
    return found[-1].decode("utf-8", "replace") if found else None


def redrive_of(letter: Record) -> Redrive:
    """Build the redrive of a dead letter. Raises NotRedrivable."""
    ours = own_headers(letter)
    if not ours:
        raise NotRedrivable("its headers do not name its record")
    begin = _begin_of_ours(letter.headers)
    if any(name in ours for name in _CUT):
        raise NotRedrivable("its key or value was cut")
    topic = ours[_FIRST_OF_OURS]
    if topic + DEAD_LETTER_SUFFIX != letter.position.topic:
        raise NotRedrivable("its headers name the record of another topic")
    try:
        partition, offset, timestamp = (
            int(ours[f"kafka_dlt-original-{name}"]) for name in ("partition", "offset", "timestamp")
        )
    except (KeyError, ValueError):
        raise NotRedrivable("its headers do not name its record") from None
    name = letter_name(letter.position)
    kept = tuple(header for header in letter.headers[:begin] if header[0] != REDRIVEN)
    return Redrive(
        letter=name,
        topic=topic,
        key=letter.key,
        value=letter.value,
        headers=(*kept, (REDRIVEN, name.encode())),
        timestamp=timestamp,
        original=Position(topic, partition, offset),
        masked=any(name == MASKED_HEADER for name, _ in letter.headers),
    )


def own_headers(letter: Record) -> dict[str, str]:
    """Return the headers that the stage added to a refused record; empty if no stage of this product wrote the letter.

    The refused record may itself be a dead letter of another tool, or have headers with the same names: the stage's
    headers come last.
    """
    begin = _begin_of_ours(letter.headers)
    return {name: value.decode("utf-8", "replace") for name, value in letter.headers[begin:]}


def _begin_of_ours(headers: Headers) -> int:
    """Return the index of the stage's first header, or the number of headers if there is none."""
    return max((at for at, (name, _) in enumerate(headers) if name == _FIRST_OF_OURS), default=len(headers))
