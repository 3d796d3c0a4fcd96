from __future__ import annotations

import ctypes
import subprocess
import sys

import psutil
import pytest

from memstream.cli.process.malloc_trim import LARGE, giver

PIECE, PIECES = 4_000, 25_000
"""Below the size from which the C library asks the system for each piece: 100 MB in its own heap."""


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def test_what_is_free_below_something_that_is_kept_goes_back() -> None:
    give = giver()
    if give is None:
        pytest.skip("this C library has no malloc_trim")
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    pieces = [library.malloc(PIECE) for _ in range(PIECES)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE)
    kept = pieces.pop()
    for piece in pieces:
        library.free(piece)
    held = resident()
    give()
    library.free(kept)
    assert held - resident() > PIECE * PIECES / 2


ANSWERS = f"""
import ctypes, psutil, threading
from memstream.cli.process.malloc_trim import bound_arenas

library, process, size = ctypes.CDLL(None), psutil.Process(), 16 * {LARGE}
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def answers():
    pieces = [library.malloc(size) for _ in range(6)]
    for piece in pieces:
        ctypes.memset(piece, 1, size)
    for piece in pieces:
        library.free(piece)

bounded = bound_arenas()
library.free(library.malloc(4 * size))  # from now on glibc would have such pieces in an arena
before = process.memory_info().rss
thread = threading.Thread(target=answers)
thread.start()
thread.join()
print((process.memory_info().rss - before) // size if bounded else "other ways")
"""


@pytest.mark.slow
def test_large_pieces_go_back_at_once() -> None:
    """In a process of its own: the limits hold for a whole one."""
    told = subprocess.run([sys.executable, "-c", ANSWERS], capture_output=True, text=True, check=True).stdout.strip()
    if told == "other ways":
        pytest.skip("this C library has no mallopt")
    assert told == "0"
