"""`memstream tokens new`: print a new bearer token for `memstream serve` and its entry for the token file."""

from __future__ import annotations

import json

import click

from ...api.credentials import SCOPES, Scope, digest, new_token, unreserved
from .. import options
from ..output import console


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return unreserved(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.group()
def tokens() -> None:
    """Create a bearer token for `memstream serve`."""


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
@options.as_json
def new(name: str, tenants: tuple[str, ...], users: tuple[str, ...], scopes: tuple[Scope, ...], as_json: bool) -> None:
    """Print a new token, and the entry to append to the file that MEMSTREAM_TOKENS names.

    Save the token: it is shown only once, and the file has only its SHA-256. `serve` reads the file at its start and
    after each change of the file.
    """
    token = new_token()
    entry = {"name": name, "sha256": digest(token), "tenants": list(tenants), "scopes": list(scopes)}
    if users:
        entry["users"] = list(users)
    lines = ["[[token]]", *(f"{field} = {json.dumps(value)}" for field, value in entry.items())]
    if as_json:
        console.line({"token": token, "entry": "\n".join(lines)})
        return
    console.say("\n".join(lines))
    console.advice(f"the token, shown only once: {token}")
