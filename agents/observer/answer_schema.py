"""Forms of the observer's question, and the schema of the answer (docs/reference/models.md).

There are three forms: the full form, the short form for small models, and a form for working-only deployments. The
slots of the policy are a part of the first two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, get_args

from pydantic import BeforeValidator, Field, JsonValue

from ...memory.language.text import escape_markers, one_line
from ...memory.policies import SLOTS, MemoryPolicy, SlotPolicy
from ...memory.secrets.secret_filter import at_least
from ...schemas.base import Quote, Signed, Subject, Unit
from ...schemas.observations import OBSERVATIONS_MAX, Category, Durability
from ...schemas.slots import OTHER, Qualifier, SlotName, SlotValue, TypedValue
from ...schemas.turns import SENSITIVITIES, Sensitivity
from ..common.structured_output import (
    Item,
    Moment,
    MomentEnd,
    ParsedItems,
    ShortId,
    Statement,
    parse_items,
    strict_schema,
)
from . import answer_fields as fields
from . import answer_rules as rules

TASK: Final = "observations"
DETAILS: Final = "details"
"""The object of an answer with the fields that few statements have. An answer may also have them in the item."""


SHORT_MAX: Final = 5
"""Limit of the short form on the observations of a message. A small model fills a longer list with repetitions."""


class EmotionItem(Item):
    valence: Signed
    arousal: Signed


def _or_user(value: object) -> object:
    return "user" if value is None or (isinstance(value, str) and not value.strip()) else value


def _subject(value: object) -> object:
    value = _or_user(value)
    return fields.user_of(one_line(value).lower()) if isinstance(value, str) else value


class ObservationItem(Item):
    """One item of the answer. Statement and quote must be there. Any other field has a default."""

    other_names: ClassVar[Mapping[str, str]] = fields.OTHER_NAMES

    turn: Annotated[ShortId, BeforeValidator(fields.turn)] = None
    evidence: Annotated[Quote, BeforeValidator(fields.quote), Field(min_length=1)]
    content: Statement
    subject: Annotated[Subject, BeforeValidator(_subject)] = "user"
    slot: Annotated[SlotName, BeforeValidator(fields.slot)] = OTHER
    value: Annotated[SlotValue | None, BeforeValidator(fields.phrase)] = None
    denied: Annotated[bool, BeforeValidator(fields.flag)] = False
    qualifier: Annotated[Qualifier | None, BeforeValidator(fields.phrase)] = None
    durability: Annotated[Durability, BeforeValidator(fields.durability)] = "persistent"
    importance: Annotated[Unit, BeforeValidator(fields.importance)] = 0.5
    category: Annotated[Category, BeforeValidator(fields.category)] = "attribute"
    replaces: ShortId = None
    is_correction: Annotated[bool, BeforeValidator(fields.flag)] = False
    pinned: Annotated[bool, BeforeValidator(fields.flag)] = False
    due_at: MomentEnd = None
    valid_from: Moment = None
    valid_to: MomentEnd = None
    sensitivity: Annotated[Sensitivity, BeforeValidator(fields.sensitivity)] = "internal"
    emotion: EmotionItem | None = None

    @classmethod
    def given(cls, raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        details = raw.get(DETAILS)
        given = super().given(raw)
        return {**super().given(details), **given} if isinstance(details, Mapping) else given

    @property
    def typed(self) -> dict[str, Any]:
        """The four fields of the slot, as a record has them."""
        return TypedValue(self.slot, self.value, self.denied, self.qualifier).fields()

    def completed(self, slots: Mapping[str, SlotPolicy]) -> ObservationItem:
        """Return the item with the defaults of its slot, then of its category, in the fields that the answer left out.

        An unknown slot becomes `other`. The sensitivity is at least the slot's.
        """
        slot = slots.get(self.slot)
        if slot is None:
            importance = fields.USUAL_IMPORTANCE.get(self.category, self.importance)
            usual: dict[str, object] = {"slot": OTHER, "importance": importance}
            kept = self.model_fields_set - {"slot"}
        else:
            usual = {"durability": slot.durability, "importance": slot.importance, "category": slot.category}
            usual |= {"sensitivity": at_least(self.sensitivity, slot.sensitivity)}
            kept = self.model_fields_set - {"sensitivity"}
        return self.model_copy(update={name: value for name, value in usual.items() if name not in kept})


class WorkingItem(ObservationItem):
    """An item of the working-only form: fields that the form leaves out have a default. Fields that a model adds are
    read as in the whole form."""

    evidence: Annotated[Quote, BeforeValidator(fields.quote)] = ""
    durability: Annotated[Durability, BeforeValidator(fields.durability)] = "session"
    category: Annotated[Category, BeforeValidator(fields.category)] = "knowledge"


class EssentialItem(Item):
    """What the working-only form asks for when one turn is shown."""

    content: Statement
    importance: Unit
    pinned: bool = False
    replaces: ShortId = None


class EssentialItemOfTurn(EssentialItem):
    """What the working-only form asks for when several turns are shown."""

    turn: ShortId = None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The rules with placeholders (answer_rules.py), the answer schemas for one turn and for several turns, and the
    slots. Without slots, an item keeps its own defaults."""

    version: str
    rules: str
    one: dict[str, JsonValue]
    several: dict[str, JsonValue]
    item: type[ObservationItem]
    slots: Mapping[str, SlotPolicy] = field(default_factory=dict)
    max_per_message: int = OBSERVATIONS_MAX
    """The limit of the form on the observations of a message. The lower one of it and the policy's is asked for."""

    @property
    def is_full(self) -> bool:
        return self.rules == rules.FULL

    def schema(self, turns: int, *, most: int | None = None) -> dict[str, JsonValue]:
        """Return the schema of an answer about this many turns with at most `most` items."""
        schema = self.one if turns == 1 else self.several
        if most is None:
            return schema
        items = schema["properties"]
        assert isinstance(items, dict)
        items = items[TASK]
        assert isinstance(items, dict)
        return {**schema, "properties": {TASK: {**items, "maxItems": most}}}

    def most_of(self, max_per_message: int) -> int:
        """Return the number of observations of a message that the form asks for at most."""
        return min(max_per_message, self.max_per_message)

    def text(self, max_per_message: int, instructions: str) -> str:
        """Return the rules as the model sees them, with the operator's instructions at the end."""
        parts = [self.rules.format(max_per_message=self.most_of(max_per_message), slots=", ".join(self.slots))]
        own = [f"- {name}: {one_line(each.description)}" for name, each in self.slots.items() if _is_own(name, each)]
        if own:
            parts += ["", rules.OWN_SLOTS, *own]
        if instructions.strip():
            parts += ["", rules.INSTRUCTIONS, escape_markers(instructions.strip())]
        return "\n".join(parts)

    def parse(self, value: JsonValue) -> ParsedItems[ObservationItem]:
        """Parse an answer. Raises ValueError when its outer shape is wrong or no item is valid."""
        parsed = parse_items(value, TASK, self.item)
        if not self.slots:
            return parsed
        items = tuple((place, item.completed(self.slots)) for place, item in parsed.items)
        return ParsedItems(items, parsed.dropped, parsed.faults)


