"""Check of the groups in a request: a token may read a group for a user only if the user is a member."""

from __future__ import annotations

from collections.abc import Collection

from ..recall.record_reader import RecordReader
from ..schemas.turns import Owner
from ..tools.tool_port import ToolIdentity
from .credentials import Caller
from .problems import forbidden


async def check_groups(
    memberships: RecordReader, caller: Caller, *, tenant_id: str, user_id: str | None, groups: Collection[str]
) -> None:
    """Check that the user is a member of every group. Raises Problem (403).

    An undefined group has no members. The check is omitted without a token file, and if a request names no user.
    """
    if not groups or user_id is None or caller.tenants is None:
        return
    wanted = frozenset(groups)
    if await memberships.joined_groups(tenant_id, Owner(scope="user", id=user_id), wanted) != wanted:
        raise forbidden("the user of this request is not a member of every group that it names")


async def check_identity(memberships: RecordReader, caller: Caller, identity: ToolIdentity) -> None:
    """Check the group of a tool's caller. Raises Problem (403)."""
    groups = () if identity.group_id is None else (identity.group_id,)
    await check_groups(memberships, caller, tenant_id=identity.tenant_id, user_id=identity.user_id, groups=groups)
