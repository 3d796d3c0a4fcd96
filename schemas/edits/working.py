"""Edits of a session's working set. The observer applies them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ..base import Content, Contract, Metadata, OurId, Subject, Unit
from ..observations import Category
from ..turns import Sensitivity
from ..working_set import WorkingEntry

ADVANCE_MAX: Final = 1_000


class WorkingAdd(Contract):
    """`args` of working.add: an entry that nobody said. One with the same subject and canonical text is refreshed."""

    content: Content
    subject: Subject = "user"
    category: Category = "knowledge"
    importance: Unit = 0.5
    pinned: bool = False
    """Without a free slot for a pin the entry is added unpinned."""
    replaces: OurId | None = None
    """The entry that this one supersedes."""
    sensitivity: Sensitivity = "internal"
    metadata: Metadata = Field(default_factory=dict)


class WorkingEntryRef(Contract):
    """`args` of working.evict, working.pin, working.unpin and working.refresh."""

    entry_id: OurId


class WorkingAdvance(Contract):
    """`args` of working.advance: the turn counter of salience moves on, without a turn of the conversation."""

    turns: Annotated[int, Field(ge=1, le=ADVANCE_MAX)] = 1


class WorkingChanged(Contract):
    """Result of every edit of a working set.

    `entry`: the entry after the edit; None where it left. `evicted`: ids of entries that had to leave for it.
    """

    turn: Annotated[int, Field(ge=0)]
    entry: WorkingEntry | None = None
    evicted: tuple[OurId, ...] = ()
