"""Dead letters: the raw refused record, with headers for the record's position and the reason.

The headers have the names that Spring Kafka uses. docs/reference/dead-letters.md lists them.
"""

from __future__ import annotations

import hashlib

from pydantic import ValidationError

from ...schemas.base import explain
from ...schemas.errors import ContentFiltered, DeadLetterReason
from ...schemas.outcomes import OutRecord
from ...schemas.topics import DEAD_LETTER_SUFFIX, group_of
from ..log.port import Headers, Record
from .codec import tenant_of

WHOLE_MAX_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
MESSAGE_MAX = 1_000


def dead_letter(
    record: Record, *, stage: str, reason: DeadLetterReason, error: BaseException, attempts: int
) -> OutRecord:
    """Build the record for `<topic>.dlq`.

    A dead letter must fit into its topic. A key or value above 1 MiB is cut to its first 64 KiB; the headers
    memstream-value-sha256 and memstream-value-bytes (memstream-key-…) describe the original. The record's own headers
    are left out when they exceed 1 MiB in total.
    """
    cause = error.__cause__ or error
    size = sum(len(name.encode("utf-8", "replace")) + len(content) for name, content in record.headers)
    headers = list(record.headers) if size <= WHOLE_MAX_BYTES else []
    fields: dict[str, str] = {
        "kafka_dlt-original-topic": record.position.topic,
        "kafka_dlt-original-partition": str(record.position.partition),
        "kafka_dlt-original-offset": str(record.position.offset),
        "kafka_dlt-original-timestamp": str(record.timestamp),
        "kafka_dlt-original-consumer-group": group_of(stage),
        "kafka_dlt-exception-fqcn": _name(type(cause)),
        "kafka_dlt-exception-message": message_of(cause)[:MESSAGE_MAX],
        "memstream-stage": stage,
        "memstream-attempts": str(attempts),
        "memstream-reason": reason,
    }
    tenant = tenant_of(record.value)
    if tenant is not None:
        fields["memstream-tenant"] = tenant
    key = _head(record.key, "key", fields)
    value = _head(record.value, "value", fields)
    headers += [(name, text.encode("utf-8", "replace")) for name, text in fields.items()]
    return OutRecord(topic=record.position.topic + DEAD_LETTER_SUFFIX, key=key, value=value, headers=tuple(headers))


def is_refused_by_model(letter: OutRecord) -> bool:
    """Return whether the model refused the record's content or gave no usable answer."""
    return ("memstream-reason", b"refused_by_model") in letter.headers


def reason_of(headers: Headers) -> str:
    """Return the reason of a dead letter, or "" when its headers have no reason.

    The last of several reasons counts: the refused record may itself be a dead letter with a reason of its own.
    """
    reasons = [value for name, value in headers if name == "memstream-reason"]
    return reasons[-1].decode("utf-8", "replace") if reasons else ""


def is_filtered_letter(letter: OutRecord) -> bool:
    """Return whether a content filter refused the record of a dead letter."""
    return ("kafka_dlt-exception-fqcn", _name(ContentFiltered).encode()) in letter.headers


def _name(error: type[BaseException]) -> str:
    return f"{error.__module__}.{error.__qualname__}"


def message_of(error: BaseException) -> str:
    """Return an error's message without the input that caused it."""
    return explain(error) if isinstance(error, ValidationError) else str(error)


def _head(raw: bytes | None, name: str, fields: dict[str, str]) -> bytes | None:
    if raw is None or len(raw) <= WHOLE_MAX_BYTES:
        return raw
    fields[f"memstream-{name}-sha256"] = hashlib.sha256(raw).hexdigest()
    fields[f"memstream-{name}-bytes"] = str(len(raw))
    return raw[:HEAD_BYTES]
