"""The time by which the last byte of an erased user leaves a topic, from the topic's settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from memstream.streams.log.port import Log, TopicLayout
from memstream.tools.erasure.log_ends import CHECKS, log_ends

MOMENT = datetime(2026, 11, 27, 12, tzinfo=UTC)
DAY, HOUR = 86_400_000, 3_600_000


class Layouts:
    def __init__(self, config: dict[str, str]) -> None:
        self._layout = TopicLayout("memory.facts", 1, config)

    async def topics(self) -> dict[str, TopicLayout]:
        return {"memory.facts": self._layout, "memory.policies": self._layout, "foreign": self._layout}


async def end_of(**config: Any) -> timedelta | None:
    given = {name.replace("_", "."): str(value) for name, value in config.items()}
    [end] = await log_ends(cast(Log, Layouts(given)), MOMENT)
    assert end.why
    return None if end.gone_by is None else end.gone_by - MOMENT - CHECKS


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cleanup_policy": "delete", "retention_ms": DAY}, timedelta(days=1)),
        ({"cleanup_policy": "delete", "retention_ms": DAY, "segment_ms": HOUR}, timedelta(hours=25)),
        ({"cleanup_policy": "delete", "retention_ms": -1}, None),
        ({"cleanup_policy": "delete", "retention_ms": "soon"}, None),
        ({"cleanup_policy": "compact"}, None),
        ({"cleanup_policy": "compact", "max_compaction_lag_ms": 2**63 - 1}, None),
        (
            {"cleanup_policy": "compact", "max_compaction_lag_ms": 2 * DAY, "delete_retention_ms": HOUR},
            timedelta(days=4, hours=1),
        ),
    ],
)
async def test_the_end_follows_from_the_settings(config: dict[str, Any], expected: timedelta | None) -> None:
    assert await end_of(**config) == expected
