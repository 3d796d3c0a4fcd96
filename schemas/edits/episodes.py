"""Edits of episodes by hand. The reflector adds them; consolidation applies what changes one that exists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base import Content, Contract, GivenId, Instant, OurId, Reason, Subject, Tags, Unit
from ..facts import Trust
from ..observations import Category
from ..turns import Sensitivity
from .common import MERGED_MAX, MergedIds


class EpisodeAdd(Contract):
    """`args` of episodes.add: something that happened. An equal text of this owner is not added twice."""

    content: Content
    subject: Subject = "user"
    category: Category = "event"
    durability: Literal["persistent", "permanent"] = "persistent"
    importance: Unit = 0.6
    tags: Tags = ()
    occurred_at: Instant | None = None
    """None: when the command was issued."""
    user_id: GivenId | None = None
    """The user who was there; None: the owner, where that is a user."""
    session_id: GivenId | None = None
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"


class EpisodeEdit(Contract):
    """`args` of episodes.update. A new text is hashed and embedded again."""

    episode_id: OurId
    content: Content | None = None
    tags: Tags | None = None
    importance: Unit | None = None
    trust: Trust = "user"
    """A person's own edit is `user`, a tool call of an agent `assistant`."""
    reason: Reason = ""

    @model_validator(mode="after")
    def _changes_something(self) -> EpisodeEdit:
        if self.content is None and self.tags is None and self.importance is None:
            raise ValueError("content, tags or importance is needed")
        return self


class EpisodeForget(Contract):
    """`args` of episodes.forget: the episode leaves every read, and stays in the store as deleted."""

    episode_id: OurId
    reason: Reason = ""


class EpisodesMerge(Contract):
    """`args` of episodes.merge. The first episode survives, with the tags of all and the greatest strength; links lead
    to it; the others are deleted with a reference to it."""

    episode_ids: MergedIds
    content: Content | None = None
    """None: their texts, one after the other."""
    trust: Trust = "user"
    reason: Reason = ""


class EpisodesMark(Contract):
    """`args` of episodes.mark_consolidated: no run looks at these episodes again."""

    episode_ids: Annotated[tuple[OurId, ...], Field(min_length=1, max_length=MERGED_MAX)]


class EpisodeAdded(Contract):
    """Result of episodes.add. `existing`: it was there before."""

    episode_id: OurId
    existing: bool


class EpisodeEdited(Contract):
    """Result of episodes.update and episodes.forget. `changed` false: it was so already."""

    episode_id: OurId
    changed: bool


class EpisodesMerged(Contract):
    """Result of episodes.merge."""

    episode_id: OurId
    merged_episode_ids: tuple[OurId, ...]


class EpisodesMarked(Contract):
    """Result of episodes.mark_consolidated: those that were not marked before."""

    episode_ids: tuple[OurId, ...]