def _is_own(name: str, slot: SlotPolicy) -> bool:
    """Return whether the deployment or the tenant defined the slot, or described it in other words."""
    shipped = SLOTS.get(name)
    return shipped is None or shipped.description != slot.description


def form_for(policy: MemoryPolicy) -> AnswerForm:
    """Return the form of the question for a tenant's policy."""
    if policy.tiers.working_only:
        return WORKING_ONLY
    slots = {name: slot for name, slot in policy.slots.items() if slot.enabled}
    if policy.models.form == "short":
        return AnswerForm(
            "observe-short/v1", rules.SHORT, *_schemas(tuple(slots), short=True), ObservationItem, slots, SHORT_MAX
        )
    return AnswerForm("observe/v2", rules.FULL, *_schemas(tuple(slots), short=False), ObservationItem, slots)


@lru_cache(256)
def _schemas(slots: tuple[str, ...], *, short: bool) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Return the schemas for one turn and for several turns. They are made once for each set of slots."""
    item = _short_item(slots) if short else _full_item(slots)
    return _list_of(item), _list_of({"turn": _TEXT, **item})


_Node = dict[str, JsonValue]
_TEXT: Final[_Node] = {"type": "string"}
_FLAG: Final[_Node] = {"type": "boolean"}
_NUMBER: Final[_Node] = {"type": "number"}


def _one_of(names: Sequence[str]) -> _Node:
    return {"type": "string", "enum": list(names)}


def _or_null(node: _Node) -> _Node:
    return {"anyOf": [node, {"type": "null"}]}


def _object(properties: _Node) -> _Node:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(item: _Node) -> _Node:
    return _object({TASK: {"type": "array", "items": _object(item)}})


def _full_item(slots: tuple[str, ...]) -> _Node:
    times: _Node = {name: _or_null(_TEXT) for name in ("due_at", "valid_from", "valid_to")}
    details = {
        "pinned": _FLAG,
        **times,
        "sensitivity": _or_null(_one_of(SENSITIVITIES)),
        "emotion": _or_null(_object({"valence": _NUMBER, "arousal": _NUMBER})),
    }
    return {
        "evidence": _TEXT,
        "content": _TEXT,
        "subject": _TEXT,
        "slot": _one_of((*slots, OTHER)),
        "value": _or_null(_TEXT),
        "denied": _FLAG,
        "qualifier": _or_null(_TEXT),
        "durability": _or_null(_one_of(get_args(Durability))),
        "importance": _or_null(_NUMBER),
        "category": _or_null(_one_of(get_args(Category))),
        "replaces": _or_null(_TEXT),
        "is_correction": _FLAG,
        DETAILS: _or_null(_object(details)),
    }


def _short_item(slots: tuple[str, ...]) -> _Node:
    return {
        "evidence": _TEXT,
        "content": _TEXT,
        "slot": _one_of((*slots, OTHER)),
        "subject": _TEXT,
        "replaces": _or_null(_TEXT),
    }


WORKING_ONLY: Final = AnswerForm(
    "observe-working/v1",
    rules.WORKING,
    strict_schema(TASK, EssentialItem),
    strict_schema(TASK, EssentialItemOfTurn),
    WorkingItem,
)
WHOLE: Final = form_for(MemoryPolicy())
"""The full form with the slots that memstream defines."""
