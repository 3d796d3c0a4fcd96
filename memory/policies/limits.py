"""The policy of rates: how much a tenant and a token may send over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .checks import between

RATE_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LimitsPolicy:
    """Limits of `POST /v1/turns`. They apply in each server process separately."""

    turns_per_minute: int = 0
    """Turns that a tenant may send over HTTP in a minute, to one server process. Up to this number may come in one
    step. 0: no limit."""
    turns_per_minute_per_token: int = 0
    """The same limit for each token in a tenant. Without a file of tokens all callers are one token. 0: no limit."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            between(f"limits.{name}", getattr(self, name), 0, RATE_MAX)
