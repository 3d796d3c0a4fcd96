"""Policies of agents: the persona of each, and the tools that they are offered."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import require, unit


@dataclass(frozen=True, slots=True)
class Persona:
    """An agent's personality: the six traits of HEXACO (Ashton and Lee 2007), 0–1. A trait acts above 0.6."""

    honesty: float = 0.5
    """Corrections count more, and facts merge sooner."""
    emotionality: float = 0.5
    """Emotions are kept; events, and what has an emotion, count more."""
    extraversion: float = 0.5
    """Has no effect."""
    agreeableness: float = 0.5
    """Preferences count more, and a read returns more."""
    conscientiousness: float = 0.5
    """Goals and tasks count more, facts merge later, consolidation comes sooner."""
    openness: float = 0.5
    """More is kept."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            unit(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class ToolsPolicy:
    """Which tools agents are offered."""

    pack: tuple[str, ...] = ()
    """Names of the tools. Empty: all but those that one has to ask for."""

    def __post_init__(self) -> None:
        if not self.pack:
            return
        from ...schemas.tools import TOOLS_BY_NAME  # imported here because its models load slowly

        unknown = sorted(set(self.pack) - TOOLS_BY_NAME.keys())
        known = ", ".join(TOOLS_BY_NAME)
        require(not unknown, f"tools.pack: there is no tool {', '.join(unknown)[:200]}; there are {known}")
