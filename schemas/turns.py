"""Turns of a conversation: the records that chat services produce on memory.turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from . import ids
from .base import Contract, GivenId, Metadata, Tags
from .said_at import LocalInstant, SaidAt, TimeZoneName, in_utc, in_zone, zone_named

TURN_MAX_BYTES = 256 * 1024
MESSAGES_MAX = 64

Role = Literal["user", "assistant", "tool", "system"]
Scope = Literal["user", "agent", "org", "group"]
Sensitivity = Literal["public", "internal", "secret"]
SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)
"""Sensitivities in ascending order: anyone may read `public`; `secret` needs a separate permission."""

ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
}
"""Roles by the names that producers use. Other names are unknown roles."""

SHORT_MAX: Final = 128
ShortName = Annotated[str, StringConstraints(max_length=SHORT_MAX)]


class _Open(BaseModel):
    """Part of a turn. Unknown fields are kept."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True, extra="allow", allow_inf_nan=False)


class ContentPart(_Open):
    """An OpenAI content part. Texts are joined; other parts are counted."""

    type: ShortName
    text: str | None = None


UNREAD: Final = "unread_message"
"""Name of the field that keeps the original value of a message that could not be read."""


UNREAD_CONTENT: Final = "content that is neither text nor parts"
NO_CONTENT: Final = "no content"


class UnreadMessage(Contract):
    """A message of a turn without readable content."""

    index: Annotated[int, Field(ge=0)]
    """Index in the turn, as in `message_index` of the session log."""
    why: ShortName
    """An unknown role, the type of an item, or the types of its parts."""


class TurnMessage(_Open):
    role: Role
    content: str | tuple[ContentPart, ...] | None = None
    name: ShortName | None = None
    """Name of the speaker, in a conversation of several people."""
    created_at: Annotated[
        SaidAt, Field(validation_alias=AliasChoices("created_at", "createdAt"), exclude_if=lambda at: at is None)
    ] = None
    """Time when the message was written. Null: the turn's time."""

    @property
    def text(self) -> str:
        """Text of the message: the string, or the text parts joined by line breaks."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if part.type == "text" and part.text is not None)

    @property
    def other_parts(self) -> int:
        """Number of parts that are not text (images, audio …). They are counted, not remembered."""
        if self.content is None or isinstance(self.content, str):
            return 0
        return sum(part.type != "text" for part in self.content)

    @property
    def unread(self) -> str | None:
        """Reason why the message has no readable content. None: it has a text, or there is nothing to read.

        A message that is not a chat message keeps its place in the turn: it has the role `tool`, no content, and the
        original value in the field `UNREAD`."""
        if self.model_extra and UNREAD in self.model_extra and self.role == "tool" and self.content is None:
            return why_unread(self.model_extra[UNREAD])
        if not isinstance(self.content, tuple) or not self.content or self.other_parts < len(self.content):
            return None
        return f"parts without text: {', '.join(dict.fromkeys(short(part.type) for part in self.content))}"[:SHORT_MAX]


def why_unread(sent: JsonValue) -> str:
    """Return why a value is not a readable chat message."""
    if not isinstance(sent, dict):
        return "no object"
    kind, role = sent.get("type"), sent.get("role")
    if isinstance(kind, str) and role is None:
        return f"an item {short(kind)}"
    if role is None:
        return "no role"
    if not isinstance(role, str):
        return "a role that is no text"
    if known_role(role) is None:
        return f"the role {short(role)}"
    return UNREAD_CONTENT if "content" in sent else NO_CONTENT


def short(name: str) -> str:
    """Shorten a name from a producer for a message or a log."""
    return "".join(each for each in name[:40] if each.isprintable())


def known_role(name: str) -> Role | None:
    """Return the role for a producer's name; None for an unknown name."""
    return ROLES.get(name.strip().casefold())


