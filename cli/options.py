"""Options that several commands have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from ..schemas.base import is_clean


class GivenIdType(click.ParamType):
    """An id as producers give it: 1–128 code points, no control characters."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not 1 <= len(text) <= 128 or not is_clean(text):
            self.fail("must have 1 to 128 characters and no control characters", param, ctx)
        return text


class MomentType(click.ParamType):
    """An RFC 3339 time; a date is its midnight, a time without zone is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-11-20T10:00:00Z or 2026-11-20", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


GIVEN_ID = GivenIdType()
MOMENT = MomentType()

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
tenant = click.option("--tenant", type=GIVEN_ID, required=True, help="The tenant.")
user = click.option("--user", type=GIVEN_ID, required=True, help="Whose memory.")
