"""Conditions of a read on tags, metadata, session, agent, trust and time, as Qdrant conditions for each tier. Pure.

Tags, session, agent, trust and time have payload indexes. Metadata has names that only the producer knows, so its
conditions are checked on the owner's records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from qdrant_client import models

from ..adapters.vectors.conditions import any_of, equals, is_empty, is_filled, same
from ..schemas.base import INTEGER_MAX, INTEGER_MIN, TAG_MAX, TAGS_MAX
from ..schemas.facts import Trust
from ..schemas.recall import Tier

CONDITIONS_MAX: Final = 8
VALUES_MAX: Final = 32
"""Maximum number of conditions on metadata, and of values of one condition."""
EXACT_MAX: Final = 2**53
"""The greatest number up to which the engine compares whole numbers exactly in a range."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
Scalar = str | int | float
_ROLES: Final[dict[Trust, tuple[str, ...]]] = {
    "user": ("user",),
    "assistant": ("assistant",),
    "tool": ("tool", "system"),
}


@dataclass(frozen=True, slots=True)
class MetadataCondition:
    """A condition on one name of the metadata. Raises ValueError when it is empty or the name is invalid."""

    name: str
    values: tuple[Scalar, ...] = ()
    """The record has one of these values, or a list that contains one of them. Booleans cannot be compared."""
    exists: bool | None = None
    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.name) is None:
            raise ValueError(f"metadata: {self.name!r} is no name: use letters, digits and _, at most 64")
        if len(self.values) > VALUES_MAX:
            raise ValueError(f"metadata: at most {VALUES_MAX} values can be asked for, not {len(self.values)}")
        if any(isinstance(each, bool) for each in self.values):
            raise ValueError(f"metadata: {self.name}: a boolean cannot be compared; store a text or a number")
        for value in self.values:
            if not isinstance(value, str):
                _require_comparable(self.name, value)
        for limit in self._limits:
            _require_comparable(self.name, limit)
            if float(limit) != limit:
                limits = "a range compares whole numbers of at most 53 bits"
                raise ValueError(f"metadata: {self.name}: {limits}, not {limit}")
        if not self.values and self.exists is None and not self._limits:
            raise ValueError(f"metadata: {self.name} needs a value, `in`, `exists` or a range")

    @property
    def _limits(self) -> tuple[float, ...]:
        return tuple(each for each in (self.gt, self.gte, self.lt, self.lte) if each is not None)

    def conditions(self) -> Iterator[models.Condition]:
        path = f"metadata.{self.name}"
        if len(self.values) == 1:
            yield _equal(path, self.values[0])
        elif self.values:
            yield models.Filter(should=[_equal(path, each) for each in self.values])
        if self.exists is True:
            yield is_filled(path)
        elif self.exists is False:
            yield is_empty(path)
        if self._limits:
            limits = models.Range(gt=self.gt, gte=self.gte, lt=self.lt, lte=self.lte)
            yield models.FieldCondition(key=path, range=limits)


@dataclass(frozen=True, slots=True)
class RecordConditions:
    """The conditions of one read. A record meets all of them. Raises ValueError with the name of an invalid one."""

    tags: tuple[str, ...] = ()
    """The record has all of these tags."""
    metadata: tuple[MetadataCondition, ...] = ()
    session_id: str | None = None
    """The record was said in this session."""
    agent_id: str | None = None
    """The record was said in a turn of this agent."""
    trust: tuple[Trust, ...] = ()
    """The record comes from one of these origins."""
    since: datetime | None = None
    until: datetime | None = None
    """The record was said at `since` or later, and at `until` or before."""

    def __post_init__(self) -> None:
        if len(self.tags) > TAGS_MAX or any(len(each) > TAG_MAX for each in self.tags):
            raise ValueError(f"tags: at most {TAGS_MAX} tags of {TAG_MAX} characters can be asked for")
        if len(self.metadata) > CONDITIONS_MAX:
            raise ValueError(f"metadata: at most {CONDITIONS_MAX} conditions can be asked for")
        for name, moment in (("since", self.since), ("until", self.until)):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} needs a time zone")
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError("since is later than until")

    def __bool__(self) -> bool:
        return self != NO_CONDITIONS

    def of(self, tier: Tier) -> list[models.Condition]:
        """Return the conditions for the records of a tier other than `working`."""
        facts = tier == "semantic"
        conditions: list[models.Condition] = [equals("tags", each) for each in self.tags]
        for each in self.metadata:
            conditions += each.conditions()
        if self.session_id is not None:
            conditions.append(equals("evidence[].session_id" if facts else "session_id", self.session_id))
        if self.agent_id is not None:
            conditions.append(equals("evidence[].agent_id" if facts else "agent_id", self.agent_id))
        if self.trust and tier == "turns":
            conditions.append(any_of("role", [role for each in self.trust for role in _ROLES[each]]))
        elif self.trust:
            conditions.append(any_of("trust", self.trust))
        if self.since is not None or self.until is not None:
            said = models.DatetimeRange(gte=self.since, lte=self.until)
            key = "evidence[].occurred_at" if facts else "occurred_at"
            conditions.append(models.FieldCondition(key=key, range=said))
        return conditions


NO_CONDITIONS: Final = RecordConditions()


def _require_comparable(name: str, number: float) -> None:
    """Raise ValueError for a number that the engine does not store: a whole number of more than 64 bits, or no finite
    number."""
    if isinstance(number, int):
        if not INTEGER_MIN <= number <= INTEGER_MAX:
            raise ValueError(f"metadata: {name}: a whole number must be from -(2**63) to 2**63 - 1")
    elif not math.isfinite(number):
        raise ValueError(f"metadata: {name}: {number} cannot be compared; give a finite number")


def _equal(path: str, value: Scalar) -> models.Condition:
    """Match a value. A range, which also finds the whole number that is stored with a point, rounds whole numbers of
    more than 53 bits."""
    if isinstance(value, int) and abs(value) > EXACT_MAX:
        return equals(path, value)
    return same(path, value)
