"""Two turns whose second statement only a judge can compare with the first, and a scripted judge."""

from __future__ import annotations

import re
from collections.abc import Callable

from memstream.schemas.facts import FactUpdated
from tests.support.conversation import PERSISTENT
from tests.support.model_server import Answer, Ask, Json, Script, observing
from tests.support.pipeline import Pipeline, turn
from tests.support.polling import wait_for

KNOWN_FACT, PENDING_FACT = "Cannot swim", "Learned to swim"
ATTRIBUTE: Json = {"category": "attribute", **PERSISTENT}
KNOWN = {
    "I cannot swim": [{"content": KNOWN_FACT, **ATTRIBUTE}],
    "I learned to swim": [{"content": PENDING_FACT, **ATTRIBUTE}],
}
FIRST, SECOND = turn("Sadly, I cannot swim.", 1), turn("This summer I learned to swim!", 2)


def judging(decide: Callable[[Ask], str]) -> Script:
    """Return a model that observes KNOWN and decides every pair by `decide`."""

    def script(ask: Ask) -> Answer:
        if ask.task != "judge":
            return observing(KNOWN)(ask)
        pairs = re.findall(r"^\[(p\d+)\]$", ask.last_user_message, re.MULTILINE)
        decision = decide(ask)
        return {"judgements": [{"pair_id": pair, "decision": decision, "reason": "so"} for pair in pairs]}

    return script


def each_time_another(ask: Ask) -> str:
    """Decide that the new fact replaces the known one; asked again, that both hold."""
    return "coexist" if ask.seen_before else "supersede"


async def verdict(pipeline: Pipeline, *, deadline: float = 60.0) -> FactUpdated:
    """Wait until the pending fact is approved. Return the event."""

    async def approved() -> list[FactUpdated]:
        return [each for each in await pipeline.updates() if each.action == "approved"]

    found = await wait_for(approved, "the verdict", until=bool, deadline=deadline, detail=pipeline.logs)
    return found[0]
