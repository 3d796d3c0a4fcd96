"""Size of a session's row in the observer's table, with and without its published outcome (docs/design/rows.md).

    python -m bench.session_rows

It uses real decisions and rows of the observer, with a scripted model that returns two observations per turn, and no
broker.
"""

from __future__ import annotations

import asyncio
import json

import cramjam

from memstream.agents.common.session_ends import TRIMS
from memstream.schemas import ids
from memstream.schemas.command_kinds import TRIM_SESSION
from memstream.schemas.row_keys import INDEX
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import SESSION, ObserverWorld
from tests.support.openai_bodies import OBSERVATION

TURNS = (1, 10, 100, 1_000)
SAID = (
    "We talked with the landlord again and she agreed that the lease of the flat in Oslo runs until August, no. {n}. "
    "My sister Jennifer moves in with us in March because her new job at the hospital starts then, so {n} is settled."
)


def answer(ask: Ask) -> Answer:
    """Return two observations per turn, each with a quote of one sentence."""
    observations = []
    for name, text in ask.turns.items():
        for sentence in text.removeprefix("user: ").strip().split(". "):
            quote = sentence.rstrip(".")
            fields = {"turn": name, "subject": "user", "content": f"Says: {quote}"[:200], "evidence": quote[:120]}
            observations.append({**OBSERVATION, **fields})
    return {"observations": observations}


async def sizes(turns: int) -> dict[str, int]:
    """Return sizes in bytes: the row, the row without its outcome, its turn ids, and the records that trim it."""
    world, key = ObserverWorld(answer), ids.session_key(*SESSION)
    for n in range(turns):
        await world.deliver(world.turn(SAID.format(n=n), f"turn-{n:032d}"))
    rows = world.harness.rows.changelog
    whole = rows[key]
    await world.deliver(world.command("trim", TRIM_SESSION))
    small = rows[key]
    index_rows = sum(len(row_key) for row_key in rows if row_key.startswith(INDEX + TRIMS))
    return {
        "turns": turns,
        "row": len(whole),
        "trimmed": len(small),
        "turn_ids": len(world.row().seen.packed),
        "row_zstd": len(compressed(whole)),
        "trimmed_zstd": len(compressed(small)),
        "index_row_and_tombstone": 2 * index_rows,
    }


def compressed(row: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(row))


def main() -> None:
    for turns in TURNS:
        print(json.dumps(asyncio.run(sizes(turns))))


if __name__ == "__main__":
    main()
