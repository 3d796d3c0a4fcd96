"""Limit on the memory of a stage's local tables, independent of the number of partitions.

RocksDB has write buffers and a cache for each database, and Faust opens one database per partition. With RocksDB's
defaults, the buffers of twelve partitions fill for an hour before the first buffer is flushed. A worker that takes over
another worker's partitions then has twice as many buffers. So memory grows with time and with each rebalance, although
nothing leaks. Here all databases of a stage share one budget.

RocksDB checks the budget only in a write. If the budget is used up, RocksDB flushes the buffer of the written database,
unless a flush of that database is already running. If the disk is slower than the writes, memory can exceed the budget:
each partition has at most two buffers, one being filled and one being flushed. When both are full, the writer waits.
With a disk of 3 MB/s, twelve partitions used 45 MB.
"""

from __future__ import annotations

from typing import Any

from faust.stores.rocksdb import RocksDBOptions
from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache, Options, WriteBufferManager

#: bytes of cached blocks, for all partitions together
CACHE = 4 * 1024 * 1024
#: bytes that were written but are not in a file yet, for all partitions together
BUFFERS = 8 * 1024 * 1024
#: bytes by which a write buffer grows, and so the smallest size of a buffer
ARENA_BLOCK = 64 * 1024
#: maximum size in bytes of one partition's write buffer, while the budget has room
WRITE_BUFFER = 2 * 1024 * 1024


class SharedMemoryOptions(RocksDBOptions):
    """Faust's store options with one cache and one budget of write buffers. Each store has its own instance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(write_buffer_size=WRITE_BUFFER, max_write_buffer_number=2, use_rocksdict=True, **options)
        self._cache = Cache(CACHE)
        self._buffers = WriteBufferManager(BUFFERS, False)  # False: a full budget never stalls a writer

    def as_options(self) -> Options:
        options = super().as_options()
        options.set_write_buffer_manager(self._buffers)
        options.set_arena_block_size(ARENA_BLOCK)
        # A database has at most 64 open files. RocksDB's default of 16 threads took a third of the opening time.
        options.set_max_file_opening_threads(1)
        blocks = BlockBasedOptions()
        blocks.set_bloom_filter(self.bloom_filter_size, block_based=True)
        blocks.set_index_type(BlockBasedIndexType.binary_search())
        blocks.set_block_cache(self._cache)
        options.set_block_based_table_factory(blocks)
        return options

    @property
    def buffered(self) -> int:
        """Return the current bytes in the write buffers of all partitions."""
        return int(self._buffers.get_usage())
