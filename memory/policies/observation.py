"""Policies of observation: capture, triggers, routing, the working set and the session log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...schemas.turns import Role, Scope
from ...schemas.working_set import ENTRIES_MAX
from .checks import above_zero, at_least, between, one_of, require, unit


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """What of a turn is shown to the model, and how much may come back."""

    enabled: bool = True
    roles: tuple[Role, ...] = ("user", "assistant")
    threshold: float = 0.4
    """Importance below which an observation stays in the working set."""
    max_per_turn: int = 3
    max_assistant_chars: int = 500
    context_messages: int = 6
    context_tokens: int = 2_000
    source: str = ""
    """`package.module:function`, pure, `(Turn) -> str | None`: the text that is shown of a turn in place of its
    messages; None: nothing of it. Empty: the messages of `roles`."""

    def __post_init__(self) -> None:
        unit("capture.threshold", self.threshold)
        module, _, function = self.source.partition(":")
        is_named = all(part.isidentifier() for part in (*module.split("."), function))
        require(not self.source or is_named, f"capture.source must be package.module:function, not {self.source!r}")
        require(bool(self.roles), "capture.roles must name at least one role")
        between("capture.max_per_turn", self.max_per_turn, 1, 64)
        for name in ("max_assistant_chars", "context_messages", "context_tokens"):
            at_least(f"capture.{name}", getattr(self, name), 0)


ROUND_TURNS_MAX = 64


@dataclass(frozen=True, slots=True)
class ObservePolicy:
    """When a session's unobserved turns are shown to the model."""

    together: int = 8
    """Turns of a session in one call; 1 = one by one (MEMSTREAM_OBSERVE_TOGETHER)."""
    patience: float = 60.0
    """Seconds that a turn waits for a model that is away before it is deferred; also the pause before the next try."""
    unobserved_tokens: int = 0
    """Observe when this many tokens wait, in one call as far as it goes; 0 = every turn at once. A token is taken as 4
    characters. The usual number is 30 000."""
    idle: float = 600.0
    """Seconds without a turn after which a session is observed that has fewer tokens."""
    round_tokens: int = 8_000
    """Of the turns in one call; a turn that is larger is shown alone."""
    backlog: int = 16
    """Unread events of a partition beyond which its sessions wait for company: two full rounds. With 12 partitions some
    200 turns, three seconds of 64 calls at a time that take a second each."""
    company: float = 600.0
    """Seconds that a turn waits for company at most, however long the backlog lasts."""

    def __post_init__(self) -> None:
        between("observe.together", self.together, 1, ROUND_TURNS_MAX)
        for name in ("patience", "company", "idle"):
            above_zero(f"observe.{name}", getattr(self, name))
        for name in ("unobserved_tokens", "backlog"):
            at_least(f"observe.{name}", getattr(self, name), 0)
        at_least("observe.round_tokens", self.round_tokens, 1)

    @property
    def round_turns(self) -> int:
        """Turns in one call, at most."""
        return ROUND_TURNS_MAX if self.unobserved_tokens else self.together

    @property
    def round_size(self) -> int:
        """Tokens in one call; a turn that is larger is shown alone."""
        return max(self.round_tokens, self.unobserved_tokens)


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """Which observations go beyond the working set, and whose they are."""

    significance: float = 0.6
    """Importance from which a lasting observation is an episode."""
    scope: Scope = "user"
    """`episodic.scope`: the owner of what is learnt when the turn names no scope."""
    episodes_kept: int = 200
    """Per owner; beyond, the oldest that are consolidated go. 0: all are kept."""

    def __post_init__(self) -> None:
        unit("routing.significance", self.significance)
        at_least("routing.episodes_kept", self.episodes_kept, 0)
        one_of("routing.scope", self.scope, Scope)


DecayStrategy = Literal["power-law", "exponential", "none"]


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """How attention fades by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    rate: float = 0.5

    def __post_init__(self) -> None:
        one_of("decay.strategy", self.strategy, DecayStrategy)
        at_least("decay.rate", self.rate, 0)


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """Size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    max_pinned: int = 2
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        between("working.capacity", self.capacity, 1, ENTRIES_MAX)
        require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )


@dataclass(frozen=True, slots=True)
class SessionLogPolicy:
    flush_threshold: float = 0.6
    """`flush_important`: importance from which working entries become episodes."""
    keep: int = 20
    """`compact`: so many of a session's newest turns are left out."""

    def __post_init__(self) -> None:
        unit("session_log.flush_threshold", self.flush_threshold)
        at_least("session_log.keep", self.keep, 0)
