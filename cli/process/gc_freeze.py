"""The garbage collector around a process's start: paused while modules are imported, blind to them afterwards.

Python's collector looks through all that lives now and then: modules, classes and models are a quarter of a million
objects. While they are imported nothing of them is garbage, and the looks were a sixth of a worker's start. The first
looks after that were another tenth; later each stopped a worker for a tenth of a second and more, in the middle of its
turns.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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


def keep_what_is_there() -> None:
    """Exclude every object that exists now from garbage collection; later objects are collected as usual."""
    gc.collect()
    gc.freeze()
