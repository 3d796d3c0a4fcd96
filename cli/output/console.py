"""Output of commands: one JSON object per line with --json, tables and wrapped lines for people, advice on stderr."""

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
"""Characters that JSON does not escape: control characters of terminals, and Unicode line separators."""
GAP = 2
"""Spaces between two columns of a table."""
TEXT_SHARE = 0.35
"""Minimum share of the terminal's width for the text column of a table, if its text needs this width."""
NARROWEST = 20
"""Minimum width of text after a hanging indent, in terminal columns."""


def line(record: Mapping[str, JsonValue]) -> None:
    """Print one record as one line of JSON, and flush.

    Escape characters that a reader may treat as a line end, and characters that the encoding of stdout lacks.
    """
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(record, separators=(",", ":"))
    say(text)


def say(text: str) -> None:
    """Print a line and flush. click.echo is not used: it writes UTF-8 even if the encoding is ASCII."""
    print(text, flush=True)


def advice(text: str) -> None:
    """Print a hint for the person at the terminal, on stderr."""
    print(text, file=sys.stderr, flush=True)


def console() -> Console:
    return Console(highlight=False)


def printable(text: str) -> str:
    """Return text without control characters: remembered text must not control the terminal."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" if c not in "\n\t\r" else " " for c in text)


# ------------------------------------------------------------------------------------------------ lines
def wrapped(label: str, body: str = "") -> None:
    """Print rich markup, wrapped between words. Indent further lines by the width of `label`.

    On a file or a pipe, print one long line unless COLUMNS is set.
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
    """Print a table for people. Without rows, print `empty` as advice.

    Cells are text, never markup: remembered text must not colour the terminal. Lines break only between words. If the
    terminal is too narrow, the columns with the longest words (ids) are printed on separate lines below the row. Empty
    columns are left out.

    Args:
        text: name of the main text column. The widest other columns are moved below the row until this column has
            TEXT_SHARE of the width.
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
    in_row = list(range(len(columns)))
    while len(in_row) > 1 and sum(least[i] for i in in_row) + GAP * (len(in_row) - 1) > out.width:
        in_row.remove(max(in_row, key=least.__getitem__))
    main = columns.index(text) if text in columns else None
    if main in in_row:
        wanted = min(natural[main], int(out.width * TEXT_SHARE))
        others = [i for i in in_row if i != main]
        while others and out.width - sum(least[i] + GAP for i in others) < wanted:
            others.remove(max(others, key=natural.__getitem__))
        in_row = [i for i in in_row if i == main or i in others]
    below = [i for i in range(len(columns)) if i not in in_row]
    widths = _widths([least[i] for i in in_row], [natural[i] for i in in_row], out.width)

    def grid() -> Table:
        made = Table.grid(padding=(0, GAP, 0, 0))
        for width in widths:
            made.add_column(width=width, overflow="fold")
        return made

    part = grid()
    part.add_row(*(Text(columns[i], style="bold") for i in in_row))
    for row, style in zip(cells, styles or [""] * len(cells), strict=True):
        part.add_row(*(Text(row[i], style=style) for i in in_row))
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
    """Widen columns from `least` towards `natural` until `room` is used. Each step widens the column with the most
    lines."""
    widths = list(least)
    spare = room - sum(widths) - GAP * (len(widths) - 1)
    for _ in range(min(spare, sum(natural) - sum(least))):
        widths[max(range(len(widths)), key=lambda i: natural[i] / (widths[i] or 0.5))] += 1
    return widths
