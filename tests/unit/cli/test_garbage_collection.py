"""The garbage collector of a process that has started."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from memstream.cli.process.garbage_collection import NEW_OBJECTS, tune_garbage_collection


class _Node:
    me: _Node


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that were collected since the process has started."""
    before, seen = gc.get_threshold(), list[int]()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    tune_garbage_collection()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as before: modules and collected tests


def test_objects_of_events_in_flight_are_not_looked_at(collections: list[int]) -> None:
    for _ in range(5):
        held = [[] for _ in range(NEW_OBJECTS // 2)]  # type: ignore[var-annotated]
        del held
    assert collections == []


def test_what_holds_itself_is_freed(collections: list[int]) -> None:
    node = _Node()
    node.me = node
    gone = weakref.ref(node)
    del node
    held = [[] for _ in range(NEW_OBJECTS + 1)]  # type: ignore[var-annotated]
    assert held
    assert gone() is None
    assert collections == [0]
