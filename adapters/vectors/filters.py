"""Filters as the store builds them: a tenant in every one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qdrant_client import models

from ...schemas.collections import TENANT_FIELD
from .conditions import any_of, equals
from .point_validation import given


def of_tenant(tenant_id: str, where: models.Filter | None = None) -> models.Filter:
    """Of this tenant and as `where` says. `Fatal` without a tenant."""
    tenant = equals(TENANT_FIELD, given(tenant_id))
    # Built without validation: both were looked at when they were made.
    return models.Filter.model_construct(must=[tenant] if where is None else [tenant, where])


def of_tenants(tenant_ids: Iterable[str], ids: Sequence[str]) -> models.Filter:
    """Points by id of any of these tenants: whose each is has to be looked at afterwards."""
    tenants = [given(each) for each in dict.fromkeys(tenant_ids)]
    of_these = equals(TENANT_FIELD, tenants[0]) if len(tenants) == 1 else any_of(TENANT_FIELD, tenants)
    return models.Filter(must=[of_these, models.HasIdCondition(has_id=list(ids))])


def of_points(tenant_id: str, ids: Sequence[str], *, version: int | None = None) -> list[models.Condition]:
    """Points by id, of this tenant and, where one is given, of this version."""
    return [
        equals(TENANT_FIELD, given(tenant_id)),
        *([] if version is None else [equals("version", version)]),
        models.HasIdCondition(has_id=list(ids)),
    ]


def each_of(groups: Iterable[tuple[str, Sequence[str]]]) -> models.Filter:
    """Points by id, each of its own tenant: (tenant, ids)."""
    return either(models.Filter(must=of_points(tenant_id, ids)) for tenant_id, ids in groups)


def either(filters: Iterable[models.Filter]) -> models.Filter:
    """What fits one of these."""
    every = list(filters)
    return every[0] if len(every) == 1 else models.Filter(should=every)
