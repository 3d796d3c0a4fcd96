"""Qdrant filters for tenants and ids. Every filter contains a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qdrant_client import models

from ...schemas.collections import TENANT_FIELD
from .conditions import any_of, equals
from .point_validation import require_tenant


def of_tenant(tenant_id: str, where: models.Filter | None = None) -> models.Filter:
    """Match the points of this tenant that `where` matches. Raise `Fatal` without a tenant."""
    tenant = equals(TENANT_FIELD, require_tenant(tenant_id))
    # Built without validation, because both parts are already validated.
    return models.Filter.model_construct(must=[tenant] if where is None else [tenant, where])


def of_tenants(tenant_ids: Iterable[str], ids: Sequence[str]) -> models.Filter:
    """Match points by id that belong to any of these tenants. The caller has to check the tenant of each point."""
    tenants = [require_tenant(each) for each in dict.fromkeys(tenant_ids)]
    of_these = equals(TENANT_FIELD, tenants[0]) if len(tenants) == 1 else any_of(TENANT_FIELD, tenants)
    return models.Filter(must=[of_these, models.HasIdCondition(has_id=list(ids))])


def of_points(tenant_id: str, ids: Sequence[str], *, version: int | None = None) -> list[models.Condition]:
    """Return conditions for points by id, of this tenant and, if given, of this version."""
    return [
        equals(TENANT_FIELD, require_tenant(tenant_id)),
        *([] if version is None else [equals("version", version)]),
        models.HasIdCondition(has_id=list(ids)),
    ]


def each_of(groups: Iterable[tuple[str, Sequence[str]]]) -> models.Filter:
    """Match points by tenant and id. `groups` has pairs (tenant, ids); an id matches only points of its tenant."""
    return either(models.Filter(must=of_points(tenant_id, ids)) for tenant_id, ids in groups)


def either(filters: Iterable[models.Filter]) -> models.Filter:
    """Match points that match at least one of the filters."""
    every = list(filters)
    return every[0] if len(every) == 1 else models.Filter(should=every)
