"""Frozen policy types for every number that governs the memory (docs/reference/settings.md).

Values are checked when a policy is created. A policy that contradicts itself raises ValueError at start, never in the
middle of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..language.locales.secret_labels import SecretKind
from .blocks import BlocksPolicy
from .budget import BudgetPolicy, ModelsPolicy
from .facts import (
    ConfidencePolicy,
    ConflictPolicy,
    ConsolidationPolicy,
    ConsolidationTrigger,
    DigestPolicy,
    PrunePolicy,
    SharingPolicy,
)
from .limits import LimitsPolicy
from .observation import (
    CapturePolicy,
    DecayPolicy,
    DecayStrategy,
    EvidencePolicy,
    ObservePolicy,
    RoutingPolicy,
    SessionLogPolicy,
    WorkingSetPolicy,
)
from .personas import Persona, ToolsPolicy
from .privacy import PresidioPolicy, PrivacyPolicy, SecretAction
from .recall import (
    CLASSIC_FUSION,
    CompositePolicy,
    FusionPolicy,
    RankingProfile,
    RecallPolicy,
    RecallToolPolicy,
    RerankerName,
)
from .slots import SLOTS, SlotPolicy, check_slots
from .tiers import TiersPolicy
from .upkeep import GistMaker, GistPolicy, HygienePolicy, JanitorTrigger, RowsPolicy

__all__ = [
    "CLASSIC_FUSION",
    "SLOTS",
    "BlocksPolicy",
    "BudgetPolicy",
    "CapturePolicy",
    "CompositePolicy",
    "ConfidencePolicy",
    "ConflictPolicy",
    "ConsolidationPolicy",
    "ConsolidationTrigger",
    "DecayPolicy",
    "DecayStrategy",
    "DigestPolicy",
    "EvidencePolicy",
    "FusionPolicy",
    "GistMaker",
    "GistPolicy",
    "HygienePolicy",
    "JanitorTrigger",
    "LimitsPolicy",
    "MemoryPolicy",
    "ModelsPolicy",
    "ObservePolicy",
    "Persona",
    "PresidioPolicy",
    "PrivacyPolicy",
    "PrunePolicy",
    "RankingProfile",
    "RecallPolicy",
    "RecallToolPolicy",
    "RerankerName",
    "RoutingPolicy",
    "RowsPolicy",
    "SecretAction",
    "SecretKind",
    "SessionLogPolicy",
    "SharingPolicy",
    "SlotPolicy",
    "TiersPolicy",
    "ToolsPolicy",
    "WorkingSetPolicy",
]


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """All policies of one worker or one tenant."""

    tiers: TiersPolicy = field(default_factory=TiersPolicy)
    working: WorkingSetPolicy = field(default_factory=WorkingSetPolicy)
    blocks: BlocksPolicy = field(default_factory=BlocksPolicy)
    capture: CapturePolicy = field(default_factory=CapturePolicy)
    evidence: EvidencePolicy = field(default_factory=EvidencePolicy)
    routing: RoutingPolicy = field(default_factory=RoutingPolicy)
    confidence: ConfidencePolicy = field(default_factory=ConfidencePolicy)
    conflict: ConflictPolicy = field(default_factory=ConflictPolicy)
    consolidation: ConsolidationPolicy = field(default_factory=ConsolidationPolicy)
    session_log: SessionLogPolicy = field(default_factory=SessionLogPolicy)
    sharing: SharingPolicy = field(default_factory=SharingPolicy)
    prune: PrunePolicy = field(default_factory=PrunePolicy)
    digest: DigestPolicy = field(default_factory=DigestPolicy)
    hygiene: HygienePolicy = field(default_factory=HygienePolicy)
    gist: GistPolicy = field(default_factory=GistPolicy)
    observe: ObservePolicy = field(default_factory=ObservePolicy)
    rows: RowsPolicy = field(default_factory=RowsPolicy)
    privacy: PrivacyPolicy = field(default_factory=PrivacyPolicy)
    recall: RecallPolicy = field(default_factory=RecallPolicy)
    models: ModelsPolicy = field(default_factory=ModelsPolicy)
    budget: BudgetPolicy = field(default_factory=BudgetPolicy)
    tools: ToolsPolicy = field(default_factory=ToolsPolicy)
    limits: LimitsPolicy = field(default_factory=LimitsPolicy)
    slots: Mapping[str, SlotPolicy] = field(default_factory=lambda: dict(SLOTS))
    """The slots by name: the attributes that statements are about. A table changes or adds the slots that it names."""
    personas: Mapping[str, Persona] = field(default_factory=dict)
    """The persona of each agent, by `agent_id`: six traits, 0–1 (docs/reference/policies.md)."""

    def __post_init__(self) -> None:
        check_slots(self.slots)

    def slot(self, name: str) -> SlotPolicy | None:
        """Return a slot; None for `other`, for an unknown name and for a disabled slot."""
        found = self.slots.get(name)
        return found if found is not None and found.enabled else None
