"""Profile of a subject: its slots with their current values, each with its fact.

The profile is a read of facts without ranking. It has the filter of a recall (filters.py), so it shows the same facts:
believed ones, up to the caller's ceiling, of the owner and of its groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from ..adapters.ports import Payload, VectorStore
from ..memory.language.clean_text import clean_text
from ..memory.policies import MemoryPolicy
from ..memory.recall.context_lines import USER
from ..memory.tenant_policies import TenantPolicies
from ..schemas import ids
from ..schemas.base import Content, Contract, Instant, OurId, Subject, Unit
from ..schemas.collections import FACTS
from ..schemas.facts import Trust
from ..schemas.profile import Profile, ProfileSlot, ProfileValue
from ..schemas.slots import OTHER, Qualifier, SlotName, SlotValue
from ..schemas.turns import Owner, Sensitivity
from .collection_cache import CollectionCache
from .filters import where
from .record_reader import RecordReader
from .request import RecallRequest
from .shared import MEMBERS, with_groups
from .slots import SlotSelection, defined_slots, select_slots
from .subject_names import read_names

VALUES_MAX: Final = 200
"""Maximum number of facts in a profile."""
FIELDS: Final = (
    *("fact_id", "content", "subject", "slot", "value", "denied", "qualifier"),
    *("confidence", "trust", "sensitivity", "valid_from", "valid_from_told", "recorded_at"),
)


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The parameters of a profile. Tenant and owner come from the caller's credential.

    Raises ValueError with the name of an invalid parameter.
    """

    tenant_id: str
    owner: Owner
    groups: tuple[str, ...] = ()
    subject: str = USER
    slots: tuple[str, ...] = ()
    """The slots to read; empty for all slots of the policy. `other` is read only when it is named."""
    ceiling: Sensitivity = "internal"
    as_of: datetime | None = None
    known_at: datetime | None = None

    def __post_init__(self) -> None:
        self.facts()

    def facts(self) -> RecallRequest:
        """Return the parameters of the facts to read."""
        return RecallRequest(
            tenant_id=self.tenant_id,
            owner=self.owner,
            groups=self.groups,
            tiers=("semantic",),
            ceiling=self.ceiling,
            as_of=self.as_of,
            known_at=self.known_at,
        )


class _Fact(Contract):
    fact_id: OurId
    content: Content
    subject: Subject
    slot: SlotName = OTHER
    value: SlotValue | None = None
    denied: bool = False
    qualifier: Qualifier | None = None
    confidence: Unit
    trust: Trust = "user"
    sensitivity: Sensitivity = "internal"
    valid_from: Instant
    valid_from_told: bool = False
    recorded_at: Instant


class ProfileReader:
    """Reader of profiles. One instance serves concurrent reads. Raises Transient when the store does not answer."""

    def __init__(self, *, store: VectorStore, policies: TenantPolicies) -> None:
        self._store = store
        self._existing = CollectionCache(store=store)
        self._records = RecordReader(store=store)
        self._policies = policies

    def select(self, tenant_id: str, names: Sequence[str]) -> SlotSelection | None:
        """Return the selection of these slots of the tenant. Raises ValueError for an unknown name."""
        return select_slots(names, self._policies.of(tenant_id))

    async def profile(self, request: ProfileRequest, *, now: datetime) -> Profile:
        """Return the profile. Raises ValueError for an unknown slot.

        The facts of groups are read only for other subjects than `user`: in a fact of a group, `user` is another
        person.
        """
        policy = self._policies.of(request.tenant_id)
        slots = defined_slots(policy)
        names = select_slots(request.slots or slots, policy)
        kept = self._policies.deployment.tiers.keeps("semantic")
        if names is None or not kept or not await self._existing.has(FACTS):
            return Profile(subject=request.subject, slots=(), truncated=False)
        reading = request.facts()
        if request.subject == USER:
            reading = replace(reading, groups=())
        elif request.owner.scope in MEMBERS:
            reading = with_groups(reading, await self._records.groups_of(request.tenant_id, request.owner))
        known_as = (await read_names(self._store, reading)).all_of(request.subject)
        reading = replace(reading, subject=request.subject, subjects=known_as)
        own, stated = await asyncio.gather(
            self._facts(replace(reading, slots=names), now), self._stated_by_others(names, reading, policy, now)
        )
        found = [(fact.slot if fact.slot in slots else OTHER, fact.denied, _value(fact)) for fact in own]
        known = {(slot, _name(value.value)) for slot, denied, value in found if value.value and not denied}
        found += [(slot, False, value) for slot, value in stated if (slot, _name(value.value or "")) not in known]
        shown = sorted(found, key=lambda each: each[2].recorded_at, reverse=True)[:VALUES_MAX]
        truncated = len(own) > VALUES_MAX or len(found) > VALUES_MAX
        return Profile(subject=request.subject, slots=_by_slot(shown, (*slots, OTHER)), truncated=truncated)

    async def _stated_by_others(
        self, names: SlotSelection, reading: RecallRequest, policy: MemoryPolicy, now: datetime
    ) -> list[tuple[str, ProfileValue]]:
        """Return the values that facts of other subjects state: `child` of the user is Noah, so `parent` of Noah is the
        user."""
        inverses = {name: policy.slots[name].inverse for name in defined_slots(policy)}
        inverses = {name: inverse for name, inverse in inverses.items() if inverse in names.names}
        subject = reading.subject
        if subject is None or subject == USER or not inverses:
            return []
        known_as = {_name(each) for each in reading.subjects}
        facts = await self._facts(replace(reading, subject=None, slots=SlotSelection(tuple(inverses))), now)
        return [
            (inverses[fact.slot], _value(fact).model_copy(update={"value": fact.subject, "inverse_of": fact.slot}))
            for fact in facts
            if fact.subject not in reading.subjects and not fact.denied and _name(fact.value or "") in known_as
        ]

    async def _facts(self, reading: RecallRequest, now: datetime) -> list[_Fact]:
        """Read the facts, newest first, and one more than a profile contains."""
        condition = where("semantic", reading, now=now)
        found = await self._store.select(
            FACTS,
            tenant_id=reading.tenant_id,
            where=condition,
            order_by="recorded_at",
            direction="desc",
            limit=VALUES_MAX + 1,
            fields=FIELDS,
        )
        return [_fact(each.payload) for each in found]


def _fact(payload: Payload) -> _Fact:
    return _Fact.from_payload({**payload, "content": clean_text(str(payload.get("content", "")))})


def _name(text: str) -> str:
    """Return a name for comparison. A subject may have hyphens in place of spaces."""
    return ids.canonical(text.replace("-", " "))


def _value(fact: _Fact) -> ProfileValue:
    return ProfileValue(
        fact_id=fact.fact_id,
        value=fact.value,
        qualifier=fact.qualifier,
        content=fact.content,
        valid_from=fact.valid_from,
        valid_from_told=fact.valid_from_told,
        recorded_at=fact.recorded_at,
        confidence=fact.confidence,
        trust=fact.trust,
        sensitivity=fact.sensitivity,
    )


def _by_slot(found: Iterable[tuple[str, bool, ProfileValue]], order: Sequence[str]) -> tuple[ProfileSlot, ...]:
    values: dict[str, tuple[list[ProfileValue], list[ProfileValue]]] = {}
    for slot, denied, value in found:
        values.setdefault(slot, ([], []))[denied].append(value)
    return tuple(
        ProfileSlot(slot=slot, values=tuple(values[slot][0]), denied=tuple(values[slot][1]))
        for slot in order
        if slot in values
    )
