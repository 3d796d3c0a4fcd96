"""Faust's RocksDB store, whose databases are opened and closed beside the event loop.

`rocksdict` holds the GIL while it opens a database: five to nine syncs of the disk. A thread alone does not help: where
three stages open 36 databases, the event loop gets a turn after three of them, and `/livez` needs several turns. So a
process opens one database at a time, and the event loop has some time before the next one. The last reference to a
database holds the GIL, too, while it writes what has no file yet. So a thread that lets the GIL go flushes it before.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from faust.stores.rocksdb import Store
from faust.types import TP

from .blocking_work import in_thread

PAUSE: Final = 0.02
"""Seconds after the opening of a database, at most: as long as it took."""
_OPENING: Final = threading.Lock()
"""Of all stores of the process: they share the GIL."""


class PartitionStore(Store):
    """One database a partition. Methods that open or close one are awaited."""

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        self.rebalance_ack = False
        async with self.db_lock:
            topics = self.table.changelog_topic.topics
            await self._release(tp.partition for tp in revoked if tp.topic in topics)
            await self.assign_partitions(self.table, newly_assigned, generation_id)

    async def _release(self, partitions: Iterable[int]) -> None:
        """Let go of databases. Who still uses one keeps it open: the thread of a load that was cut off."""
        released = [db for db in (self._dbs.pop(partition, None) for partition in partitions) if db is not None]
        if released:
            await asyncio.gather(*(in_thread(_settle, db) for db in released))
            released.clear()
            gc.collect()  # the last reference closes a database, and an error's traceback may have one

    async def _try_open_db_for_partition(
        self, partition: int, max_retries: int = 30, retry_delay: float = 1.0, generation_id: int = 0
    ) -> Any:
        for left in reversed(range(max_retries)):
            try:
                return await self.open(partition)
            except Exception as error:  # rocksdict raises nothing else
                if not left or "lock" not in repr(error):
                    raise
            if generation_id != self.app.consumer_generation_id:
                return None
            await self.sleep(retry_delay)
        return None

    async def open(self, partition: int) -> Any:
        """Return the database of a partition, and open it first if it is not open."""
        if partition not in self._dbs:
            self._dbs[partition] = await in_thread(self._open_alone, partition)
        return self._dbs[partition]

    def _open_alone(self, partition: int) -> Any:
        with _OPENING:
            began = time.monotonic()
            db = self._open_for_partition(partition)
            time.sleep(min(time.monotonic() - began, PAUSE))
        return db

    async def open_anew(self, partition: int) -> None:
        """Delete the database of a partition, and open an empty one."""
        await in_thread(self._delete, self._dbs.pop(partition, None), partition)
        await self.open(partition)

    def _delete(self, db: Any, partition: int) -> None:
        if db is not None:
            db.close()
        shutil.rmtree(self.partition_path(partition), ignore_errors=True)


def _settle(db: Any) -> None:
    """Flush a database, so that its closing waits for nothing, and neither does its next opening."""
    with suppress(Exception):  # the write-ahead log has all of it
        db.flush()
