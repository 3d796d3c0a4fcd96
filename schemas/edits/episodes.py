"""Edits of episodes by hand. The reflector adds episodes; consolidation applies edits of existing episodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base import Contract, GivenId, Instant, OurId, Reason, Tags, Unit
from ..facts import Trust
from ..observations import Category
from ..turns import Sensitivity
from .common import MERGED_MAX, GivenContent, GivenSubject, MergedIds


class EpisodeAdd(Contract):
    """`args` of episodes.add: record an event. An equal text of this owner is not added twice."""

    content: GivenContent
    subject: GivenSubject = "user"
    category: Category = "event"
    durability: Literal["persistent", "permanent"] = "persistent"
    importance: Unit = 0.6
    tags: Tags = ()
    occurred_at: Instant | None = None
    """Time of the event; None: the time of the command."""
    user_id: GivenId | None = None
    """The user who was present; None: the owner, if the owner is a user."""
    session_id: GivenId | None = None
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"


class EpisodeEdit(Contract):
    """`args` of episodes.update. A new text is hashed and embedded again."""

    episode_id: OurId
    content: GivenContent | None = None
    tags: Tags | None = None
    importance: Unit | None = None
    trust: Trust = "user"
    """`user` for a person's own edit, `assistant` for a tool call of an agent."""
    reason: Reason = ""

    @model_validator(mode="after")
    def _changes_something(self) -> EpisodeEdit:
        if self.content is None and self.tags is None and self.importance is None:
            raise ValueError("content, tags or importance is needed")
        return self


class EpisodeForget(Contract):
    """`args` of episodes.forget: the episode is left out of every read, and stays in the store as deleted."""

    episode_id: OurId
    reason: Reason = ""


class EpisodesMerge(Contract):
    """`args` of episodes.merge. The first episode survives, with the tags of all episodes and the greatest strength.
    Links of the other episodes are redirected to the first episode. The other episodes are deleted; each has a
    reference to the first episode."""

    episode_ids: MergedIds
    content: GivenContent | None = None
    """Merged text; None: the texts are concatenated."""
    trust: Trust = "user"
    reason: Reason = ""


class EpisodesMark(Contract):
    """`args` of episodes.mark_consolidated: later consolidation runs ignore these episodes."""

    episode_ids: Annotated[tuple[OurId, ...], Field(min_length=1, max_length=MERGED_MAX)]


class EpisodeAdded(Contract):
    """Result of episodes.add. `existing`: the episode existed before."""

    episode_id: OurId
    existing: bool


class EpisodeEdited(Contract):
    """Result of episodes.update and episodes.forget. `changed` is false when the episode already had this state."""

    episode_id: OurId
    changed: bool


class EpisodesMerged(Contract):
    """Result of episodes.merge."""

    episode_id: OurId
    merged_episode_ids: tuple[OurId, ...]


class EpisodesMarked(Contract):
    """Result of episodes.mark_consolidated: the episodes that were not marked before."""

    episode_ids: tuple[OurId, ...]
