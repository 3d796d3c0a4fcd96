"""Lines that the reader of a foreign file yields."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from memstream.client.import_file import FileLine, ImportSource, opened_source
from memstream.client.import_formats import FormatName, GivenFormat, format_of
from memstream.schemas.imports import ImportFault

FILES = Path(__file__).resolve().parents[3] / "data" / "foreign"
Read = list[FileLine | ImportFault]


def read_file(name: str, expected: FormatName) -> Read:
    """Read a file of `tests/data/foreign`, whose format is detected."""
    raw = (FILES / name).read_bytes()
    assert format_of(ImportSource(name, io.BytesIO(raw))).name == expected
    return read_bytes(raw, expected)


def read_bytes(raw: bytes, form: GivenFormat, end: int = 0, number: int = 0) -> Read:
    source = ImportSource("f", io.BytesIO(raw))
    return list(format_of(source, form).read(source, end, number))


def read_json(value: Any, form: GivenFormat) -> Read:
    return read_bytes(json.dumps(value).encode(), form)


def read_path(path: Path, form: GivenFormat = "auto", end: int = 0, number: int = 0) -> Read:
    with opened_source(path, name=path.name) as source:
        return list(format_of(source, form).read(source, end, number))


def lines_of(read: Read) -> list[tuple[int, str, dict[str, Any]]]:
    """Return line, kind and record of each line but the end. A fault has the kind `fault`."""
    found = []
    for each in read:
        if isinstance(each, ImportFault):
            found.append((each.line, "fault", {"what": each.what}))
            continue
        fields = json.loads(each.text)
        if fields["kind"] != "end":
            assert fields["line"] == each.number
            found.append((each.number, fields["kind"], fields["record"]))
    last = read[-1]
    assert isinstance(last, FileLine)
    assert last.text == b'{"kind":"end"}'
    return found


def check_each_place_continues(raw: bytes, form: FormatName) -> None:
    """Check that a reader that begins behind any line loses no line, and repeats only lines of one item."""
    lines = [each for each in read_bytes(raw, form) if isinstance(each, FileLine)]
    for n, each in enumerate(lines[:-1]):
        rest = [line for line in read_bytes(raw, form, each.end, each.last) if isinstance(line, FileLine)]
        repeated = len(rest) - len(lines[n + 1 :])
        assert [line.text for line in rest[repeated:]] == [line.text for line in lines[n + 1 :]]
        assert {line.number for line in rest[:repeated]} <= {each.number}
