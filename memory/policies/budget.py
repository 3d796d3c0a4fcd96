"""Policies of spending: budget tiers, daily ceilings of tenants, prices, and the model of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

from ...schemas.tasks import TASKS, Task
from .checks import at_least, one_of, require

Tier = Literal["free", "cheap", "standard", "full", "custom"]
Phase = Literal["light", "standard", "deep"]
OnExceed = Literal["pause", "log"]
Line = Literal["observation", "judgement", "consolidation"]
"""A budget line, with its own ceilings."""

PHASES: Final[tuple[Phase, ...]] = ("light", "standard", "deep")
"""The phases of a consolidation run, in order."""

LINE_OF: Final[Mapping[Task, Line]] = MappingProxyType(
    {
        "observations": "observation",
        "evidence": "observation",
        "consolidation": "consolidation",
        "prune": "consolidation",
        "judge": "judgement",
        "digest": "consolidation",
        "summary": "consolidation",
        "gist": "consolidation",
        "insights": "consolidation",
        "procedures": "consolidation",
    }
)
"""The budget line of each task. `selection` has none, because a reader waits for the answer."""

TASKS_OF: Final[Mapping[Phase, tuple[Task, ...]]] = MappingProxyType(
    {"light": (), "standard": ("consolidation",), "deep": ("insights", "procedures")}
)
"""The model tasks of each phase."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The spending limit of a tenant's budget line for one UTC day. None: no limit."""

    tokens: int | None
    cost: float | None
    """USD."""
    on_exceed: OnExceed

    def __post_init__(self) -> None:
        for name, value in (("tokens", self.tokens), ("cost", self.cost)):
            if value is not None:
                at_least(f"a ceiling of {name}", value, 0)
        one_of("on_exceed", self.on_exceed, OnExceed)

    @property
    def pauses(self) -> bool:
        """True when calls stop at the ceiling."""
        return self.on_exceed == "pause" and (self.tokens is not None or self.cost is not None)

    @property
    def forbids(self) -> bool:
        """True when no call that costs money is allowed."""
        return self.pauses and (self.tokens == 0 or self.cost == 0)


NO_CEILING: Final = Ceiling(tokens=None, cost=None, on_exceed="log")


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """The phases of a consolidation run in a tier, and their ceiling."""

    phases: tuple[Phase, ...]
    ceiling: Ceiling


TIERS: Final[Mapping[Tier, TierPolicy]] = MappingProxyType(
    {
        "free": TierPolicy(("light",), Ceiling(0, 0.0, "pause")),
        "cheap": TierPolicy(("light", "standard"), Ceiling(50_000, 0.20, "pause")),
        "standard": TierPolicy(PHASES, Ceiling(200_000, 1.00, "pause")),
        "full": TierPolicy(PHASES, Ceiling(1_000_000, 5.00, "log")),
    }
)
"""All tiers except `custom`, which the operator defines. `[memory.budget.standard]` can change `standard`."""


@dataclass(frozen=True, slots=True)
class StandardTier:
    """Settings that a deployment may change in the tier `standard`."""

    on_exceed: OnExceed = "pause"
    """Effect of reaching the ceiling of the tier `standard`: `pause` stops calls, `log` only logs."""

    def __post_init__(self) -> None:
        one_of("budget.standard.on_exceed", self.on_exceed, OnExceed)


@dataclass(frozen=True, slots=True)
class CustomTier:
    """The tier `custom`. Every value must be set when the tier is in use."""

    phases: tuple[Phase, ...] | None = None
    """Phases of consolidation that run: `light`, `standard`, `deep`."""
    tokens: int | None = None
    """Tokens that a tenant may spend in a day."""
    cost: float | None = None
    """USD that a tenant may spend in a day."""
    on_exceed: OnExceed | None = None
    """Effect of reaching the ceiling: `pause` stops calls, `log` only logs."""

    def __post_init__(self) -> None:
        for phase in self.phases or ():
            require(phase in PHASES, f"budget.custom.phases: {phase!r} is none of {', '.join(PHASES)}")
        Ceiling(self.tokens, self.cost, self.on_exceed or "pause")

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the values that are not set."""
        return tuple(name for name in self.__dataclass_fields__ if getattr(self, name) is None)


@dataclass(frozen=True, slots=True)
class ObservationBudget:
    """The daily ceiling of a tenant's observations. None: no limit."""

    tokens: int | None = None
    """Tokens that a tenant's observations may cost in a day. Unset: no ceiling."""
    cost: float | None = None
    """USD that a tenant's observations may cost in a day. Unset: no ceiling."""
    on_exceed: OnExceed = "pause"
    """Effect of reaching the ceiling: `pause` stops calls, `log` only logs."""

    def __post_init__(self) -> None:
        Ceiling(self.tokens, self.cost, self.on_exceed)

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(self.tokens, self.cost, self.on_exceed)


