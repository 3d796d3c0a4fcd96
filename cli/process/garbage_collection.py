"""The garbage collector of a process: paused while modules are imported, blind to them afterwards, and seldom at work.

Python's collector looks through all that lives now and then: modules, classes and models are a quarter of a million
objects. While they are imported nothing of them is garbage, and the looks were a sixth of a worker's start. The first
looks after that were another tenth; later each stopped a worker for a tenth of a second and more, in the middle of its
turns.

An event in flight is some hundred objects that end by themselves. A collector that looks at every 700 new ones sees
most of them two or three times before that, which was a tenth of a turn's processor time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 10_000
"""So many more objects than were freed make the collector look at the new ones. Python's default is 700."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no garbage meanwhile; afterwards as before, but never what exists then."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def tune_garbage_collection() -> None:
    """Exclude every object that exists now from garbage collection, and look seldom at later ones."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
