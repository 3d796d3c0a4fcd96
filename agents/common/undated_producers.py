"""Warnings about producers whose records have no usable timestamp, once per producer."""

from __future__ import annotations

from typing import Final

import structlog

from ...streams.engine.last_keys import LastKeys
from ...streams.log.port import Record

log = structlog.get_logger(__name__)
PRODUCERS_MAX: Final = 1_000
"""Maximum number of remembered producers. A forgotten producer is reported again."""


class UndatedProducers:
    """Warnings about producers, one per producer. A tenant and a `ce_source` identify a producer."""

    def __init__(self) -> None:
        self._named = LastKeys[tuple[str, str], bool](PRODUCERS_MAX)

    def warn(self, record: Record, tenant_id: str) -> None:
        source = next((value.decode("utf-8", "replace") for name, value in record.headers if name == "ce_source"), "")
        if self._named.get((tenant_id, source)):
            return
        self._named.put((tenant_id, source), True)
        log.warning(
            "record_timestamp_is_no_time",
            tenant_id=tenant_id,
            source=source[:128],
            partition=record.position.partition,
            offset=record.position.offset,
            timestamp=record.timestamp,
            counts_as="the time of reading",
            remedy="let the producer set timestamps in milliseconds since 1970, or occurred_at in its turns",
        )
