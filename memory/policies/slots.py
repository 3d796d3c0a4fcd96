"""Slots of the memory: the attributes that statements are about (docs/reference/policies.md, `[memory.slots]`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from ...schemas.observations import Category, Durability
from ...schemas.slots import OTHER, SLOT_MAX
from ...schemas.turns import Sensitivity
from .checks import one_of, require, unit

SLOTS_MAX: Final = 128
DESCRIPTION_MAX: Final = 160
_NAME: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{SLOT_MAX - 1}}}")

Values = Literal["single", "many"]


@dataclass(frozen=True, slots=True)
class SlotPolicy:
    """One attribute of a subject, for example the employer."""

    description: str
    """Explanation for the model, up to 160 characters. The model sees the description of a slot that the deployment or
    the tenant defined. It sees only the names of the slots that memstream defines."""
    category: Category
    """Category of the statements."""
    values: Values = "many"
    """`single`: a subject has one value at a time, and a new value replaces the old one. `many`: several values can be
    true together. Values with different qualifiers never replace each other."""
    durability: Durability = "persistent"
    """Durability of a statement when the model gives none."""
    importance: float = 0.6
    """Importance of a statement when the model gives none."""
    sensitivity: Sensitivity = "internal"
    """Minimum sensitivity of the statements."""
    inverse: str = ""
    """The slot of the same relation from the other person's side: `parent` for `child`. Empty: none."""
    opposite: str = ""
    """The slot that denies a value of this slot: `dislikes` for `likes`. Empty: none."""
    enabled: bool = True
    """False: the slot does not exist. Statements about it have the slot `other`."""

    def __post_init__(self) -> None:
        one_of("category", self.category, Category)
        one_of("values", self.values, Values)
        one_of("durability", self.durability, Durability)
        one_of("sensitivity", self.sensitivity, Sensitivity)
        unit("importance", self.importance)
        size = len(self.description)
        require(0 < size <= DESCRIPTION_MAX, f"description must have 1 to {DESCRIPTION_MAX} characters, not {size}")


def check_slots(slots: Mapping[str, SlotPolicy]) -> None:
    """Check names, number and references of the slots. Raises ValueError."""
    require(len(slots) <= SLOTS_MAX, f"slots: there are {len(slots)}; at most {SLOTS_MAX} are allowed")
    for name, slot in slots.items():
        require(
            bool(_NAME.fullmatch(name)) and name != OTHER,
            f"slots: {name[:80]!r} is no name of a slot: use a-z, 0-9 and _, up to {SLOT_MAX} characters; "
            f"{OTHER} has a meaning of its own",
        )
        for field, other in (("inverse", slot.inverse), ("opposite", slot.opposite)):
            require(not other or other in slots, f"slots.{name}.{field}: there is no slot {other!r}")


def _single(
    description: str, category: Category, durability: Durability = "persistent", importance: float = 0.7
) -> SlotPolicy:
    return SlotPolicy(description, category, "single", durability, importance)


def _many(
    description: str, category: Category, importance: float = 0.6, *, inverse: str = "", opposite: str = ""
) -> SlotPolicy:
    return SlotPolicy(description, category, "many", "persistent", importance, inverse=inverse, opposite=opposite)


