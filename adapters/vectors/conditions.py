"""Conditions on one payload field, for Qdrant filters.

Every field in a filter needs an index in schemas/collections.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pydantic import JsonValue
from qdrant_client import models


def equals(field: str, value: str | int) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def any_of(field: str, values: Iterable[str]) -> models.FieldCondition:
    """Match points whose field equals one of these values. A list matches when it contains one of them."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def until(field: str, moment: datetime) -> models.FieldCondition:
    """Match times at or before `moment`."""
    return models.FieldCondition(key=field, range=models.DatetimeRange(lte=moment))


def before(field: str, moment: datetime) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=models.DatetimeRange(lt=moment))


def after(field: str, moment: datetime) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=models.DatetimeRange(gt=moment))


def since(field: str, moment: datetime) -> models.FieldCondition:
    """Match times at or after `moment`."""
    return models.FieldCondition(key=field, range=models.DatetimeRange(gte=moment))


def has_time(field: str) -> models.FieldCondition:
    """Match points with a time in a field. Unlike the negation of `is_empty`, it uses the index of the times."""
    return since(field, datetime(1970, 1, 1, tzinfo=UTC))


def at(field: str, moment: datetime) -> models.FieldCondition:
    """Match exactly this time."""
    return models.FieldCondition(key=field, range=models.DatetimeRange(gte=moment, lte=moment))


def is_empty(field: str) -> models.IsEmptyCondition:
    """Match points whose field is missing, null or an empty list."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))


def is_filled(field: str) -> models.Filter:
    """Match points whose field has a value."""
    return models.Filter(must_not=[is_empty(field)])


def same(field: str, value: JsonValue) -> models.Condition:
    """Match points with this number or text in a field. None matches an empty field."""
    if value is None:
        return is_empty(field)
    if isinstance(value, str):
        return models.FieldCondition(key=field, match=models.MatchValue(value=value))
    assert isinstance(value, int | float)  # no engine-neutral match of other types
    return models.FieldCondition(key=field, range=models.Range(gte=value, lte=value))
