"""Report of disabled memory tiers, at the start of a worker and in `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ...memory.policies import TiersPolicy
from ...schemas.topics import StageName

log = structlog.get_logger(__name__)


def idle_stages(tiers: TiersPolicy) -> tuple[StageName, ...]:
    """Return the stages that have no work with these tiers. Without facts, consolidation still maintains episodes."""
    return ("reflector", "consolidation") if tiers.working_only else ()


def described(tiers: TiersPolicy) -> str:
    """Describe the tiers in one line."""
    if not tiers.off:
        return "all tiers are on"
    if tiers.working_only:
        return (
            f"only the working set is on ({', '.join(tiers.off)} off in [memory.tiers]): "
            f"{' and '.join(idle_stages(tiers))} have nothing to do"
        )
    return f"off in [memory.tiers]: {', '.join(tiers.off)}"


def tell_tiers(names: Sequence[StageName], tiers: TiersPolicy) -> None:
    """Log disabled tiers at the start. A stage without work still runs, and skips records from earlier settings."""
    if tiers.off:
        log.info("tiers_off", tiers=list(tiers.off))
    for stage in idle_stages(tiers):
        if stage in names:
            log.warning(
                "stage_idle",
                stage=stage,
                why="nothing goes beyond the working set: [memory.tiers] has episodic = false",
                remedy="run recorder and observer only, or write episodic = true",
            )
