"""`memstream tokens new`: a bearer token for `memstream serve`, told once, and its entry for the file of tokens."""

from __future__ import annotations

import json

import click

from ...api.credentials import SCOPES, Scope, digest, new_token
from .. import options
from ..output import console


@click.group()
def tokens() -> None:
    """Make a token for `memstream serve`."""


@tokens.command()
@click.option("--name", required=True, help="What it is for: it stands in refusals.")
@click.option("--tenant", "tenants", type=options.GIVEN_ID, multiple=True, required=True, help="May be given again.")
@click.option("--user", "users", type=options.GIVEN_ID, multiple=True, help="Only this user's memory; again for more.")
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
    """Print a token, once, and the entry to append to the file that MEMSTREAM_TOKENS names. The file holds its SHA-256
    alone; `serve` reads it at its start."""
    token = new_token()
    entry = {"name": name, "sha256": digest(token), "tenants": list(tenants), "scopes": list(scopes)}
    if users:
        entry["users"] = list(users)
    lines = ["[[token]]", *(f"{field} = {json.dumps(value)}" for field, value in entry.items())]
    if as_json:
        console.line({"token": token, "entry": "\n".join(lines)})
        return
    click.echo("\n".join(lines))
    console.advice(f"the token, told this once: {token}")
