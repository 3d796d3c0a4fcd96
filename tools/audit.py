"""The audit trail: a record for each change, each denial, and each read of secrets, without content.

A record goes to the logger `memstream.audit` as a JSON line first, and then to memory.audit (audit_topic.py). The
logger writes nothing until a process enables it (cli/output/logs.py). Any handler of Python's logging can be attached
to it as well.
"""

from __future__ import annotations

import json
import logging
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from ..schemas.audit import ACTION_MAX, WHO_MAX, AuditRecord
from ..schemas.turns import Owner

AUDIT: Final = logging.getLogger("memstream.audit")
RECORD: Final = "audit_record"
"""Attribute of a log record of `AUDIT`: the `AuditRecord`."""
ALWAYS: Final = frozenset({"audit_id", "at", "who", "action", "tenant_id", "owner", "result"})
"""Fields that every line has. Other fields are in the line if they are not null."""


def audit(
    action: str,
    *,
    who: str,
    tenant_id: str | None,
    owner: Owner | None,
    result: str,
    **more: str | None,
) -> None:
    """Write one record.

    `action`: `turns.produce`, a command's kind, or the method and route of a request. `who`: the name of a token, or
    `cli:<user of the machine>`. `owner`: the owner of the memory. `more`: ids of
    the changed or read objects, and the `ceiling` of a read.
    """
    if not AUDIT.isEnabledFor(logging.INFO):
        return
    given: dict[str, Any] = dict(more)
    record = AuditRecord(
        audit_id=str(uuid.uuid4()),
        at=datetime.now(UTC),
        who=who[:WHO_MAX],
        action=action[:ACTION_MAX],
        tenant_id=tenant_id,
        owner=owner,
        result=result,
        **given,
    )
    AUDIT.info("%s", line_of(record), extra={RECORD: record})


def line_of(record: AuditRecord) -> str:
    """Return the JSON line of a record, in ASCII."""
    fields = record.to_payload()
    kept = {name: value for name, value in fields.items() if name in ALWAYS or value is not None}
    return json.dumps(kept, ensure_ascii=True)
