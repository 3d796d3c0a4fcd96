"""Validation of points before they reach an engine, and of records that come back.

The engines accept different values (the embedded one takes NaN in a vector, the server does not), so both get validated
points only.
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
    """Return the bytes of the payload as JSON.

    `Fatal`: NaN, infinities and values that are not JSON. `Poison`: a text that is not valid Unicode (a lone
    surrogate), which is bad input and not a broken invariant.
    """
    try:
        return len(json.dumps(payload, allow_nan=False, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise Poison("invalid", f"{what}: a text holds a lone surrogate, which is not Unicode") from error
    except (ValueError, TypeError) as error:
        raise Fatal(f"{what}: the payload is not JSON ({error}); NaN and infinities are refused") from error


def tenant_of(point: Point, collection: str) -> str:
    """Return the tenant that the payload names. `Fatal` without one, because nobody could read such a point."""
    tenant = point.payload.get(TENANT_FIELD)
    if not isinstance(tenant, str) or not tenant:
        raise Fatal(f"{collection}: point {point.id} has no {TENANT_FIELD} in its payload")
    return tenant


def require_tenant(tenant_id: str) -> str:
    """Return the tenant's id. `Fatal` when it is empty."""
    if not tenant_id:
        raise Fatal("a query needs a tenant")
    return tenant_id


def check_dense(dense: Sequence[float], dimension: int, what: str) -> None:
    """Check a vector. `DeploymentFault`: its length is not the embedder's; `Fatal`: it contains NaN or an infinity."""
    if len(dense) != dimension:
        said = f"{what}: the vector has {len(dense)} dimensions, the embedder of this store makes {dimension}"
        raise DeploymentFault(said)
    if not math.isfinite(sum(dense)):  # NaN and infinities survive in a sum; it is the fastest check
        raise Fatal(f"{what}: the vector holds NaN or an infinity")


def stored_points(
    records: Iterable[EngineRow], *, tenants: Collection[str], collection: str, dense_name: str
) -> list[StoredPoint]:
    """Convert records into those of the port, and check that each belongs to one of the tenants of the request. `Fatal`
    for another tenant."""
    result = []
    for each in records:  # a read has hundreds
        payload, vector = each.payload or {}, each.vector
        if payload.get(TENANT_FIELD) not in tenants:
            raise _foreign(each, collection)
        result.append(StoredPoint(str(each.id), payload, None, None if vector is None else _dense(vector, dense_name)))
    return result


def scored_points(hits: Iterable[EngineHit], *, tenants: Collection[str], collection: str) -> list[StoredPoint]:
    """Convert the results of a query in the same way."""
    result = []
    for each in hits:
        payload = each.payload or {}
        if payload.get(TENANT_FIELD) not in tenants:
            raise _foreign(each, collection)
        result.append(StoredPoint(str(each.id), payload, each.score))
    return result


def _foreign(record: EngineRow, collection: str) -> Fatal:
    return Fatal(f"{collection}: point {record.id} of another tenant came back from a query that names its tenants")


def _dense(vector: object, name: str) -> list[float] | None:
    if not isinstance(vector, dict):
        return None
    value = vector.get(name)
    if isinstance(value, models.SparseVector):
        return to_dense(value)
    return list(value) if isinstance(value, list) else None
