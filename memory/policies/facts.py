"""How sure we are of a fact, and what makes two statements meet."""

from __future__ import annotations

from dataclasses import dataclass

from ..language.locales import locale
from .checks import between, require, unit


@dataclass(frozen=True, slots=True)
class ConfidencePolicy:
    """How sure we are of a fact, 0–1."""

    permanent: float = 0.8
    persistent: float = 0.7
    assistant_discount: float = 0.2
    tool_discount: float = 0.3
    reinforcement: float = 0.05
    consolidated: float = 0.5
    """Of a consolidated fact for which the model named none."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            unit(f"confidence.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """When two statements meet (memory-model §6). The zones of similarity belong to the embedder."""

    hot: float | None = 0.95
    near_dup: float = 0.85
    conflict_check: float = 0.40
    neighbours: int = 5
    lexical: bool = False
    """True for the hashing embedder: NEAR-DUP by token Jaccard, and there is no HOT."""
    jaccard_near_dup: float = 0.8
    locale: str = "en"
    """The pack that statements are taken apart with (memory/locales)."""

    def __post_init__(self) -> None:
        bounds = [self.conflict_check, self.near_dup] + ([] if self.hot is None else [self.hot])
        for bound in [*bounds, self.jaccard_near_dup]:
            unit("conflict zone", bound)
        locale(self.locale)
        require(bounds == sorted(bounds), "conflict zones must rise: conflict_check, near_dup, hot")
        between("conflict.neighbours", self.neighbours, 1, 100)
