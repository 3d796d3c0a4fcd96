from __future__ import annotations

import ctypes

import psutil
import pytest

from memstream.cli.freed_memory import giver

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
