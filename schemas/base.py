"""Common base of all contracts: bounded fields, UTC times, strict writing, tolerant reading."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Annotated, Any, Final, Self

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

from .said_at import in_utc

CONTENT_MAX = 2_000
QUOTE_MAX = 500
SUBJECT_MAX = 128
REASON_MAX = 1_000
TAGS_MAX = 32
TAG_MAX = 64
METADATA_MAX_BYTES = 4 * 1024


class Contract(BaseModel):
    """Base of every record on a topic or in the store.

    Code can set only the contract's fields; unknown fields are refused. `read` ignores unknown fields, because a
    later minor version may have added them. A subclass that must keep unknown fields sets `extra="allow"`.
    """

    model_config = ConfigDict(
        hide_input_in_errors=True, frozen=True, extra="forbid", ser_json_inf_nan="null", allow_inf_nan=False
    )

    @classmethod
    def read(cls, value: bytes | str) -> Self:
        """Parse JSON from outside. Raise pydantic.ValidationError when it is invalid."""
        kept = "allow" if cls.model_config.get("extra") == "allow" else "ignore"
        return cls.model_validate_json(value, extra=kept)  # type: ignore[arg-type]

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Parse a decoded JSON object (a Qdrant payload). Unknown fields are ignored."""
        return cls.model_validate(payload, extra="ignore")

    def to_bytes(self) -> bytes:
        """Serialise the contract: JSON, UTF-8, fields in their order. No other code serialises contracts."""
        return self.model_dump_json().encode()

    def to_payload(self) -> dict[str, JsonValue]:
        """Return decoded JSON with times as RFC 3339 strings."""
        payload: dict[str, JsonValue] = self.model_dump(mode="json")
        return payload


def is_clean(text: str) -> bool:
    """Return whether a text has no control characters and no surrogates (categories Cc and Cs)."""
    return text.isprintable() or not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def _given_id(value: str) -> str:
    if not is_clean(value):
        raise ValueError("must not contain control characters or surrogates")
    return value


def json_size(value: JsonValue) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


METADATA_DEPTH_MAX: Final = 32
"""Maximum nesting of metadata that is stored."""
RECORD_DEPTH_MAX: Final = 64
"""Maximum nesting of a record in the store. Deeper than 121 levels, the embedded engine cannot open its folder."""
COUNTER_MAX: Final = 2**53
"""Maximum version, turn number or place of a restored record. Memory counts on from it."""
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1
"""Range of the integers that every engine stores exactly."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def small_json(value: dict[str, JsonValue], most: int = METADATA_MAX_BYTES) -> dict[str, JsonValue]:
    """Return the value. Raise ValueError when it has more than `most` bytes as JSON."""
    if not value:
        return value
    if (size := json_size(value)) > most:
        raise ValueError(f"is {size} bytes of JSON; at most {most} are allowed")
    return value


def why_unstorable(value: JsonValue, depth_max: int = METADATA_DEPTH_MAX) -> str | None:
    """Return why no engine can store a value, or None.

    An engine does not read a collection with a record that is nested too deeply, and rounds larger integers.
    """
    left: list[tuple[JsonValue, int]] = [(value, 0)]
    while left:
        each, depth = left.pop()
        if isinstance(each, str):
            if _SURROGATE.search(each) is not None:
                return "has a lone surrogate, which is not Unicode"
        elif isinstance(each, dict | list):
            if depth == depth_max:
                return f"is nested deeper than {depth_max} levels"
            left += [(part, depth + 1) for part in each]
            left += [(part, depth + 1) for part in each.values()] if isinstance(each, dict) else ()
        elif isinstance(each, float):
            if not math.isfinite(each):
                return "has NaN or an infinity"
        elif isinstance(each, int) and not INTEGER_MIN <= each <= INTEGER_MAX:
            return "has an integer beyond 64 bits: write it as a text"
    return None


def storable_json(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the value. Raise ValueError when no engine can store it."""
    if (why := why_unstorable(value)) is not None:
        raise ValueError(why)
    return value


GivenId = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_given_id)]
"""An id that producers choose. It is compared byte by byte and never parsed."""
CommandId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
IssuedBy = Annotated[str, StringConstraints(max_length=128)]
OurId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
"""An id that memstream derives (schemas/ids.py)."""
Instant = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""A time: RFC 3339, UTC, `Z`, microseconds at most."""
Content = Annotated[str, StringConstraints(min_length=1, max_length=CONTENT_MAX)]
Quote = Annotated[str, StringConstraints(max_length=QUOTE_MAX)]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=SUBJECT_MAX)]
Reason = Annotated[str, StringConstraints(max_length=REASON_MAX)]
Tag = Annotated[str, StringConstraints(max_length=TAG_MAX)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=TAGS_MAX)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(small_json)]
StoredMetadata = Annotated[Metadata, AfterValidator(storable_json)]
"""Metadata that an edit gives to a record."""
Unit = Annotated[float, Field(ge=0, le=1)]
Signed = Annotated[float, Field(ge=-1, le=1)]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ModelName = Annotated[str, StringConstraints(max_length=200)]


def describe(error: BaseException) -> str:
    """Describe an error for a log or a dead letter, without the rejected input."""
    return f"{type(error).__name__}: {explain(error) if isinstance(error, ValidationError) else error}"


def explain(error: ValidationError, *, limit: int = 5) -> str:
    """Return the errors in one line, by field. Input values are left out, because they may be private."""
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or 'value'}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)[:limit]
    ]
    more = error.error_count() - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")
