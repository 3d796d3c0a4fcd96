"""A dead letter as data: the stage's headers, the ids in its value, and its content. Filters of letters."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ...schemas.base import GivenId, Instant
from ...schemas.cloudevents import MASKED_HEADER
from ...schemas.topics import DEAD_LETTER_SUFFIX, catalogue
from ...schemas.turns import Owner
from ...streams.engine.codec import fields_of
from ...streams.engine.redrive import NotRedrivable, own_headers, redrive_of
from ...streams.log.port import Record

LETTER_TOPICS: Final = tuple(topic.name for topic in catalogue() if topic.name.endswith(DEAD_LETTER_SUFFIX))
T = TypeVar("T")
_ID: TypeAdapter[str] = TypeAdapter(GivenId)
_OWNER: TypeAdapter[Owner] = TypeAdapter(Owner)
_DIGITS_MAX: Final = 19


class DeadLetter(BaseModel):
    """One dead letter without its content. A field is null if neither headers nor value have it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: str
    partition: int
    offset: int
    written_at: Instant | None
    """Time of the refusal."""
    reason: str | None
    stage: str | None
    tenant_id: str | None
    """Tenant that the stage read in the value."""
    user_id: str | None
    session_id: str | None
    turn_id: str | None
    owner: Owner | None
    """Owner that the value names besides the user."""
    attempts: int | None
    message: str | None
    """The error. It names wrong fields, and never their content."""
    exception: str | None
    original_topic: str | None
    original_partition: int | None
    original_offset: int | None
    original_timestamp: int | None
    masked: bool
    """True if a secret in the letter is masked."""
    not_redrivable: str | None
    """Reason why the letter cannot be put back."""

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Every owner that the value names."""
        user = () if self.user_id is None else (Owner(scope="user", id=self.user_id),)
        return user if self.owner is None or self.owner in user else (*user, self.owner)


class LetterContent(BaseModel):
    """The refused record, and the headers of the letter. A key or value that is not UTF-8 is in base64."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Filter of letters. A field that is None matches every letter."""

    reason: str | None = None
    key: str | None = None
    tenant: str | None = None
    user: str | None = None
    stage: str | None = None

    def takes(self, record: Record) -> bool:
        return (self.key is None or record.key == self.key.encode()) and self.matches(letter_of(record))

    def matches(self, letter: DeadLetter) -> bool:
        """Return whether the filter takes a letter, without its key."""
        return (
            self.reason in (None, letter.reason)
            and self.tenant in (None, letter.tenant_id)
            and self.stage in (None, letter.stage)
            and (self.user is None or Owner(scope="user", id=self.user) in letter.owners)
        )


def letter_of(record: Record) -> DeadLetter:
    """Read a dead letter. Any record can be read."""
    headers = own_headers(record)
    value = fields_of(record.value)
    session: dict[str, Any] = found if isinstance(found := value.get("session"), dict) else value
    position = record.position

    def number(name: str) -> int | None:
        text = headers.get(name, "")
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX else None

    try:
        redrive_of(record)
        why_not = None
    except NotRedrivable as error:
        why_not = str(error)
    return DeadLetter(
        topic=position.topic,
        partition=position.partition,
        offset=position.offset,
        written_at=record.written_at,
        reason=headers.get("memstream-reason"),
        stage=headers.get("memstream-stage"),
        tenant_id=headers.get("memstream-tenant"),
        user_id=_read(_ID.validate_python, session.get("user_id")),
        session_id=_read(_ID.validate_python, session.get("session_id")),
        turn_id=_read(_ID.validate_python, value.get("turn_id")),
        owner=_read(_OWNER.validate_python, value.get("owner")),
        attempts=number("memstream-attempts"),
        message=headers.get("kafka_dlt-exception-message"),
        exception=headers.get("kafka_dlt-exception-fqcn"),
        original_topic=headers.get("kafka_dlt-original-topic"),
        original_partition=number("kafka_dlt-original-partition"),
        original_offset=number("kafka_dlt-original-offset"),
        original_timestamp=number("kafka_dlt-original-timestamp"),
        masked=any(name == MASKED_HEADER for name, _ in record.headers),
        not_redrivable=why_not,
    )


def letter_content(record: Record) -> LetterContent:
    key, key_base64 = _text_or_base64(record.key)
    value, value_base64 = _text_or_base64(record.value)
    headers = tuple((name, content.decode("utf-8", "replace")) for name, content in record.headers)
    return LetterContent(key=key, key_base64=key_base64, value=value, value_base64=value_base64, headers=headers)


def letter_topic(topic: str) -> str | None:
    """Return the topic of dead letters for a name with or without the suffix; None if there is none."""
    name = topic if topic.endswith(DEAD_LETTER_SUFFIX) else topic + DEAD_LETTER_SUFFIX
    return name if name in LETTER_TOPICS else None


def _read(read: Callable[[object], T], value: object) -> T | None:
    """Return a field of a value that a stage refused; None if it is missing or wrong."""
    try:
        return None if value is None else read(value)
    except ValidationError:
        return None


def _text_or_base64(raw: bytes | None) -> tuple[str | None, str | None]:
    if raw is None:
        return None, None
    try:
        return raw.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(raw).decode()