SLOTS: Final[Mapping[str, SlotPolicy]] = MappingProxyType(
    {
        "name": _single("the person's name, as it is written", "identity", "permanent", 0.9),
        "nickname": _many("another name of the person", "identity", 0.7),
        "pronouns": _single("the pronouns to use", "identity", "permanent", 0.8),
        "gender": _single("the person's gender", "identity", "permanent"),
        "birth_date": _single("the date or year of birth", "identity", "permanent", 0.8),
        "age": _single("the age in years", "identity"),
        "nationality": _many("a citizenship", "identity", 0.7),
        "origin": _single("where the person was born or grew up", "identity", "permanent"),
        "native_language": _single("the mother tongue", "identity", "permanent"),
        "religion": _single("the faith that the person has", "belief"),
        "politics": _single("the political view", "belief"),
        "belief": _many("an opinion or a conviction", "belief"),
        "residence": _single("the place where the person lives", "identity", importance=0.8),
        "address": _single("the street address", "identity"),
        "household": _many("who lives in the home", "relationship"),
        "contact": _many("an e-mail address, a phone number or an account name", "identity"),
        "employer": _single("the organisation that the person works for", "profession", importance=0.8),
        "job": _single("the occupation or job title", "profession", importance=0.8),
        "workplace": _single("where the person works: an office, a town, from home", "profession"),
        "work_hours": _single("when or how much the person works", "profession"),
        "industry": _single("the field of work", "profession"),
        "income": SlotPolicy("what the person earns", "profession", "single", importance=0.6, sensitivity="internal"),
        "project": _many("a project that the person works on", "profession"),
        "colleague": _many("a person at work", "relationship", inverse="colleague"),
        "manager": _single("the person whom the subject reports to", "relationship"),
        "education": _many("a school, a course of study or a degree", "knowledge", 0.7),
        "skill": _many("something that the person can do or knows well", "knowledge"),
        "language": _many("a language that the person speaks or learns", "knowledge", 0.7),
        "tool": _many("a product, software or device that is used", "attribute"),
        "spouse": SlotPolicy("husband, wife or partner", "relationship", "single", importance=0.8, inverse="spouse"),
        "marital_status": _single("single, engaged, married, divorced, widowed", "relationship"),
        "child": _many("a son or daughter", "relationship", 0.8, inverse="parent"),
        "parent": _many("mother or father", "relationship", 0.7, inverse="child"),
        "sibling": _many("a brother or sister", "relationship", 0.7, inverse="sibling"),
        "relative": _many("another member of the family", "relationship", inverse="relative"),
        "friend": _many("a friend", "relationship", inverse="friend"),
        "pet": _many("an animal in the home", "relationship", 0.7),
        "allergy": _many("an allergy or an intolerance", "attribute", 0.9),
        "condition": _many("an illness, injury or disability", "attribute", 0.8),
        "medication": _many("a medicine or a treatment", "attribute", 0.8),
        "diet": _single("how the person eats: vegetarian, vegan, halal", "attribute", importance=0.8),
        "measurement": _single("a size or weight; the qualifier names it: height, shoe size", "attribute"),
        "appearance": _many("how the person looks", "attribute"),
        "personality": _many("a trait of character", "attribute"),
        "likes": _many("something that the person likes", "preference", opposite="dislikes"),
        "dislikes": _many("something that the person dislikes", "preference", opposite="likes"),
        "prefers": _many("a choice between alternatives", "preference"),
        "favourite": _single("the favourite of a kind; the qualifier names the kind: colour", "preference"),
        "answer_style": _many("how the assistant should answer", "preference", 0.8),
        "hobby": _many("a pastime, sport or instrument", "pattern"),
        "habit": _many("something that the person does regularly", "pattern"),
        "commute": _single("how the person travels to work", "pattern"),
        "possession": _many("a thing that the person owns", "attribute"),
        "vehicle": _many("a car, bicycle or other vehicle that the person has", "attribute"),
        "membership": _many("a club, group or subscription", "attribute"),
        "goal": _many("something that the person wants to reach", "goal", 0.7),
        "plan": _many("something that the person intends to do", "goal"),
        "event": SlotPolicy("something that happened or will happen", "event", "many", "persistent", 0.6),
        "task": SlotPolicy("something to do later", "task", "many", "persistent", 0.7),
        "status": _single("the state of a project, thing or organisation", "attribute"),
        "deadline": _single("the date until which something must be done", "event"),
        "location": _single("where a thing or an organisation is", "attribute"),
    }
)
"""The slots that memstream defines. The qualifier of a `single` slot allows one value for each kind: one favourite
colour and one favourite film."""
