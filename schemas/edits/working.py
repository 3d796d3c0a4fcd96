"""Edits of a session's working set. The observer applies them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ..base import Contract, OurId, StoredMetadata, Unit
from ..observations import Category
from ..turns import Sensitivity
from ..working_set import WorkingEntry
from .common import GivenContent, GivenSubject

ADVANCE_MAX: Final = 1_000


class WorkingAdd(Contract):
    """`args` of working.add: add an entry that comes from no turn. An existing entry with the same subject and
    canonical text is refreshed."""

    content: GivenContent
    subject: GivenSubject = "user"
    category: Category = "knowledge"
    importance: Unit = 0.5
    pinned: bool = False
    """If all pin slots are used, the entry is added unpinned."""
    replaces: OurId | None = None
    """The entry that this entry replaces."""
    sensitivity: Sensitivity = "internal"
    metadata: StoredMetadata = Field(default_factory=dict)


class WorkingEntryRef(Contract):
    """`args` of working.evict, working.pin, working.unpin and working.refresh."""

    entry_id: OurId


class WorkingAdvance(Contract):
    """`args` of working.advance: increase the session's turn counter, as if turns had taken place. The salience of
    entries decays with this counter."""

    turns: Annotated[int, Field(ge=1, le=ADVANCE_MAX)] = 1


class WorkingChanged(Contract):
    """Result of every edit of a working set.

    `entry` is the entry after the edit; None when it was removed. `evicted` has the ids of entries that were removed to
    make room.
    """

    turn: Annotated[int, Field(ge=0)]
    entry: WorkingEntry | None = None
    evicted: tuple[OurId, ...] = ()
