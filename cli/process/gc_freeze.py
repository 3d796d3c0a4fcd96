"""What a process has made by the time it begins its work stays until its end.

Python's collector looks through all that lives now and then: modules, classes and models are a quarter of a million
objects, and each such look stopped a worker for a tenth of a second and more, in the middle of its turns.
"""

from __future__ import annotations

import gc


def keep_what_is_there() -> None:
    """No collection looks at it again; what comes later is collected as ever."""
    gc.collect()
    gc.freeze()
