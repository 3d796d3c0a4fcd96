"""Conditions on metadata in a request: pairs in an address, and values or operators in a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints

from ..recall.record_conditions import CONDITIONS_MAX, VALUES_MAX, MetadataCondition
from .owner_params import bounded

MetadataPair = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z_][A-Za-z0-9_]*:")]
MetadataPairs = Annotated[
    tuple[MetadataPair, ...],
    Field(
        max_length=CONDITIONS_MAX,
        description="`name:text`: only records with this pair in `metadata`; repeat the parameter.",
    ),
]
Text = Annotated[str, StringConstraints(max_length=256, strict=True)]
Number = StrictInt | Annotated[float, Field(allow_inf_nan=False, strict=True)]
MetadataValue = Text | Number
"""The embedded engine compares no booleans, so a boolean is refused."""


class MetadataOperators(BaseModel):
    """Operators on one name of the metadata. A record meets all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    one_of: Annotated[tuple[MetadataValue, ...] | None, Field(alias="in", min_length=1, max_length=VALUES_MAX)] = None
    exists: bool | None = None
    gt: Number | None = None
    gte: Number | None = None
    lt: Number | None = None
    lte: Number | None = None


MetadataQuery = dict[Annotated[str, StringConstraints(max_length=64)], MetadataOperators | MetadataValue]
"""By name a value, or an object with operators: `{"source": "crm", "price": {"gte": 3}}`."""


def with_pairs(pairs: Sequence[str]) -> list[MetadataCondition]:
    return bounded(
        lambda: [MetadataCondition(name, (value,)) for name, _, value in (each.partition(":") for each in pairs)]
    )


def with_metadata(query: Mapping[str, MetadataOperators | MetadataValue]) -> list[MetadataCondition]:
    """Return the conditions. Raises Problem (422) for an invalid name and for an object without an operator."""
    return bounded(lambda: [_condition(name, asked) for name, asked in query.items()])


def _condition(name: str, asked: MetadataOperators | MetadataValue) -> MetadataCondition:
    if not isinstance(asked, MetadataOperators):
        return MetadataCondition(name, (asked,))
    return MetadataCondition(
        name, asked.one_of or (), asked.exists, gt=asked.gt, gte=asked.gte, lt=asked.lt, lte=asked.lte
    )
