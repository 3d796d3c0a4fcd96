"""Options that several commands share."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import click

from ..schemas.base import is_clean


class GivenIdType(click.ParamType):
    """Id of a producer: 1 to 128 code points, no control characters."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not 1 <= len(text) <= 128 or not is_clean(text):
            self.fail("must have 1 to 128 characters and no control characters", param, ctx)
        return text


class MomentType(click.ParamType):
    """RFC 3339 time. A date means the end of that day; a time without a zone is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value)
        try:
            return datetime.combine(date.fromisoformat(text), time.max, UTC)
        except ValueError:
            pass  # not a date alone
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is not a time such as 2026-11-20T10:00:00Z or a date such as 2026-11-20", param, ctx)


END_OF_DAY = "A date is the end of that day (UTC)."
GIVEN_ID = GivenIdType()
MOMENT = MomentType()

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
tenant = click.option("--tenant", type=GIVEN_ID, required=True, help="The tenant.")
user = click.option("--user", type=GIVEN_ID, required=True, help="The user whose memory it is.")
