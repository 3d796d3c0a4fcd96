"""The edits by hand that the reflector applies, by kind of command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import episodes, facts
from .scope import OwnerEdit

EDITS: Final[Mapping[str, OwnerEdit]] = {
    "facts.remember": facts.remember_fact,
    "facts.add": facts.remember_fact,
    "facts.update": facts.update,
    "facts.reinforce": facts.reinforce,
    "facts.supersede": facts.supersede,
    "facts.merge": facts.merge,
    "facts.forget": facts.forget,
    "episodes.add": episodes.add,
}
