"""mem0's `search` compared with recall: the same server, number of memories of one user and vectors; no model.

pip installs mem0ai without extras into a separate virtual environment, as for R7 (mem0.py). Without extras mem0
searches only by vectors. It has no episodes and no messages; recall also reads those.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import venv
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .mem0 import VERSION
from .recall_corpus import DIMENSION, Cue
from .report import Figure
from .world import NotMeasured

SCRIPT: Final = """
import json, sys, time, uuid
options = json.loads(sys.stdin.readline())
import numpy as np
from mem0 import Memory
from qdrant_client import QdrantClient
client = QdrantClient(url=options["qdrant"])
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": {"model": "none", "api_key": "none"}},
    "embedder": {"provider": "openai", "config": {
        "model": "none", "api_key": "none", "embedding_dims": options["dimension"]}},
    "vector_store": {"provider": "qdrant", "config": {
        "client": client, "collection_name": options["collection"], "embedding_model_dims": options["dimension"]}},
    "history_db_path": options["folder"] + "/history.db",
})
vectors = dict(options["cues"])
memory.embedding_model.embed = lambda text, *rest: vectors[text]
random = np.random.default_rng(7)
left = options["memories"]
while left:
    size = min(500, left)
    made = random.standard_normal((size, options["dimension"])).astype(np.float32)
    texts = [" ".join(f"w{number}" for number in row) for row in random.integers(0, 20000, (size, 9))]
    memory.vector_store.insert(
        vectors=made.tolist(), ids=[str(uuid.uuid4()) for _ in texts],
        payloads=[{"data": text, "user_id": options["user"], "hash": text, "text_lemmatized": text,
                   "created_at": "2026-11-20T10:00:00+00:00"} for text in texts])
    left -= size
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    took, cpu = [], time.process_time()
    for text in vectors:
        began = time.perf_counter()
        found = memory.search(text, filters={"user_id": options["user"]}, top_k=10, threshold=0.0)
        took.append(time.perf_counter() - began)
        assert found["results"], "nothing was found"
    cpu = (time.process_time() - cpu) / len(took)
    print(json.dumps({"took": sorted(took), "cpu": cpu}), flush=True)
client.delete_collection(options["collection"])
client.delete_collection(options["collection"] + "_entities")
"""


@dataclass(slots=True)
class _Mem0:
    """The process of mem0. It reads one line of JSON, then one line per round, and answers each line with one line."""

    process: asyncio.subprocess.Process
    problems: Path

    async def ask(self, line: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line.encode() + b"\n")
        answer = await self.process.stdout.readline()
        if not answer:
            raise NotMeasured(f"mem0: {self.problems.read_text(errors='replace')[-2000:]}")
        return json.loads(answer)


async def measure(
    qdrant: str,
    collection: str,
    folder: Path,
    cues: Sequence[Cue],
    *,
    facts: int,
    pairs: int,
    ours: Callable[[], Awaitable[Any]],
    what: str,
    on: str,
) -> Figure:
    """Alternate rounds of recall with rounds of mem0. `ours` returns recall's median, p95 and processor time.

    Raises NotMeasured when pip cannot install mem0, or mem0 failed.
    """
    python = folder / "venv" / "bin" / "python"
    await asyncio.to_thread(venv.create, folder / "venv", with_pip=True)
    installed = await asyncio.create_subprocess_exec(
        str(python), "-m", "pip", "install", "--quiet", f"mem0ai=={VERSION}", stderr=subprocess.PIPE
    )
    _, said = await installed.communicate()
    if installed.returncode != 0:
        raise NotMeasured(f"pip cannot install mem0: {said.decode(errors='replace')[-500:]}")
    problems = folder / "mem0.log"
    with problems.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-c", SCRIPT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=out,
            limit=1 << 24,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            | {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)},
        )
    theirs = _Mem0(process, problems)
    try:
        given = {"qdrant": qdrant, "collection": collection, "folder": str(folder), "dimension": DIMENSION}
        given |= {"user": "u0", "memories": facts, "cues": [[each.text, each.vector] for each in cues]}
        await theirs.ask(json.dumps(given))
        await theirs.ask("")
        rounds = []
        for number in range(pairs):
            if number % 2 == 0:
                one = await ours()
                rounds.append((one, await theirs.ask("")))
            else:
                other = await theirs.ask("")
                rounds.append((await ours(), other))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    medians = {
        "recall p50 ms": statistics.median(one.p50 for one, _ in rounds),
        "recall p95 ms": statistics.median(one.p95 for one, _ in rounds),
        "recall CPU ms": statistics.median(one.cpu for one, _ in rounds),
        "mem0 p50 ms": statistics.median(_at(other, 0.5) for _, other in rounds),
        "mem0 p95 ms": statistics.median(_at(other, 0.95) for _, other in rounds),
        "mem0 CPU ms": statistics.median(other["cpu"] for _, other in rounds),
    }
    return Figure(
        ratio="mem0",
        what=f"recall p95 in process ÷ p95 of mem0 {VERSION}'s search among its {facts} memories, {what}",
        on=on,
        value=statistics.median(one.p95 / _at(other, 0.95) for one, other in rounds),
        better="lower",
        detail={name: 1_000 * value for name, value in medians.items()},
    )


def _at(round_: Any, share: float) -> float:
    took: list[float] = round_["took"]
    return took[min(len(took) - 1, int(share * len(took)))]
