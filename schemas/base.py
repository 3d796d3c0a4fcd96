"""What all contracts have in common: bounded fields, UTC times, closed when written, tolerant when read."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)

CONTENT_MAX = 2_000
QUOTE_MAX = 500
SUBJECT_MAX = 128
REASON_MAX = 1_000
TAGS_MAX = 32
TAG_MAX = 64
METADATA_MAX_BYTES = 4 * 1024


class Contract(BaseModel):
    """Base of everything that travels or is stored.

    Code can only build what the contract has (unknown fields are refused); `read` takes what others wrote, ignoring
    fields that a later minor version added. A subclass that must keep unknown fields sets `extra="allow"`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null", allow_inf_nan=False)

    @classmethod
    def read(cls, value: bytes | str) -> Self:
        """Parse JSON from outside. Raises pydantic.ValidationError."""
        kept = "allow" if cls.model_config.get("extra") == "allow" else "ignore"
        return cls.model_validate_json(value, extra=kept)  # type: ignore[arg-type]

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Parse a decoded JSON object (a Qdrant payload). Unknown fields are ignored."""
        return cls.model_validate(payload, extra="ignore")

    def to_bytes(self) -> bytes:
        """The one way a contract becomes bytes: JSON, UTF-8, fields in their order."""
        return self.model_dump_json().encode()

    def to_payload(self) -> dict[str, JsonValue]:
        """As decoded JSON: times are RFC 3339 strings."""
        payload: dict[str, JsonValue] = self.model_dump(mode="json")
        return payload


def is_clean(text: str) -> bool:
    """No control characters and no surrogates (categories Cc and Cs)."""
    return text.isprintable() or not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def _given_id(value: str) -> str:
    if not is_clean(value):
        raise ValueError("must not contain control characters or surrogates")
    return value


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:  # an offset at the very end (or beginning) of time: pydantic lets only ValueError be caught
        raise ValueError("lies outside the years 1 to 9999 in UTC") from None


def _small_json(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if not value:
        return value
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > METADATA_MAX_BYTES:
        raise ValueError(f"is {size} bytes of JSON; at most {METADATA_MAX_BYTES} are allowed")
    return value


GivenId = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_given_id)]
"""An id given by producers: compared as it is, never parsed."""
OurId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
"""An id derived by us (schemas/ids.py)."""
Instant = Annotated[AwareDatetime, AfterValidator(_utc)]
"""A time: RFC 3339, UTC, `Z`, microseconds at most."""
Content = Annotated[str, StringConstraints(min_length=1, max_length=CONTENT_MAX)]
Quote = Annotated[str, StringConstraints(max_length=QUOTE_MAX)]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=SUBJECT_MAX)]
Reason = Annotated[str, StringConstraints(max_length=REASON_MAX)]
Tags = Annotated[tuple[Annotated[str, StringConstraints(max_length=TAG_MAX)], ...], Field(max_length=TAGS_MAX)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_small_json)]
Unit = Annotated[float, Field(ge=0, le=1)]
Signed = Annotated[float, Field(ge=-1, le=1)]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ModelName = Annotated[str, StringConstraints(max_length=200)]


def explain(error: ValidationError, *, limit: int = 5) -> str:
    """What is wrong, one line, by field; no input is repeated (it may be private)."""
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or 'value'}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)[:limit]
    ]
    more = error.error_count() - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")
