"""Policies of agents: their personas, and the tools that they are offered."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import require, unit


@dataclass(frozen=True, slots=True)
class Persona:
    """The personality of an agent: the six traits of HEXACO (Ashton and Lee 2007), 0–1. A trait has an effect above
    0.6."""

    honesty: float = 0.5
    """Corrections get a higher importance, and facts merge at a lower similarity."""
    emotionality: float = 0.5
    """Emotions are kept. Events and observations with an emotion get a higher importance."""
    extraversion: float = 0.5
    """Has no effect."""
    agreeableness: float = 0.5
    """Preferences get a higher importance, and a read returns more items."""
    conscientiousness: float = 0.5
    """Goals and tasks get a higher importance, facts merge at a higher similarity, and consolidation starts after fewer
    episodes."""
    openness: float = 0.5
    """More observations are kept."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            unit(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class ToolsPolicy:
    """The tools that agents are offered."""

    pack: tuple[str, ...] = ()
    """Names of the tools. Empty: all tools that are offered by default."""

    def __post_init__(self) -> None:
        if not self.pack:
            return
        from ...schemas.tools import TOOLS_BY_NAME  # imported here because its models load slowly

        unknown = sorted(set(self.pack) - TOOLS_BY_NAME.keys())
        known = ", ".join(TOOLS_BY_NAME)
        require(not unknown, f"tools.pack: there is no tool {', '.join(unknown)[:200]}; there are {known}")
