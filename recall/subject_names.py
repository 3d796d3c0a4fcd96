"""Look-up of the other names of the subjects that a read names (docs/design/recall.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qdrant_client import models

from ..adapters.ports import Payload, VectorStore
from ..adapters.vectors.conditions import any_of, equals
from ..memory.facts.subject_names import NAME_SLOTS, NAMES_MAX, NO_NAMES, USER, NameFact, SubjectNames
from ..schemas.collections import FACTS
from ..schemas.turns import up_to
from .deadline import NAMES, DeadlineReads
from .request import RecallRequest

NAMES_SHARE: Final = 0.25
"""The share of the patience. All searches wait for the names."""
_FIELDS: Final = ("subject", "value", "denied", "trust")


async def read_names(store: VectorStore, request: RecallRequest) -> SubjectNames:
    """Return the names that the believed facts of these owners state. Raises Transient when the store does not
    answer."""
    conditions: list[models.Condition] = [
        any_of("owner_key", request.owner_keys),
        any_of("slot", NAME_SLOTS),
        equals("state", "active"),
        any_of("sensitivity", up_to(request.ceiling)),
    ]
    found = await store.select(
        FACTS,
        tenant_id=request.tenant_id,
        where=models.Filter(must=conditions, must_not=[equals("subject", USER)]),
        limit=NAMES_MAX,
        fields=_FIELDS,
    )
    return SubjectNames.of(_name_fact(each.payload) for each in found)


def _name_fact(payload: Payload) -> NameFact:
    value = payload.get("value")
    return NameFact(
        subject=str(payload["subject"]),
        value=value if isinstance(value, str) else None,
        denied=bool(payload.get("denied")),
        trust=str(payload.get("trust", "user")),
    )


async def with_all_names(request: RecallRequest, *, store: VectorStore, parts: DeadlineReads) -> RecallRequest:
    """Return the request for all names of the subject that it asks for."""
    if request.subject is None:
        return request
    names = await _names(request, store, parts)
    return replace(request, subjects=names.all_of(request.subject))


async def other_names(cue: str, request: RecallRequest, *, store: VectorStore, parts: DeadlineReads) -> str:
    """Return the other names of the subjects that a cue names, as words."""
    names = await _names(request, store, parts)
    return " ".join(each.replace("-", " ") for each in names.others_in(cue))


async def _names(request: RecallRequest, store: VectorStore, parts: DeadlineReads) -> SubjectNames:
    return await parts.ask(NAMES, lambda: read_names(store, request), share=NAMES_SHARE) or NO_NAMES
