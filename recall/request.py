"""Parameters of a recall. They are validated on creation, so that later code can rely on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from ..memory.policies.recall import LIMIT_MAX, RankingProfile
from ..schemas.base import CONTENT_MAX
from ..schemas.observations import Category
from ..schemas.recall import TIERS, Tier
from ..schemas.turns import Owner, Sensitivity
from .record_conditions import NO_CONDITIONS, RecordConditions
from .slots import SlotSelection

GROUPS_MAX = 32
SHARED_MAX = 1_000
CUE_MAX = CONTENT_MAX


@dataclass(frozen=True, slots=True)
class ReadSession:
    """A session of a user. Two users may use the same session id."""

    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """The parameters of one recall. Tenant, owner and session come from the caller's credential, never from the cue.

    Raises ValueError with the name of an invalid parameter.
    """

    tenant_id: str
    owner: Owner
    session: ReadSession | None = None
    """The session whose working set is read, or None for no working set."""
    groups: tuple[str, ...] = ()
    """Groups whose facts and episodes are shared with the owner."""
    cue: str | None = None
    """The search text, at most 2 000 code points. None or blank returns the most important memories."""
    limit: int = 10
    tiers: tuple[Tier, ...] = TIERS
    subject: str | None = None
    subjects: tuple[str, ...] = ()
    """All names of `subject`, as the facts about names state them. Empty: only `subject` itself."""
    category: Category | None = None
    conditions: RecordConditions = NO_CONDITIONS
    """Conditions on tags, metadata, session, agent, trust and time. With conditions, the working set is not read,
    because its entries have none of these."""
    slots: SlotSelection | None = None
    """The slots of the facts to read, or None for every fact. With slots, no other tier is read."""
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that may be read."""
    as_of: datetime | None = None
    """World time: return memories that were valid then. None means `known_at`, or now when `known_at` is None."""
    known_at: datetime | None = None
    """Recording time: return memories that were believed then, as far as the rows record it. None means now."""
    min_score: float = 0.0
    """The lowest score of an item of the answer, 0 to 1. 0 means that no item is left out for its score."""
    mood: float | None = None
    """The caller's valence, -1 to 1, for the profile `composite`."""
    zone: tzinfo = UTC
    """The reader's time zone, for the days that the cue names."""
    settled: bool = False
    """True to omit episodes and working entries whose fact is pending, and working entries whose fact is not believed.
    Episodes whose fact is not believed are always omitted."""
    explain: bool = False
    """True to name the candidates that were left out. Such a read is for a person who looks at the ranking, so it
    publishes no recall event."""
    profile: RankingProfile | None = None
    """The ranking profile instead of the policy's, for a person who compares profiles. None means the policy's."""
    asked_by: str = ""
    """The name of the caller, for the report of the answer; empty when unknown."""
    pinned: bool = False
    """True to read only the owner's pinned facts, and nothing of groups."""
    shared_facts: tuple[str, ...] = ()
    """Ids of single facts of other owners that groups share with the owner."""

    def __post_init__(self) -> None:
        _require(bool(self.tenant_id), "a read needs a tenant")
        _require(1 <= self.limit <= LIMIT_MAX, f"the limit must be 1 to {LIMIT_MAX}, not {self.limit}")
        _require(bool(self.tiers), f"at least one tier must be asked for: {', '.join(TIERS)}")
        _require(len(set(self.tiers)) == len(self.tiers), "a tier is asked for twice")
        _require(len(self.groups) <= GROUPS_MAX, f"at most {GROUPS_MAX} groups can be read at once")
        _require(len(self.shared_facts) <= SHARED_MAX, f"at most {SHARED_MAX} shared facts can be read at once")
        _require(self.mood is None or -1 <= self.mood <= 1, f"the mood must be -1 to 1, not {self.mood}")
        _require(0 <= self.min_score <= 1, f"min_score must be 0 to 1, not {self.min_score}")
        for name, moment in (("as_of", self.as_of), ("known_at", self.known_at)):
            _require(moment is None or moment.tzinfo is not None, f"{name} needs a time zone")
        if self.cue is not None:
            _require(len(self.cue) <= CUE_MAX, f"the cue has {len(self.cue)} characters; at most {CUE_MAX} are taken")
            _require(not _has_surrogate(self.cue), "the cue is no valid text")

    @property
    def search_text(self) -> str | None:
        """The stripped cue, or None when it is empty."""
        return (self.cue or "").strip() or None

    @property
    def past(self) -> datetime | None:
        """The world time of a read of the past, or None for a read of the present."""
        return self.as_of or self.known_at

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owner and the groups, without duplicates: all owners whose memory is read."""
        return tuple(dict.fromkeys((self.owner, *(Owner(scope="group", id=group) for group in self.groups))))

    @property
    def message_user(self) -> str | None:
        """The user whose messages are read, or None for an owner that is no user."""
        return self.owner.id if self.owner.scope == "user" else None

    @property
    def owner_keys(self) -> tuple[str, ...]:
        return tuple(owner.key(self.tenant_id) for owner in self.owners)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
