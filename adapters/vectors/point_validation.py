"""Validation of points before they reach an engine, and of records from an engine.

The engines accept different values: the embedded engine accepts NaN in a vector, and the server does not. Therefore
points are validated before they are sent to an engine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Sequence

from qdrant_client import models

from ...schemas.collections import TENANT_FIELD
from ...schemas.errors import DeploymentFault, Fatal, Poison
from ..ports import Payload, Point, StoredPoint
from .engine import EngineHit, EngineRow
from .sparse_form import to_dense


def payload_size(payload: Payload, what: str) -> int:
    """Return the size of the payload as JSON, in bytes.

    Raise `Fatal` for NaN, infinities and values that are not JSON; `Poison` for a text that is not valid Unicode (a
    lone surrogate), because that is bad input and not a broken invariant.
    """
    try:
        return len(json.dumps(payload, allow_nan=False, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise Poison("invalid", f"{what}: a text has a lone surrogate, which is not Unicode") from error
    except (ValueError, TypeError) as error:
        raise Fatal(f"{what}: the payload is not JSON ({error}); NaN and infinities are refused") from error


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
