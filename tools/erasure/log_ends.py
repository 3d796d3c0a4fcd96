"""The time by which the last byte of an erased user is gone from each topic, from the topic's settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from ...schemas.erasures import LogEnd
from ...schemas.topics import POLICIES, RESULTS, catalogue
from ...streams.log.port import Log

CHECKS: Final = timedelta(minutes=10)
"""Time in which a log looks for segments and records to delete."""
_FOR_EVER: Final = timedelta(days=36_500)
_DAY_MS: Final = 86_400_000


async def log_ends(log: Log, moment: datetime) -> tuple[LogEnd, ...]:
    """Return the ends of all topics that had records of a user who was erased at `moment`. Raises Transient."""
    layouts = await log.topics()
    return tuple(
        _end(topic.name, layouts[topic.name].config, moment)
        for topic in catalogue()
        if topic.name in layouts and topic not in (POLICIES, RESULTS)
    )


def _end(name: str, config: Mapping[str, str], moment: datetime) -> LogEnd:
    kept: list[tuple[str, timedelta | None]]
    if "compact" in config.get("cleanup.policy", "delete"):
        kept = [
            ("max.compaction.lag.ms", _time(config, "max.compaction.lag.ms", None)),  # the values go
            ("max.compaction.lag.ms", _time(config, "max.compaction.lag.ms", None)),  # the tombstones, later
            ("delete.retention.ms", _time(config, "delete.retention.ms", _DAY_MS)),
        ]
    else:
        kept = [("retention.ms", _time(config, "retention.ms", 7 * _DAY_MS))]
        if "segment.ms" in config:  # a record goes with its segment; the log on disk has none
            kept.append(("segment.ms", _time(config, "segment.ms", None)))
    unbounded = [setting for setting, time in kept if time is None]
    if unbounded:
        why = f"{unbounded[0]} sets no end: set it on this topic"
        return LogEnd(topic=name, gone_by=None, why=why)
    times = [time for _, time in kept if time is not None]
    why = " + ".join(f"{setting} {config.get(setting, 'default')}" for setting, _ in kept)
    return LogEnd(topic=name, gone_by=moment + sum(times, CHECKS), why=why)


def _time(config: Mapping[str, str], setting: str, default: int | None) -> timedelta | None:
    """Return the time of a setting; None if it is unlimited."""
    try:
        value = int(config[setting]) if setting in config else default
    except ValueError:
        return None
    if value is None or value < 0 or value >= _FOR_EVER / timedelta(milliseconds=1):
        return None
    return timedelta(milliseconds=value)
