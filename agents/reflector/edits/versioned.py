"""Versioned records that only the reflector writes, by compare-and-set."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from ....schemas.base import Contract
from ....schemas.outcomes import OutPoint, SwapPoint
from .scope import OwnerEditScope

APPLIED_KEPT: Final = 8
"""Maximum number of causes that a record keeps in `applied`."""
R = TypeVar("R", bound=Contract)


async def read_record(collection: str, record_id: str, contract: type[R], scope: OwnerEditScope) -> R | None:
    """Return a record of the owner, or None."""
    tenant_id = scope.command.tenant_id
    found = await scope.calls.call("store", lambda: scope.store.get(collection, tenant_id=tenant_id, ids=[record_id]))
    if record_id not in found or found[record_id].payload.get("owner_key") != scope.owner_key:
        return None
    return contract.from_payload(found[record_id].payload)


def write_record(collection: str, record_id: str, payload: dict[str, Any], *, cause: str) -> SwapPoint:
    """Return the write of a record's next version. The payload has `version` and the earlier causes in `applied`."""
    version = payload["version"]
    applied = (*payload["applied"], cause)[-APPLIED_KEPT:]
    point = OutPoint(id=record_id, payload=payload | {"applied": [*applied]})
    expected = None if version == 1 else version - 1
    return SwapPoint(collection=collection, point=point, expected_version=expected, cause=cause)
