"""Figures of the start page: what the tenants of a credential have, and how old the unread records of a stage are."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry

from ...schemas.errors import Transient
from ...schemas.topics import StageName
from ...streams.log.stage_lag import StageLag

ReadOldest = Callable[[StageName], Awaitable[datetime | None]]
"""Function that returns the time of the oldest record that a stage has not read."""
SERIES: Final = {
    "memstream_waiting_turns": "waiting",
    "memstream_model_calls_total": "calls",
    "memstream_model_tokens_total": "tokens",
}


@dataclass(slots=True)
class TenantFigures:
    """Figures of one tenant in this process: turns that wait to be observed, and the calls and tokens of models since
    its start."""

    waiting: int = 0
    calls: int = 0
    tokens: int = 0


def tenant_figures(registry: CollectorRegistry, tenants: frozenset[str] | None) -> Mapping[str, TenantFigures]:
    """Return the figures of these tenants, or of every tenant that has some, by name."""
    found: defaultdict[str, TenantFigures] = defaultdict(
        TenantFigures, {each: TenantFigures() for each in tenants or ()}
    )
    for family in registry.collect():
        for sample in family.samples:
            name, tenant = SERIES.get(sample.name), sample.labels.get("tenant", "")
            if name is not None and (tenants is None or tenant in tenants):
                setattr(found[tenant], name, getattr(found[tenant], name) + round(sample.value))
    return dict(sorted(found.items()))


async def oldest_of(oldest: ReadOldest, lags: Sequence[StageLag]) -> Mapping[StageName, datetime | None]:
    """Return the time of the oldest unread record of each stage that has a lag."""
    behind = [each.stage for each in lags if each.behind]
    try:
        return dict(zip(behind, await asyncio.gather(*map(oldest, behind)), strict=True))
    except Transient:
        return {}
