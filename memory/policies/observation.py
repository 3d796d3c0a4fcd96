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
"""Observations whose importance can be increased: the observations of a category, corrections, or observations with an
emotion."""


INSTRUCTIONS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """Capture: the part of a turn that the model sees, and the limits of its observations."""

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {"max_per_turn": "max_per_message"}

    enabled: bool = True
    """False: nothing is observed, and no model is called."""
    roles: tuple[Role, ...] = ("user", "assistant")
    """Roles whose messages are shown to the model."""
    threshold: float = 0.4
    """Importance below which an observation stays in the working set."""
    max_per_message: int = 8
    """Maximum observations of one user message and its answer. The `cause` of the record reports omitted
    observations."""
    observation_tokens: int = 2_000
    """Maximum tokens of all observations of a turn, statements and quotes. A token is 4 characters."""
    max_assistant_chars: int = 500
    """Maximum characters that are shown of an assistant's message."""
    turn_tokens: int = 8_000
    """Maximum tokens that are shown of a turn. Every message of a longer turn is shown; the longest ones lose their
    middle. A token is 4 characters."""
    context_messages: int = 6
    """Maximum number of earlier messages that are shown for context."""
    context_tokens: int = 2_000
    """Maximum tokens of the earlier messages together. A token is 4 characters."""
    boosted: tuple[Boosted, ...] = ()
    """Observations that get a higher importance: categories, `correction`, and `emotional` (with an emotion)."""
    boost: float = 0.1
    """Increase of the importance of the observations in `boosted`, up to 1."""
    emotion: bool = False
    """True: the valence and arousal from the model are kept. The profile `composite` reads the valence."""
    instructions: str = ""
    """Further rules of the operator for the model that observes turns, up to 2 000 characters: what to note and what to
    leave out. They cannot change trust, quarantine or the checks of evidence."""
    source: str = ""
    """`package.module:function`: a pure function `(Turn) -> str | None` that returns the text to show in place of the
    messages of a turn. None: the turn shows nothing. Empty: the messages of `roles` are shown."""

    def __post_init__(self) -> None:
        unit("capture.threshold", self.threshold)
        unit("capture.boost", self.boost)
        size = len(self.instructions)
        require(
            size <= INSTRUCTIONS_MAX,
            f"capture.instructions has {size} characters; at most {INSTRUCTIONS_MAX} are allowed",
        )
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
class EvidencePolicy:
    """The check that the user said a statement."""

    check: Literal["model", "words"] = "model"
    """`model`: a model decides, by a blind question, about statements that words cannot decide. `words`: words decide
    about every statement. The offline model always uses words."""

    def __post_init__(self) -> None:
        one_of("evidence.check", self.check, Literal["model", "words"])


@dataclass(frozen=True, slots=True)
class ObservePolicy:
    """Observation of a session's turns: batches, waiting times and limits."""

    together: int = 8
    """Maximum turns of a session in one call when several turns wait, up to 64; 1: one turn per call.
    MEMSTREAM_OBSERVE_TOGETHER sets it."""
    patience: float = 60.0
    """Seconds that a turn waits for an unavailable model before it is deferred; also the pause before the next try."""
    unobserved_tokens: int = 0
    """Number of waiting tokens at which the turns of a session are observed, if possible in one call; 0: every turn is
    observed immediately. A token is 4 characters. 30 000 is usual."""
    idle: float = 600.0
    """Seconds without a turn after which a session with fewer waiting tokens than `unobserved_tokens` is observed."""
    round_tokens: int = 8_000
    """Maximum tokens of the turns in one call. A larger turn is shown alone."""
    backlog: int = 1_000
    """Number of unread events of a partition above which a session waits for more turns, to observe them in one call. A
    worker holds up to 1 000 events of a partition and does not see later events. It observes the held turns of a
    session together without a wait."""
    company: float = 600.0
    """Maximum seconds that a turn waits for further turns."""
    rounds: int = 4
    """Maximum calls for one event of a session, except while turns are observed one by one. A command observes the
    turns beyond the limit."""
    waiting_turns: int = 100_000
    """Maximum number of turns of a tenant that wait for observation, in equal shares for the partitions; 0: no limit.
    Above it, a turn that has to wait for the model or the budget becomes a dead letter, `over_ceiling`. The default is
    a little more than one turn per second for a day."""

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
        """Return the maximum number of waiting turns of a tenant in one of `partitions` partitions; None: no limit."""
        return -(-self.waiting_turns // partitions) if self.waiting_turns else None

    @property
    def round_size(self) -> int:
        """Maximum tokens in one call; a larger turn is shown alone."""
        return max(self.round_tokens, self.unobserved_tokens)


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """Routing of observations beyond the working set, and their owner."""

    significance: float = 0.6
    """Minimum importance of a lasting observation that becomes an episode."""
    scope: Scope = "user"
    """The owner of the memories of a turn that names no scope: `user`, `agent`, `org` or `group`."""
    episodes_kept: int = 200
    """Maximum episodes of an owner. Above it, the oldest consolidated episodes are deleted. 0: no limit."""
    clock_ahead: float = 300.0
    """Maximum seconds by which a turn's `occurred_at` may be after its record's timestamp. A turn that is dated further
    ahead gets the timestamp of its record."""

    def __post_init__(self) -> None:
        unit("routing.significance", self.significance)
        for name in ("episodes_kept", "clock_ahead"):
            at_least(f"routing.{name}", getattr(self, name), 0)
        one_of("routing.scope", self.scope, Scope)


DecayStrategy = Literal["power-law", "exponential", "none"]


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """The decay of salience by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    """Form of the decay by turns: `power-law`, `exponential` or `none`."""
    rate: float = 0.5
    """Rate of the decay."""

    def __post_init__(self) -> None:
        one_of("decay.strategy", self.strategy, DecayStrategy)
        at_least("decay.rate", self.rate, 0)


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """The size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    """Maximum entries of a session's working set, up to 64."""
    max_pinned: int = 2
    """Maximum number of pinned entries."""
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        between("working.capacity", self.capacity, 1, ENTRIES_MAX)
        require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )


@dataclass(frozen=True, slots=True)
class SessionLogPolicy:
    """The session log: its retention, and the limits of `flush_important` and `compact`."""

    retention_days: float = 400.0
    """Days that messages are kept after the end of the quarter (UTC) in which they were recorded. 0: for ever."""

    flush_threshold: float = 0.6
    """Minimum importance of working entries that `flush_important` turns into episodes."""
    keep: int = 20
    """Number of newest turns of a session that `compact` skips."""

    def __post_init__(self) -> None:
        require(
            self.retention_days == 0 or self.retention_days >= 1,
            f"session_log.retention_days must be 0 (for ever) or 1 or more, not {self.retention_days}",
        )
        at_least("session_log.retention_days", self.retention_days, 0)
        unit("session_log.flush_threshold", self.flush_threshold)
        at_least("session_log.keep", self.keep, 0)