class Owner(Contract):
    """Owner of an episode or a fact, within a tenant."""

    scope: Scope
    id: GivenId

    def key(self, tenant_id: str) -> str:
        return ids.owner_key(tenant_id, self.scope, self.id)

    @classmethod
    def of_key(cls, owner_key: str) -> Owner:
        """Return the owner of a key. Raises ValueError."""
        parts = ids.split(owner_key)
        if len(parts) != 3:
            raise ValueError("owner_key is no key of an owner: it has the form tenant/scope/id")
        return cls.from_payload({"scope": parts[1], "id": parts[2]})


def one_as_list(value: object) -> object:
    """Return a single text as a list, and None as an empty list."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


class Turn(Contract):
    """One turn. A producer sends at least the four ids and `messages`. Unknown fields are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    messages: Annotated[tuple[TurnMessage, ...], Field(max_length=MESSAGES_MAX)]
    occurred_at: LocalInstant | None = None
    """Default: the latest time of a message; if no message has a time, the record's timestamp."""
    time_zone: Annotated[
        TimeZoneName,
        Field(validation_alias=AliasChoices("time_zone", "timeZone", "timezone"), exclude_if=lambda name: name is None),
    ] = None
    """Time zone of the speakers. Null: the offset of `occurred_at` applies."""
    agent_id: GivenId | None = None
    org_id: GivenId | None = None
    group_id: GivenId | None = None
    scope: Scope | None = None
    """Scope of the owner of learnt memory; null: the policy's `episodic.scope`, by default user."""
    sensitivity: Sensitivity | None = None
    ends_session: bool = False
    tags: Annotated[Tags, BeforeValidator(one_as_list), Field(exclude_if=lambda tags: not tags)] = ()
    """Tags of the memory that is learnt from the turn. A single text counts as one tag, and null as none."""
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.messages and not self.ends_session:
            raise ValueError("messages: at least one is needed (none only with ends_session)")
        if self.scope not in (None, "user") and getattr(self, f"{self.scope}_id") is None:
            raise ValueError(f"scope {self.scope} needs {self.scope}_id")
        return self

    @property
    def session_key(self) -> str:
        return ids.session_key(self.tenant_id, self.user_id, self.session_id)

    @property
    def unread(self) -> tuple[UnreadMessage, ...]:
        """Messages without readable content."""
        whys = ((index, message.unread) for index, message in enumerate(self.messages))
        return tuple(UnreadMessage(index=index, why=why) for index, why in whys if why is not None)

    @property
    def zone(self) -> tzinfo | None:
        """The zone of `time_zone`; None for an unknown name."""
        try:
            return None if self.time_zone is None else zone_named(self.time_zone)
        except ValueError:
            return None

    def local(self, at: datetime) -> datetime:
        """Return a time in the time zone of the speakers. Without a known time zone, return the time unchanged."""
        return in_zone(at, self.zone)

    def in_utc(self) -> Turn:
        """Return the turn with its time in UTC."""
        return self if self.occurred_at is None else self.model_copy(update={"occurred_at": in_utc(self.occurred_at)})

    def owner(self, *, default_scope: Scope = "user") -> Owner:
        """Return the owner of memory that is learnt from this turn. Raise ValueError when the default scope's id is
        missing."""
        scope = self.scope or default_scope
        owner_id = getattr(self, f"{scope}_id")
        if owner_id is None:
            raise ValueError(f"scope {scope} needs {scope}_id")
        return Owner(scope=scope, id=owner_id)


def up_to(ceiling: Sensitivity) -> tuple[Sensitivity, ...]:
    """Return the sensitivities that a reader with this ceiling may read."""
    return SENSITIVITIES[: SENSITIVITIES.index(ceiling) + 1]


def turn_value(fields: dict[str, JsonValue]) -> bytes:
    """Encode a turn like a producer: JSON, UTF-8. An unpaired surrogate is written as its escape. Raise ValueError for
    a number that JSON cannot represent."""
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")
