"""Results of commands lie under the id of their command, percent-encoded as every part of a key."""

from __future__ import annotations

from pathlib import Path

from memstream.schemas.topics import RESULTS
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import Bench, open_bench
from tests.support.observer_world import ObserverWorld
from tests.support.reflector_world import command, reflector

ODD = "nightly/№ 1"
ENCODED = b"nightly%2F%E2%84%96%201"


def keys(bench: Bench) -> list[bytes | None]:
    return [record.key for record in bench.sent if record.topic == RESULTS.name]


async def test_of_the_observer() -> None:
    world = ObserverWorld()
    await world.deliver(world.command(ODD))
    assert [record.key for record in world.harness.on(RESULTS.name)] == [ENCODED]


async def test_of_the_reflector(tmp_path: Path) -> None:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    await bench.run(command(bench, kind="nobody's", command_id=ODD))
    assert keys(bench) == [ENCODED]
    await bench.store.close()


async def test_of_consolidation(tmp_path: Path) -> None:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.run(Consolidating(bench).command("prune", ODD))
    assert keys(bench) == [ENCODED]
    await bench.store.close()
