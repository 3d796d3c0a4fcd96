"""Policies of observation: capture, triggers, routing, the working set and the session log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ...schemas.observations import OBSERVATIONS_MAX, Category
from ...schemas.turns import Role, Scope
from ...schemas.working_set import ENTRIES_MAX
from .checks import above_zero, at_least, between, one_of, require, unit

Boosted = Category | Literal["correction", "emotional"]
"""What may count more: observations of a category, corrections, and observations with an emotion."""


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """Which part of a turn the model sees, and how many observations it may return."""

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {"max_per_turn": "max_per_message"}

    enabled: bool = True
    """False: nothing is observed, and no model is asked."""
    roles: tuple[Role, ...] = ("user", "assistant")
    """Roles whose messages are shown to the model."""
    threshold: float = 0.4
    """Importance below which an observation stays in the working set."""
    max_per_message: int = 8
    """Observations of one message of a user and its answer, at most. The record's cause names what is left out."""
    observation_tokens: int = 2_000
    """Tokens of a turn's observations together, statements and quotes, at most. A token is 4 characters."""
    max_assistant_chars: int = 500
    """Characters of an assistant's message that are shown."""
    turn_tokens: int = 8_000
    """Tokens of a turn that are shown, at most. Of a longer turn every message is shown, the longest ones without their
    middle. A token is 4 characters."""
    context_messages: int = 6
    """Earlier messages that are shown for context, at most."""
    context_tokens: int = 2_000
    """Tokens of the earlier messages together, at most. A token is 4 characters."""
    boosted: tuple[Boosted, ...] = ()
    """What counts more: categories, `correction`, and `emotional` (what has an emotion)."""
    boost: float = 0.1
    """What is added to the importance of what counts more, up to 1."""
    emotion: bool = False
    """True: the valence and arousal that the model gives are kept. The profile `composite` reads the valence."""
    source: str = ""
    """`package.module:function`, pure, `(Turn) -> str | None`: makes the text that is shown of a turn in place of its
    messages. None: the turn shows nothing. Empty: the messages of `roles` are shown."""

    def __post_init__(self) -> None:
        unit("capture.threshold", self.threshold)
        unit("capture.boost", self.boost)
        module, _, function = self.source.partition(":")
        is_named = all(part.isidentifier() for part in (*module.split("."), function))
        require(not self.source or is_named, f"capture.source must be package.module:function, not {self.source!r}")
        require(bool(self.roles), "capture.roles must name at least one role")
        between("capture.max_per_message", self.max_per_message, 1, OBSERVATIONS_MAX)
        at_least("capture.turn_tokens", self.turn_tokens, 64)
        at_least("capture.observation_tokens", self.observation_tokens, 64)
        for name in ("max_assistant_chars", "context_messages", "context_tokens"):
            at_least(f"capture.{name}", getattr(self, name), 0)


ROUND_TURNS_MAX = 64


@dataclass(frozen=True, slots=True)
class ObservePolicy:
    """When a session's unobserved turns are shown to the model."""

    together: int = 8
    """Turns of a session in one call where several wait, at most 64; 1: one by one. MEMSTREAM_OBSERVE_TOGETHER sets
    it."""
    patience: float = 60.0
    """Seconds that a turn waits for a model that is away before it is deferred; also the pause before the next try."""
    unobserved_tokens: int = 0
    """Observe a session when so many tokens wait, in one call as far as they fit; 0: every turn at once. A token is 4
    characters. 30 000 is usual."""
    idle: float = 600.0
    """Seconds without a turn after which a session with fewer tokens is observed."""
    round_tokens: int = 8_000
    """Tokens of the turns in one call. A larger turn is shown alone."""
    backlog: int = 1_000
    """Unread events of a partition beyond which its sessions wait for further turns, to be observed together. Turns
    that the worker holds (1 000 of a partition) are observed together without a wait, so the default is where it no
    longer sees a session's next turns."""
    company: float = 600.0
    """Seconds that a turn waits for further turns, at most."""
    rounds: int = 4
    """Calls that one event of a session makes, at most; turns that are asked about one by one are finished first. A
    command asks for what is left."""
    waiting_turns: int = 100_000
    """Turns of a tenant that wait to be observed, at most, in equal shares for the partitions; 0: any number. Beyond, a
    turn that would have to wait for the model or the budget becomes a dead letter, `over_ceiling`. The default is a
    little more than a day of one turn a second."""

    def __post_init__(self) -> None:
        between("observe.together", self.together, 1, ROUND_TURNS_MAX)
        for name in ("patience", "company", "idle"):
            above_zero(f"observe.{name}", getattr(self, name))
        for name in ("unobserved_tokens", "backlog", "waiting_turns"):
            at_least(f"observe.{name}", getattr(self, name), 0)
        for name in ("round_tokens", "rounds"):
            at_least(f"observe.{name}", getattr(self, name), 1)

    @property
    def round_turns(self) -> int:
        """Maximum turns in one call."""
        return ROUND_TURNS_MAX if self.unobserved_tokens else self.together

    def waiting_share(self, partitions: int) -> int | None:
        """Return how many turns of a tenant may wait in one of so many partitions; None: any number."""
        return -(-self.waiting_turns // partitions) if self.waiting_turns else None

    @property
    def round_size(self) -> int:
        """Maximum tokens in one call; a larger turn is shown alone."""
        return max(self.round_tokens, self.unobserved_tokens)


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """Which observations go beyond the working set, and who owns them."""

    significance: float = 0.6
    """Importance from which a lasting observation becomes an episode."""
    scope: Scope = "user"
    """Who owns what is learnt where the turn names no scope: `user`, `agent`, `org` or `group`."""
    episodes_kept: int = 200
    """Episodes of an owner. Beyond, the oldest that are consolidated go. 0: all are kept."""
    clock_ahead: float = 300.0
    """Seconds by which a turn's `occurred_at` may lie after its record's timestamp. A turn that is dated further ahead
    counts as said at that timestamp."""

    def __post_init__(self) -> None:
        unit("routing.significance", self.significance)
        for name in ("episodes_kept", "clock_ahead"):
            at_least(f"routing.{name}", getattr(self, name), 0)
        one_of("routing.scope", self.scope, Scope)


DecayStrategy = Literal["power-law", "exponential", "none"]


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """How salience decays by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    """How salience fades by turns: `power-law`, `exponential` or `none`."""
    rate: float = 0.5
    """How fast it fades."""

    def __post_init__(self) -> None:
        one_of("decay.strategy", self.strategy, DecayStrategy)
        at_least("decay.rate", self.rate, 0)


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """Size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    """Entries of a session's working set, at most 64."""
    max_pinned: int = 2
    """Entries that may be pinned."""
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        between("working.capacity", self.capacity, 1, ENTRIES_MAX)
        require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )


@dataclass(frozen=True, slots=True)
class SessionLogPolicy:
    """Policy of the session log: how long it is kept, `flush_important` and `compact`."""

    retention_days: float = 400.0
    """Days that messages are kept after the quarter of a year (UTC) in which they were recorded. 0: for ever."""

    flush_threshold: float = 0.6
    """Importance from which `flush_important` makes working entries episodes."""
    keep: int = 20
    """Newest turns of a session that `compact` leaves out."""

    def __post_init__(self) -> None:
        require(
            self.retention_days == 0 or self.retention_days >= 1,
            f"session_log.retention_days must be 0 (for ever) or 1 or more, not {self.retention_days}",
        )
        at_least("session_log.retention_days", self.retention_days, 0)
        unit("session_log.flush_threshold", self.flush_threshold)
        at_least("session_log.keep", self.keep, 0)
