"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar, get_args

import click
from pydantic import ValidationError

from ..schemas.base import REASON_MAX, explain, is_clean
from ..schemas.turns import Owner, Scope
from ..tools.editor import IDEMPOTENCY_KEY_MAX
from .errors import usage

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class GivenIdType(click.ParamType):
    """Id that a client chooses: 1 to 128 code points, no control characters."""

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
user = click.option("--user", type=GIVEN_ID, required=True, help="The user who owns the memory.")


def _reason(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if len(value) > REASON_MAX:
        raise click.BadParameter(f"is {len(value)} characters; at most {REASON_MAX} are allowed")
    return value


def _key(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not 1 <= len(value) <= IDEMPOTENCY_KEY_MAX:
        raise click.BadParameter(f"must have 1 to {IDEMPOTENCY_KEY_MAX} characters")
    return value


reason = click.option(
    "--reason", default="", callback=_reason, help="Reason for the change; `memstream trace` shows it."
)
idempotency_key = click.option(
    "--idempotency-key", "key", callback=_key, help="A command that is repeated with the same key is applied once."
)
session = click.option("--session", type=GIVEN_ID, required=True, help="The session.")


def owner_options(command: F) -> F:
    """Add the options that name an owner: --tenant, and --user or --scope with --id."""
    for option in (
        click.option("--id", "owner_id", type=GIVEN_ID, help="Id of an owner; needs --scope."),
        click.option("--scope", type=click.Choice(get_args(Scope)), help="Scope of an owner that is not a user."),
        click.option("--user", type=GIVEN_ID, help="The user who owns the memory."),
        tenant,
    ):
        command = option(command)
    return command


def owner_of(*, user: str | None, scope: str | None, owner_id: str | None) -> Owner | None:
    """Return the owner of `--user U` or `--scope S --id X`, or None if no option names an owner.

    Raises CommandFailed (exit 2) if the options contradict each other.
    """
    if (scope is None) != (owner_id is None):
        raise usage("--scope and --id go together")
    if scope is not None and owner_id is not None:
        if user is not None and (scope, owner_id) != ("user", user):
            raise usage("--user and --scope/--id name two different owners")
        return Owner.model_validate({"scope": scope, "id": owner_id})
    return None if user is None else Owner(scope="user", id=user)


def checked(make: Callable[[], T]) -> T:
    """Return the arguments that `make` builds. Raises CommandFailed (exit 2) if they are invalid."""
    try:
        return make()
    except ValidationError as error:
        raise usage(explain(error)) from None
