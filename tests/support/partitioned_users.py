"""Users whose keys cover every partition, so that each of several workers has its share."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

from memstream.streams.log.partitioner import partition_for

PARTITIONS = 12
"""Partitions of every topic on the tests' broker."""


def on_every_partition(key_of: Callable[[str], str], *, each: int = 1) -> list[str]:
    """Return `each` users per partition, by the keys that `key_of` makes of them."""
    found: dict[int, list[str]] = defaultdict(list)
    for n in itertools.count():
        user = f"u{n}"
        here = found[partition_for(key_of(user).encode(), PARTITIONS)]
        if len(here) < each:
            here.append(user)
        if sum(map(len, found.values())) == PARTITIONS * each:
            break
    return [user for users in found.values() for user in users]
