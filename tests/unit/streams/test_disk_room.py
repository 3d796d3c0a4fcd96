"""The room that a disk must have before log and tables are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from memstream.schemas.errors import Transient
from memstream.streams.faust.bulk_writes import StoreErrors
from memstream.streams.log import disk_room
from memstream.streams.log.disk_room import LOG_ROOM, TABLES_ROOM, check_room
from memstream.streams.log.sqlite_log import SqliteLog

Leave = Callable[[int], None]


@pytest.fixture
def leave(monkeypatch: pytest.MonkeyPatch) -> Leave:
    """Let every disk have so many bytes left."""

    def leave(free: int) -> None:
        disk = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096)
        monkeypatch.setattr(disk_room, "os", SimpleNamespace(statvfs=lambda folder: disk))

    return leave


def test_the_error_names_folder_figures_and_remedy(tmp_path: Path, leave: Leave) -> None:
    leave(64 << 20)
    check_room("broker", tmp_path, needed=64 << 20)
    leave((64 << 20) - 4096)
    with pytest.raises(Transient) as short:
        check_room("broker", tmp_path, needed=64 << 20)
    assert str(short.value) == f"the disk of {tmp_path} has 63 MiB left, a write needs 64 MiB"
    assert short.value.component == "broker"
    assert "free some space" in short.value.remedy


def test_a_folder_that_is_gone_is_left_to_the_write(tmp_path: Path) -> None:
    check_room("broker", tmp_path / "gone", needed=1 << 60)
    assert not os.path.exists(tmp_path / "gone")


def test_a_table_has_its_own_reserve(tmp_path: Path, leave: Leave) -> None:
    errors = StoreErrors(table="ledger", folder=tmp_path)
    leave(TABLES_ROOM)
    errors.check_room()
    leave(TABLES_ROOM - 4096)
    with pytest.raises(Transient, match="MiB left"):
        errors.check_room()


async def test_appends_are_refused_while_offsets_and_clean_up_go_on(tmp_path: Path, leave: Leave) -> None:
    log = SqliteLog(folder=tmp_path)
    log.start()
    try:
        await log.create([("t", 1, {"retention.ms": "1000"})])
        (part,) = log.topics()["t"].parts
        for n in range(3):
            await log.append(part, key=b"k", value=b"%d" % n, timestamp=1)
        leave(LOG_ROOM - 4096)
        with pytest.raises(Transient, match="MiB left"):
            await log.append(part, key=b"k", value=b"refused")
        both = log.append(part, key=b"k", value=b"refused"), log.commit("g", {part: 3})
        with pytest.raises(Transient, match="MiB left"):
            await both[0]
        await both[1]
        assert log.committed("g", [part]) == [3]
        assert await log.clean(["t"]) == 2
        leave(LOG_ROOM)
        assert await log.append(part, key=b"k", value=b"taken") == 3, "a refused record takes no offset"
    finally:
        log.stop()
