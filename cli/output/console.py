"""Output of commands: one JSON object a line with --json, tables and wrapped lines for people, advice on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Characters that JSON leaves raw: controls that a terminal obeys, and line ends of Unicode."""
GAP = 2
"""Spaces between two columns of a table."""
TEXT_SHARE = 0.35
"""Part of the terminal's width that the text of a table has at least, if it is that long."""
NARROWEST = 20
"""Columns of text that a hanging indent leaves at least."""


def line(record: Mapping[str, JsonValue]) -> None:
    """Print one record as one line of JSON at once, without any character that a reader takes for a line end, or that
    the encoding of standard output lacks."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(record, separators=(",", ":"))
    say(text)


def say(text: str) -> None:
    """Print a line at once. Not click.echo, which writes UTF-8 where the encoding is ASCII."""
    print(text, flush=True)


def advice(text: str) -> None:
    """Print a hint for the person at the terminal, on stderr."""
    print(text, file=sys.stderr, flush=True)


def console() -> Console:
    return Console(highlight=False)


def printable(text: str) -> str:
    """Replace control characters: remembered text must not steer the terminal."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" if c not in "\n\t\r" else " " for c in text)


# ------------------------------------------------------------------------------------------------ lines
def wrapped(label: str, body: str = "") -> None:
    """Print rich markup, wrapped between words; further lines are indented by the label's width.

    A file or a pipe gets one long line, unless COLUMNS is set.
    """
    head, rest = Text.from_markup(label), Text.from_markup(body)
    out = console()
    if not (out.is_terminal or os.environ.get("COLUMNS")):
        out.print(head + rest, soft_wrap=True)
        return
    indent = min(head.cell_len, max(0, out.width - NARROWEST)) if body else 0
    if not body:
        head, rest = Text(), head
    for number, part in enumerate(rest.wrap(out, out.width - indent)):
        part.rstrip()
        out.print((Text(" " * indent) if number else head) + part, soft_wrap=True)


# ------------------------------------------------------------------------------------------------ tables
def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    empty: str,
    styles: Sequence[str] | None = None,
    text: str | None = None,
) -> None:
    """Print a table for people, or `empty` as advice.

    Cells are text, never markup: remembered text must not colour the terminal. Columns break between words alone. If
    the terminal is too narrow for that, the columns with the longest words (ids) get a line of their own below the row.
    A column without a value is left out.

    Args:
        text: the column that people read. The widest of the others go below until it has its room.
        styles: a rich style for each row.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    if not cells:
        advice(empty)
        return
    filled = [i for i in range(len(columns)) if any(row[i] for row in cells)]
    columns, cells = [columns[i] for i in filled], [[row[i] for i in filled] for row in cells]
    out = console()
    natural = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    least = [max(map(_longest_word, column)) for column in zip(columns, *cells, strict=True)]
    beside = list(range(len(columns)))
    while len(beside) > 1 and sum(least[i] for i in beside) + GAP * (len(beside) - 1) > out.width:
        beside.remove(max(beside, key=least.__getitem__))
    reads = columns.index(text) if text in columns else None
    if reads in beside:
        wanted = min(natural[reads], int(out.width * TEXT_SHARE))
        others = [i for i in beside if i != reads]
        while others and out.width - sum(least[i] + GAP for i in others) < wanted:
            others.remove(max(others, key=natural.__getitem__))
        beside = [i for i in beside if i == reads or i in others]
    below = [i for i in range(len(columns)) if i not in beside]
    widths = _widths([least[i] for i in beside], [natural[i] for i in beside], out.width)

    def grid() -> Table:
        made = Table.grid(padding=(0, GAP, 0, 0))
        for width in widths:
            made.add_column(width=width, overflow="fold")
        return made

    part = grid()
    part.add_row(*(Text(columns[i], style="bold") for i in beside))
    for row, style in zip(cells, styles or [""] * len(cells), strict=True):
        part.add_row(*(Text(row[i], style=style) for i in beside))
        if below:
            out.print(part)
            part = grid()
            for i in below:
                if row[i]:
                    wrapped(f"  [dim]{columns[i]}[/dim] ", str(Text(row[i]).markup))
    if not below:
        out.print(part)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _widths(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """Widen columns from `least` towards `natural`, always the one with the most lines, until `room` is used."""
    widths = list(least)
    spare = room - sum(widths) - GAP * (len(widths) - 1)
    for _ in range(min(spare, sum(natural) - sum(least))):
        widths[max(range(len(widths)), key=lambda i: natural[i] / (widths[i] or 0.5))] += 1
    return widths
