"""`memstream verify` as a user runs it, after the demo."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.log.embedded import EmbeddedLog
from tests.support.cli_process import InProcess, turn


async def appended(folder: Path, topic: str, key: bytes, value: bytes) -> None:
    log = EmbeddedLog(folder=folder)
    await log.start()
    try:
        await log.append(topic, key=key, value=value)
    finally:
        await log.close()


async def first_value(folder: Path, topic: str) -> tuple[bytes, bytes]:
    log = EmbeddedLog(folder=folder)
    await log.start()
    try:
        async for record in log.read(topic):
            return record.key or b"", record.value or b""
    finally:
        await log.close()
    raise AssertionError(f"{topic} is empty")


def test_verify(tmp_path: Path) -> None:
    memstream = InProcess(tmp_path)
    folder = tmp_path / ".memstream"
    memstream("topics", "create")
    empty = memstream("verify", "--json")
    assert (empty.code, {line["checked"] for line in empty.records} - {0}) == (0, {7})  # 7: the lag, of each topic
    assert memstream("demo").code == 0
    clean = memstream("verify", "--tenant", "demo", "--json")
    assert clean.code == 0, clean.out
    assert [line["invariant"] for line in clean.records] == ["I1", "I2", "I3", "I5", "I6", "I7", "I8", "facts"]
    for line in clean.records:
        assert line["ok"] is True
        assert line["violations"] == []
    assert {"invariant", "ok", "checked", "violations"} <= clean.records[0].keys()
    assert clean.records[0]["checked"] > 20

    key, value = asyncio.run(first_value(folder, OBSERVATIONS.name))
    other = value.replace(b'"observations":[', b'"x":[],"observations":[')
    asyncio.run(appended(folder, OBSERVATIONS.name, key, other))
    late = turn("t1", "Hello.", tenant="demo", user="ana", session="s9").encode()
    asyncio.run(appended(folder, TURNS.name, b"demo/ana/s9", late))
    doubled = memstream("verify", "--json")
    assert doubled.code == 1
    verdicts = {line["invariant"]: line for line in doubled.records}
    assert "with different values" in verdicts["I1"]["violations"][0]["what"]
    assert verdicts["I1"]["violations"][0]["records"][0].startswith("memory.observations/0@")
    assert {name for name, line in verdicts.items() if not line["ok"]} == {"I1", "I2", "I3", "I8"}
    lag = {each["what"] for each in verdicts["I8"]["violations"]}
    assert lag == {"recorder is 1 records behind", "observer is 1 records behind", "reflector is 1 records behind"}

    told = memstream("verify", "--stage", "observer")
    assert told.code == 1
    assert "WRONG  I1" in told.out
    assert "ok     I5" in told.out
    assert "memory.observations/0@" in told.out
    assert "reflector" not in told.out
    assert memstream("verify", "--stage", "observers").code == 2
