"""Erasure of a session: the edit of the session, and its parts for the owners of records that the session caused
(docs/design/retraction.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import CommandId, Contract, GivenId, Reason

Count = Annotated[int, Field(ge=0)]


class EraseSession(Contract):
    """`args` of session.erase: the session is taken back for ever. Its messages, working set, blocks, episodes and
    tasks are deleted, facts lose its evidence, and a fact without other evidence is erased. No later event of the
    session has an effect."""

    reason: Reason = ""


class SessionErased(Contract):
    """Result of session.erase. The commands take the session out of facts, tasks and episodes, one for each owner."""

    erased: bool
    """False if the session was erased before."""
    messages: Count
    """Number of stored messages that were deleted."""
    entries: Count
    """Number of working entries that were deleted."""
    waiting: Count
    """Number of turns that waited to be observed, and are not observed any more."""
    command_ids: tuple[CommandId, ...]


class FactsErase(Contract):
    """`args` of facts.erase: an owner's facts and tasks lose a session. Only session.erase causes this command, and the
    command itself while facts or rows of erased facts are left."""

    user_id: GivenId
    session_id: GivenId
    reason: Reason = ""
    facts: Count = 0
    """Number of facts that the commands before this one changed or erased."""


class FactsErased(Contract):
    """Result of facts.erase."""

    changed: Count
    """Number of facts that lost the session's evidence, and have other evidence."""
    erased: Count
    """Number of facts that had no other evidence. The next command deletes their rows."""
    tasks: Count
    """Number of tasks of the session that were deleted."""
    command_id: CommandId
    """The next command: facts.erase while facts or rows of erased facts are left, then episodes.erase."""


class EpisodesErase(FactsErase):
    """`args` of episodes.erase: an owner's episodes, procedures and digest lose a session. Only facts.erase causes this
    command."""


class EpisodesErased(Contract):
    """Result of episodes.erase."""

    episodes: Count
    """Number of episodes and summaries of the session that were deleted."""
    procedures: Count
    """Number of procedures that were deleted, because only episodes of the session contain their steps."""
    digest: bool
    """True when the owner's digest was deleted. The next run writes it again."""
