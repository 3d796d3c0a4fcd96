"""Stages that hang at a turn, in a process of the whole product."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from importlib import import_module
from typing import Any

from memstream.cli.wiring import worker
from memstream.memory.trust.instructions import instruction_rule
from memstream.streams.engine.hangs import HangWatch

HANGS = "This text never ends."
READS_A_TURN = {"recorder": "memstream.agents.recorder.stage", "observer": "memstream.agents.observer.events"}
STILL = 10
"""Seconds without a move of the loop that end the process."""


def hang_in(stages: Collection[str]) -> None:
    """Let these stages spin at a turn that says HANGS."""
    instruction_rule("I like tea.")  # compiles the rules, which takes seconds on a busy machine
    vars(worker)["HangWatch"] = partial(HangWatch, still=STILL, processor=STILL + 3.0)
    for stage in stages:
        names = vars(import_module(READS_A_TURN[stage]))
        names["protect_turn"] = partial(_spin_or, names["protect_turn"])


def _spin_or(protect: Any, turn: Any, secrets: Any) -> Any:
    while any(HANGS in message.text for message in turn.messages):
        pass
    return protect(turn, secrets)
