"""Waiting for the commands that an edit causes: their results come in any order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import permutations

import pytest
from pydantic import JsonValue

from memstream.cli.wiring.edit_runs import read_caused
from memstream.schemas.commands import CommandResult
from tests.support.record_builders import NOW

CHAIN: dict[str, dict[str, JsonValue]] = {
    "f1": {"command_id": "f2"},
    "f2": {"command_id": "e1"},
    "e1": {"episodes": 1},
    "g1": {"command_id": "g2"},
    "g2": {},
}


async def answers(order: Sequence[str], read: list[str]) -> AsyncIterator[CommandResult]:
    for each in order:
        read.append(each)
        yield CommandResult(command_id=each, status="applied", result=CHAIN[each], at=NOW)


@pytest.mark.parametrize("order", permutations(CHAIN))
async def test_every_caused_command_is_waited_for_in_any_order(order: Sequence[str]) -> None:
    read: list[str] = []
    await read_caused(answers((*order, "g2"), read), ["f1", "g1"])
    assert read == [*order]


async def test_an_edit_that_causes_no_command_waits_for_nothing() -> None:
    read: list[str] = []
    await read_caused(answers(tuple(CHAIN), read), [])
    assert read == []
