"""The audit trail: one JSON line for each change, with time, caller, action, owner and result, in a separate logger.

A line has no content of conversations, only ids, names and results. The logger `memstream.audit` writes nothing until a
process enables it (cli/output/logs.py). Any handler of Python's logging can be attached to it as well.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

from ..schemas.cloudevents import rfc3339
from ..schemas.turns import Owner

AUDIT: Final = logging.getLogger("memstream.audit")


def audit(action: str, *, who: str, tenant_id: str | None, owner: Owner | None, result: str, **ids: str | None) -> None:
    """Write one line.

    `action`: `turns.produce`, a command's kind, or a denied request's method and route. `who`: the name of a token, or
    `cli:<user of the machine>`. `owner`: the owner of the changed memory. `ids`: ids of the changed objects.
    """
    if not AUDIT.isEnabledFor(logging.INFO):
        return
    line = {
        "at": rfc3339(datetime.now(UTC)),
        "who": who,
        "action": action,
        "tenant_id": tenant_id,
        "owner": None if owner is None else {"scope": owner.scope, "id": owner.id},
        "result": result,
        **{name: value for name, value in ids.items() if value is not None},
    }
    AUDIT.info("%s", json.dumps(line, ensure_ascii=True))
