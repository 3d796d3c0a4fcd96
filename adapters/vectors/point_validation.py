"""Validation of points before they reach an engine, and of records from an engine.

The engines accept different values: the embedded engine accepts NaN in a vector, and a payload that it cannot read
again. Therefore points are validated before they are sent to an engine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from qdrant_client import models

from ...schemas.base import RECORD_DEPTH_MAX, why_unstorable
from ...schemas.collections import TENANT_FIELD
from ...schemas.errors import DeploymentFault, Fatal, Poison
from ..ports import Payload, Point, StoredPoint
from .engine import EngineHit, EngineRow
from .sparse_form import to_dense

_LONG_NUMBER: Final = re.compile(rb"\d{19}")


def payload_size(payload: Payload, what: str) -> int:
    """Return the size of the payload as JSON, in bytes.

    Raise `Poison` for a payload that no engine can store: bad input is not a broken invariant. Raise `Fatal` for values
    that are not JSON.
    """
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # a lone surrogate, NaN or an infinity, or much too deep
        raise _unstorable(payload, what) from None
    except TypeError as error:
        raise Fatal(f"{what}: the payload is not JSON ({error})") from error
    suspicious = text.count(b"{") + text.count(b"[") > RECORD_DEPTH_MAX or _LONG_NUMBER.search(text) is not None
    if suspicious and why_unstorable(payload, RECORD_DEPTH_MAX) is not None:
        raise _unstorable(payload, what)
    return len(text)


def _unstorable(payload: Payload, what: str) -> Poison:
    return Poison("invalid", f"{what}: the payload {why_unstorable(payload, RECORD_DEPTH_MAX) or 'is not JSON'}")


def tenant_of(point: Point, collection: str) -> str:
    """Return the tenant in the payload. Raise `Fatal` without a tenant, because no read would return such a point."""
    tenant = point.payload.get(TENANT_FIELD)
    if not isinstance(tenant, str) or not tenant:
        raise Fatal(f"{collection}: point {point.id} has no {TENANT_FIELD} in its payload")
    return tenant


def require_tenant(tenant_id: str) -> str:
    """Return the tenant's id. Raise `Fatal` when it is empty."""
    if not tenant_id:
        raise Fatal("a query needs a tenant")
    return tenant_id


def check_dense(dense: Sequence[float], dimension: int, what: str) -> None:
    """Validate a vector. Raise `DeploymentFault` when its length is not the embedder's dimension; `Fatal` when it has
    NaN or an infinity."""
    if len(dense) != dimension:
        said = f"{what}: the vector has {len(dense)} dimensions, the embedder of this store makes {dimension}"
        raise DeploymentFault(said)
    if not math.isfinite(sum(dense)):  # NaN and infinities stay in a sum; this is the fastest check
        raise Fatal(f"{what}: the vector has NaN or an infinity")


def stored_points(
    records: Iterable[EngineRow], *, tenants: Collection[str], collection: str, dense_name: str
) -> list[StoredPoint]:
    """Convert an engine's records to `StoredPoint`. Raise `Fatal` when a record does not belong to one of the request's
    tenants."""
    result = []
    for each in records:  # a plain loop for speed: a read has hundreds of records
        payload, vector = each.payload or {}, each.vector
        if payload.get(TENANT_FIELD) not in tenants:
            raise _foreign(each, collection)
        result.append(StoredPoint(str(each.id), payload, None, None if vector is None else _dense(vector, dense_name)))
    return result


def scored_points(hits: Iterable[EngineHit], *, tenants: Collection[str], collection: str) -> list[StoredPoint]:
    """Convert the results of a query to `StoredPoint`, with the same check of the tenant."""
    result = []
    for each in hits:
        payload = each.payload or {}
        if payload.get(TENANT_FIELD) not in tenants:
            raise _foreign(each, collection)
        result.append(StoredPoint(str(each.id), payload, each.score))
    return result


def _foreign(record: EngineRow, collection: str) -> Fatal:
    return Fatal(f"{collection}: a query returned point {record.id} of another tenant")


def _dense(vector: object, name: str) -> list[float] | None:
    if not isinstance(vector, dict):
        return None
    value = vector.get(name)
    if isinstance(value, models.SparseVector):
        return to_dense(value)
    return list(value) if isinstance(value, list) else None
