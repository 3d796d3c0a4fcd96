"""The edits by hand that the reflector applies, by kind of command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .scope import OwnerEdit

EDITS: Final[Mapping[str, OwnerEdit]] = {}
