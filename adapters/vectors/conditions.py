"""Conditions on one payload field, as Qdrant filters take them.

Every field that a filter names needs a line in schemas/collections.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import JsonValue
from qdrant_client import models


def equals(field: str, value: str | int) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def any_of(field: str, values: Iterable[str]) -> models.FieldCondition:
    """Match points whose field equals one of these values, or holds one of them when it is a list."""
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


def at(field: str, moment: datetime) -> models.FieldCondition:
    """Match exactly this time."""
    return models.FieldCondition(key=field, range=models.DatetimeRange(gte=moment, lte=moment))


def is_empty(field: str) -> models.IsEmptyCondition:
    """Match points without this field, with null in it, or with an empty list."""
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))


def same(field: str, value: JsonValue) -> models.Condition:
    """Match points with this number or text in a field; None: without one."""
    if value is None:
        return is_empty(field)
    if isinstance(value, str | bool):
        return models.FieldCondition(key=field, match=models.MatchValue(value=value))
    assert isinstance(value, int | float)  # no list and no object is compared
    return models.FieldCondition(key=field, range=models.Range(gte=value, lte=value))
