"""Faust's RocksDB store, with databases opened and closed outside the event loop.

`rocksdict` holds the GIL while it opens a database, which takes five to nine syncs of the disk. A thread alone does not
help: when three stages open 36 databases, the event loop runs once per three databases, and an answer of `/livez` needs
several runs of the loop. So a process opens one database at a time, and pauses before the next one. A database is
closed when its last reference is dropped. Closing also flushes the database, while the GIL is held. So a thread flushes
the database first, with a call that releases the GIL.
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
"""Maximum pause in seconds after the opening of a database. The pause is as long as the opening took."""
_OPENING: Final = threading.Lock()
"""Shared by all stores of the process, because they share the GIL."""


class PartitionStore(Store):
    """A store with one database per partition. Methods that open or close a database are coroutines."""

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        self.rebalance_ack = False
        async with self.db_lock:
            topics = self.table.changelog_topic.topics
            await self._release(tp.partition for tp in revoked if tp.topic in topics)
            await self.assign_partitions(self.table, newly_assigned, generation_id)

    async def _release(self, partitions: Iterable[int]) -> None:
        """Flush and release databases. A database stays open while the thread of an interrupted load still uses it."""
        released = [db for db in (self._dbs.pop(partition, None) for partition in partitions) if db is not None]
        if released:
            await asyncio.gather(*(in_thread(_settle, db) for db in released))
            released.clear()
            gc.collect()  # the last reference to a database must end; the traceback of an error may hold a reference

    async def _try_open_db_for_partition(
        self, partition: int, max_retries: int = 30, retry_delay: float = 1.0, generation_id: int = 0
    ) -> Any:
        for left in reversed(range(max_retries)):
            try:
                return await self.open(partition)
            except Exception as error:  # rocksdict raises plain Exception only
                if not left or "lock" not in repr(error):
                    raise
            if generation_id != self.app.consumer_generation_id:
                return None
            await self.sleep(retry_delay)
        return None

    async def open(self, partition: int) -> Any:
        """Return the database of a partition. Open it if necessary."""
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
    """Flush a database, so that its closing and its next opening are fast."""
    with suppress(Exception):  # the write-ahead log has the same rows
        db.flush()
