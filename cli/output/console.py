"""How commands speak: one JSON object a line with --json, tables and plain lines for people, advice on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import click
from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What JSON leaves as it is: controls that a terminal obeys, and line ends for whoever splits as Unicode says."""
WHOLE = frozenset(("fact_id", "topic"))
"""Columns that one copies into the next command: never cut, never folded."""


def line(record: Mapping[str, JsonValue]) -> None:
    """One record as one line of JSON, at once, whatever its reader takes for the end of a line."""
    click.echo(json.dumps(record, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED))


def advice(text: str) -> None:
    """A word for the person at the terminal; never on stdout."""
    click.echo(text, err=True)


def console() -> Console:
    return Console(highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """A table for people. Cells are text, never markup: what is remembered must not colour the terminal."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, no_wrap=column in WHOLE, overflow="fold")
    for row in rows:
        made.add_row(*(escape(printable(cell)) for cell in row))
    if made.row_count:
        console().print(made)
    else:
        advice(empty)


def printable(text: str) -> str:
    """Without control characters: remembered text must not steer the terminal."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" if c not in "\n\t\r" else " " for c in text)
