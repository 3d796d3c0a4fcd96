"""What the local tables of a stage may take of memory, however many partitions a worker owns.

RocksDB has its write buffers and its cache for each database, and Faust opens a database for each partition. Left to
themselves the buffers of twelve partitions fill for an hour before the first is emptied, and a worker that takes over
the partitions of another doubles them: memory that grows with time and with every rebalance, though nothing leaks. So
they share one budget.

RocksDB looks at the budget in a write alone, and then empties the buffer of the database that is written, unless it is
emptying one of that database already. So a disk that is slower than the writes lets more lie in memory, for as long as
nothing is written behind them, too: at most the two buffers of each partition, the one that is filled and the one that
is emptied. Then the writer is held up. Seen with a disk of 3 MB/s: 45 MB of twelve partitions.
"""

from __future__ import annotations

from typing import Any

from faust.stores.rocksdb import RocksDBOptions
from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache, Options, WriteBufferManager

#: bytes of blocks that were read, of all partitions
CACHE = 4 * 1024 * 1024
#: bytes of what was written and is not in a file yet, of all partitions
BUFFERS = 8 * 1024 * 1024
#: bytes that a write buffer takes at a time: even one that holds a single row has that much
ARENA_BLOCK = 64 * 1024
#: bytes that the write buffer of one partition may grow to, as long as the budget has room
WRITE_BUFFER = 2 * 1024 * 1024


class SharedMemoryOptions(RocksDBOptions):
    """Faust's options of a store, over one cache and one budget of write buffers. One instance a store."""

    def __init__(self, **options: Any) -> None:
        super().__init__(write_buffer_size=WRITE_BUFFER, max_write_buffer_number=2, use_rocksdict=True, **options)
        self._cache = Cache(CACHE)
        self._buffers = WriteBufferManager(BUFFERS, False)  # it never holds a writer up

    def as_options(self) -> Options:
        options = super().as_options()
        options.set_write_buffer_manager(self._buffers)
        options.set_arena_block_size(ARENA_BLOCK)
        blocks = BlockBasedOptions()
        blocks.set_bloom_filter(self.bloom_filter_size, block_based=True)
        blocks.set_index_type(BlockBasedIndexType.binary_search())
        blocks.set_block_cache(self._cache)
        options.set_block_based_table_factory(blocks)
        return options

    @property
    def buffered(self) -> int:
        """Bytes that the write buffers of all partitions take now."""
        return int(self._buffers.get_usage())
