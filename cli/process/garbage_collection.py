"""Tuning of Python's garbage collector: pause it during imports, exclude imported objects, and run it less often.

A worker imports about 250 000 objects (modules, classes, models), and none of them becomes garbage. With Python's
defaults, collections during the import took a sixth of a worker's start, and the first collections after it took
another tenth. Later full collections stopped the worker for 0.1 s and more.

An event in flight has some hundred objects, and reference counting frees them. With the default threshold of 700 new
objects, the collector scans most of these objects two or three times before they are freed. These scans took a tenth of
a turn's processor time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 10_000
"""Surplus of allocated over freed objects that starts a collection of new objects. Python's default is 700."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection inside the block. At the end, exclude all objects that exist at this time from later
    collections."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def tune_garbage_collection() -> None:
    """Exclude every existing object from garbage collection, and collect later objects less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
