"""`memstream tokens new|list|revoke`: the bearer tokens of `memstream serve`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
from pydantic import JsonValue

from ...api.credentials import digest, new_token, unreserved
from ...api.scopes import SCOPES, Scope
from .. import options
from ..context import CommandContext, pass_context
from ..output import console
from ..wiring.token_file import id_of, read_tokens, remove_token, state_of, token_file


def _later(context: click.Context, parameter: click.Parameter, value: datetime | None) -> datetime | None:
    if value is not None and value <= datetime.now(UTC):
        raise click.BadParameter("is in the past")
    return value


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return unreserved(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.group()
def tokens() -> None:
    """Create, list and revoke bearer tokens of `memstream serve`."""


@tokens.command()
@click.option("--name", required=True, callback=_name, help="Name of the token, for logs and error messages.")
@click.option(
    "--tenant",
    "tenants",
    type=options.GIVEN_ID,
    multiple=True,
    required=True,
    help="Tenant that the token may access; may be repeated.",
)
@click.option(
    "--user", "users", type=options.GIVEN_ID, multiple=True, help="Limit the token to this user; may be repeated."
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("turns:write", "memory:read"),
    show_default=True,
    help="Permission of the token; may be repeated.",
)
@click.option(
    "--expires",
    type=options.MOMENT,
    callback=_later,
    help=f"Time from which the token is refused. {options.END_OF_DAY} Without it the token never expires.",
)
@options.as_json
def new(
    name: str,
    tenants: tuple[str, ...],
    users: tuple[str, ...],
    scopes: tuple[Scope, ...],
    expires: datetime | None,
    as_json: bool,
) -> None:
    """Print a new token, and the entry to append to the file that MEMSTREAM_TOKENS names.

    Save the token: it is shown only once, and the file has only its SHA-256. `serve` reads the file at its start and
    after each change of the file.
    """
    token = new_token()
    entry: dict[str, JsonValue] = {
        "name": name,
        "sha256": digest(token),
        "tenants": list(tenants),
        "scopes": list(scopes),
    }
    if users:
        entry["users"] = list(users)
    if expires is not None:
        entry["expires_at"] = expires.isoformat()
    lines = ["[[token]]", *(f"{field} = {json.dumps(value)}" for field, value in entry.items())]
    if as_json:
        console.line({"token": token, "entry": "\n".join(lines)})
        return
    console.say("\n".join(lines))
    console.advice(f"the token, shown only once: {token}")


@tokens.command("list")
@options.as_json
@pass_context
def list_tokens(context: CommandContext, as_json: bool) -> None:
    """List the tokens of the file that MEMSTREAM_TOKENS names, with the time at which they expire."""
    now, rows = datetime.now(UTC), list[dict[str, JsonValue]]()
    for entry in read_tokens(token_file(context.settings)):
        record = entry.model_dump(mode="json", exclude={"sha256"})
        rows.append({"id": id_of(entry), "state": state_of(entry, now), **record})
    if as_json:
        for row in rows:
            console.line(row)
        return
    columns = ("id", "name", "state", "expires_at", "tenants", "users", "scopes")
    console.table(columns, [[_shown(row[column]) for column in columns] for row in rows], empty="no token")


def _shown(value: JsonValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "-" if value is None else str(value)


@tokens.command()
@click.argument("name_or_id")
@options.as_json
@pass_context
def revoke(context: CommandContext, name_or_id: str, as_json: bool) -> None:
    """Remove a token from the file that MEMSTREAM_TOKENS names.

    `serve` reads the changed file by itself: requests with the token get 401, and its streams end within a few seconds.
    """
    entry = remove_token(token_file(context.settings), name_or_id)
    if as_json:
        console.line({"id": id_of(entry), "name": entry.name})
        return
    console.say(f"revoked {entry.name} ({id_of(entry)})")
