"""What several users know, and a group of theirs may know too."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from ...schemas.observations import Category
from ...schemas.turns import Owner, Sensitivity
from .checks import at_least, require

GROUP_MAX = 128
NO_ID = ("Cc", "Cs")
USERS_MIN = 2


@dataclass(frozen=True, slots=True)
class SharingPolicy:
    """Off until a group is named: what was told to one user's memory is nobody else's unless an operator says so."""

    group: str = ""
    """Of each tenant, the group that facts are shared with; its members name it when they read (`groups`)."""
    users: int = 3
    """Distinct users whose active facts say it."""
    categories: tuple[Category, ...] = ("knowledge",)
    """What is about the world, not about a person."""
    ceiling: Sensitivity = "public"
    """The most sensitive that is shared; never secret."""

    def __post_init__(self) -> None:
        plain = len(self.group) <= GROUP_MAX and not any(unicodedata.category(each) in NO_ID for each in self.group)
        require(plain, f"sharing.group must be a group's id: at most {GROUP_MAX} characters, no control characters")
        at_least("sharing.users", self.users, USERS_MIN)
        require(self.ceiling != "secret", "sharing.ceiling must be public or internal: what is secret is never shared")

    @property
    def shared_with(self) -> Owner | None:
        """None: nothing is shared."""
        return Owner(scope="group", id=self.group) if self.group else None
