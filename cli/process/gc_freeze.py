"""Freeze start-up objects so that the garbage collector does not scan them again.

Python's collector looks through all that lives now and then: modules, classes and models are a quarter of a million
objects, and each such look stopped a worker for a tenth of a second and more, in the middle of its turns.
"""

from __future__ import annotations

import gc


def keep_what_is_there() -> None:
    """Exclude every object that exists now from garbage collection; later objects are collected as usual."""
    gc.collect()
    gc.freeze()
