"""What is said of tiers of memory that are off: at start, and by `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ...memory.policies import TiersPolicy
from ...schemas.topics import StageName

log = structlog.get_logger(__name__)


def idle_stages(tiers: TiersPolicy) -> tuple[StageName, ...]:
    """Those that have nothing to do. Without facts consolidation still keeps episodes in order."""
    return ("reflector", "consolidation") if tiers.working_only else ()


def described(tiers: TiersPolicy) -> str:
    """What is kept, in a line."""
    if not tiers.off:
        return "all tiers are on"
    if tiers.working_only:
        return (
            f"the working set is alone ({', '.join(tiers.off)} off in [memory.tiers]): "
            f"{' and '.join(idle_stages(tiers))} have nothing to do"
        )
    return f"off in [memory.tiers]: {', '.join(tiers.off)}"


def tell_tiers(names: Sequence[StageName], tiers: TiersPolicy) -> None:
    """At start. A stage that has nothing to do runs all the same: what a deployment has is what it is told to have,
    and what lies in the log from before is passed over."""
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
