"""Context of every command (settings and policy, read once), and `run` for a command's coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from ..memory.policies import MemoryPolicy
from ..schemas.errors import StageError
from .errors import failed
from .wiring.settings import Settings, load

T = TypeVar("T")


@dataclass
class CommandContext:
    """Object that click passes to commands. It reads the settings on first use, so that --help works without them."""

    config: Path | None = None

    @cached_property
    def _loaded(self) -> tuple[Settings, MemoryPolicy]:
        return load(config=self.config)

    @property
    def settings(self) -> Settings:
        return self._loaded[0]

    @property
    def policy(self) -> MemoryPolicy:
        return self._loaded[1]


pass_context = click.make_pass_decorator(CommandContext, ensure=True)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine. Convert a StageError to a CommandFailed with its exit code."""
    try:
        return asyncio.run(work)
    except StageError as error:
        raise failed(error) from error