@dataclass(frozen=True, slots=True)
class JudgementBudget:
    """The daily ceiling of a tenant's judgements of pending facts, in every tier. None: no limit."""

    tokens: int | None = None
    """Tokens that a tenant's judgements of pending facts may cost in a day; 0: only a free model judges. Unset: no
    ceiling."""
    cost: float | None = None
    """USD that a tenant's judgements of pending facts may cost in a day. Unset: no ceiling."""
    on_exceed: OnExceed = "pause"
    """Effect of reaching the ceiling: `pause` stops calls, `log` only logs."""

    def __post_init__(self) -> None:
        Ceiling(self.tokens, self.cost, self.on_exceed)

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(self.tokens, self.cost, self.on_exceed)


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price in USD per million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            at_least(f"budget.prices: {name}", getattr(self, name), 0)


KNOWN_PRICES: Final[Mapping[str, Price]] = MappingProxyType({"gpt-5-mini": Price(input=0.25, output=2.00)})
"""The price of the default model, as listed by its vendor at the end of 2025."""


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """Spending limits and prices. MEMSTREAM_TIER selects the tier."""

    standard: StandardTier = field(default_factory=StandardTier)
    custom: CustomTier = field(default_factory=CustomTier)
    observation: ObservationBudget = field(default_factory=ObservationBudget)
    judgement: JudgementBudget = field(default_factory=JudgementBudget)
    prices: Mapping[str, Price] = field(default_factory=dict)
    """USD per million tokens, by model: `input` and `output`. These prices override the built-in ones."""
    max_output_tokens: int = 8_192
    """Output tokens that a call reserves from the budget. On a budget line that pauses at its ceiling, the model server
    gets the same limit."""

    def __post_init__(self) -> None:
        at_least("budget.max_output_tokens", self.max_output_tokens, 256)

    def price(self, model: str) -> Price | None:
        """Return the price of a model; None when it is unknown."""
        return self.prices.get(model, KNOWN_PRICES.get(model))

    def tier(self, name: Tier) -> TierPolicy:
        """Return the policy of a tier. Raises ValueError when `custom` is incomplete; the message lists the missing
        values."""
        if name == "standard":
            tier = TIERS[name]
            return replace(tier, ceiling=replace(tier.ceiling, on_exceed=self.standard.on_exceed))
        if name != "custom":
            return TIERS[name]
        custom = self.custom
        if custom.phases is None or custom.tokens is None or custom.cost is None or custom.on_exceed is None:
            raise ValueError(
                f"the tier custom is incomplete: set {', '.join(custom.missing)} in [memory.budget.custom], such as "
                'phases = ["light", "standard"], tokens = 100000, cost = 0.5 (USD), both per tenant and day, '
                'on_exceed = "pause" or "log"'
            )
        return TierPolicy(custom.phases, Ceiling(custom.tokens, custom.cost, custom.on_exceed))


Form = Literal["full", "short"]


@dataclass(frozen=True, slots=True)
class ModelsPolicy:
    """The model of each task, or several models with commas: the first model is used, the others are its fallbacks.
    Empty: MEMSTREAM_MODEL. The table of these settings in the file is `[models]`."""

    observations: str = ""
    evidence: str = ""
    consolidation: str = ""
    prune: str = ""
    judge: str = ""
    digest: str = ""
    summary: str = ""
    gist: str = ""
    insights: str = ""
    procedures: str = ""
    selection: str = ""
    form: Form = "full"
    """Form of the question about observations: `full`, or `short` for small models. `form` in the table of a model,
    `[models.NAME]`, sets it for this model."""

    def __post_init__(self) -> None:
        one_of("models.form", self.form, Form)
        for task, names in self.given.items():
            each_named = all(name.strip() for name in names.split(","))
            require(each_named, f"models.{task} must be a model's name, or several with commas, not {names!r}")

    @property
    def given(self) -> dict[Task, str]:
        """The tasks that have their own model."""
        every: dict[Task, str] = {task: getattr(self, task) for task in TASKS}
        return {task: names for task, names in every.items() if names}
