"""`memstream tokens new`: a bearer token for `memstream serve`, printed once, and its entry for the file of tokens."""

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
    """Make a token for `memstream serve`."""


@tokens.command()
@click.option("--name", required=True, callback=_name, help="Purpose of the token; refusals name it.")
@click.option(
    "--tenant",
    "tenants",
    type=options.GIVEN_ID,
    multiple=True,
    required=True,
    help="Tenant of the token; may be repeated.",
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
)
@options.as_json
def new(name: str, tenants: tuple[str, ...], users: tuple[str, ...], scopes: tuple[Scope, ...], as_json: bool) -> None:
    """Print a token once, and the entry to append to the file that MEMSTREAM_TOKENS names.

    The file holds only its SHA-256; `serve` reads the file when it starts, and again when it changes.
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
