"""Retraction of a turn: the edit of a session, and its parts for the owners of records that the turn caused
(docs/design/retraction.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import CommandId, Contract, GivenId, Reason

Count = Annotated[int, Field(ge=0)]


class TurnRetract(Contract):
    """`args` of turn.retract: the turn is taken back. Its messages and its working entries are deleted, its episodes
    end, its tasks are cancelled, and facts lose its evidence. The turn has no effect if it arrives later."""

    turn_id: GivenId
    reason: Reason = ""


class TurnRetracted(Contract):
    """Result of turn.retract. The commands take the turn out of facts, tasks and episodes, one for each owner."""

    turn_id: GivenId
    retracted: bool
    """False if the turn was retracted before."""
    messages: Count
    """Number of stored messages that were deleted."""
    entries: Count
    """Number of working entries that were deleted."""
    command_ids: tuple[CommandId, ...]


class FactsRetract(Contract):
    """`args` of facts.retract: an owner's facts and tasks lose a turn. Only turn.retract causes this command."""

    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    reason: Reason = ""


class FactsRetracted(Contract):
    """Result of facts.retract."""

    changed: Count
    """Number of facts that lost the turn's evidence, and have other evidence."""
    invalidated: Count
    """Number of facts that had no other evidence."""
    cancelled: Count
    """Number of tasks of the turn that were cancelled."""
    command_id: CommandId
    """The command that takes the turn out of the owner's episodes."""


class EpisodesRetract(FactsRetract):
    """`args` of episodes.retract: an owner's episodes and digest lose a turn. Only facts.retract causes this
    command."""

    facts: Count = 0
    """Number of facts that the retraction changed. The digest may contain them."""


class EpisodesRetracted(Contract):
    """Result of episodes.retract."""

    episodes: Count
    """Number of episodes that were deleted now: of the turn, and summaries that include it."""
    digest: bool
    """True when the owner's digest was deleted. The next run writes it again."""
