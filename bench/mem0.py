"""R7 against mem0: tokens of prompts and answers for the same turns and the same scripted model.

It runs only with `--mem0`: it creates a virtual environment in the run's folder and installs mem0ai into it with pip,
without extras. A token is four characters on both sides; a JSON Schema in a request counts as part of the prompt.
Embedder calls are shown but do not count as tokens: memstream's default has none. memstream's tokens include
consolidation and digests; mem0 has no such runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from memstream.agents.consolidation.rows import ProgressRow, is_owner_key
from memstream.schemas.topics import changelog_of

from .freshness import STAGES, start_all
from .model import DIMENSION, Calls
from .report import Figure
from .turns import Said, Speakers, produce
from .world import NotMeasured, World

VERSION = "2.2.1"
SCRIPT = """
import json, sys
from mem0 import Memory
options = json.load(sys.stdin)
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": {"model": "scripted-1"}},
    "embedder": {"provider": "openai", "config": {"model": "scripted-e", "embedding_dims": options["dimension"]}},
    "vector_store": {"provider": "qdrant", "config": {
        "path": options["folder"] + "/qdrant", "on_disk": True, "collection_name": "bench",
        "embedding_model_dims": options["dimension"]}},
    "history_db_path": options["folder"] + "/history.db",
})
for user, text in options["turns"]:
    memory.add([{"role": "user", "content": text}], user_id=user)
"""


@dataclass(frozen=True, slots=True)
class Load:
    users: int
    turns: int


FULL = Load(users=10, turns=120)
QUICK = Load(users=2, turns=4)


async def measure(world: World, load: Load) -> list[Figure]:
    said = Speakers(f"mem0-{world.kind}", load.users).turns(load.turns)
    ours = await _ours(world, said)
    theirs = await _theirs(world, said)
    return [
        Figure(
            ratio="R7",
            what=f"tokens a turn ÷ mem0 {VERSION}, the same {load.turns} turns",
            on=world.kind,
            value=ours.tokens / theirs.tokens,
            target=1.0,
            better="lower",
            detail={
                "tokens a turn": ours.tokens / load.turns,
                "mem0": theirs.tokens / load.turns,
                "calls a turn": ours.chats / load.turns,
                "mem0's": theirs.chats / load.turns,
                "mem0's embedder": theirs.embeddings / load.turns,
            },
        )
    ]


async def _ours(world: World, said: list[Said]) -> Calls:
    """Send each turn when the previous turn is done, so that no two turns are observed together."""
    start_all(world)
    await _at_rest(world)  # handles the rest of other measurements
    await world.model.reset(latency=0.0)
    users = len({each.key for each in said})
    for first in range(0, len(said), users):
        await produce(world.log, said[first : first + users])
        await world.settled(*STAGES)
    await _at_rest(world)
    calls = await world.model.calls()
    await world.stop()
    return calls


async def _at_rest(world: World) -> None:
    await world.settled(*STAGES)
    await world.until(lambda: _nothing_owed(world), "what follows each run of consolidation")
    await world.settled(*STAGES)


async def _nothing_owed(world: World) -> bool:
    """Return whether prune, hygiene and digest have followed every run.

    They come seconds after the run, when the log is already empty.
    """
    changelog = changelog_of("consolidation")
    assert changelog is not None
    rows = {record.key.decode(): record.value async for record in world.log.read(changelog.name) if record.key}
    return not any(
        ProgressRow.read(value).errands for key, value in rows.items() if value is not None and is_owner_key(key)
    )


async def _theirs(world: World, said: list[Said]) -> Calls:
    folder = world.folder / "mem0"
    python = folder / "venv" / "bin" / "python"
    await asyncio.to_thread(venv.create, folder / "venv", with_pip=True)
    await _run(python, "-m", "pip", "install", "--quiet", f"mem0ai=={VERSION}", env={})
    await world.model.reset(latency=0.0)
    turns = [(each.key.decode(), json.loads(each.value)["messages"][0]["content"]) for each in said]
    given = json.dumps({"folder": str(folder), "dimension": DIMENSION, "turns": turns})
    env = {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), **world.model.environment}
    await _run(python, "-c", SCRIPT, env=env, stdin=given.encode())
    return await world.model.calls()


async def _run(python: Path, *arguments: str, env: dict[str, str], stdin: bytes = b"") -> None:
    process = await asyncio.create_subprocess_exec(
        str(python),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=sys.stderr,
        stderr=asyncio.subprocess.PIPE,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | env,
    )
    _, problems = await process.communicate(stdin)
    if process.returncode != 0:
        raise NotMeasured(f"mem0: exit {process.returncode}\n{problems.decode(errors='replace')[-2000:]}")
