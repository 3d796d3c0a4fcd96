"""The reader of the file of an import: lines, list items, and files that are hostile or something else."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from memstream.client import import_file
from memstream.client.import_file import FileLine, ImportRefused, ImportSource, opened_source
from memstream.client.import_formats import GivenFormat, format_of
from memstream.schemas.imports import ImportFault

RECORDS: list[dict[str, Any]] = [
    {"kind": "export", "record": {"at": "2026"}},
    {"kind": "fact", "record": {"content": 'a "quote", a \\ and [brackets] {too}', "tags": [["x"], {}]}},
    {"kind": "block", "record": {"value": "日本 🧵 \u2028 line", "n": -1.5e3}},
    {"kind": "end", "record": {}},
]
NDJSON = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in RECORDS).encode()
PRETTY = json.dumps(RECORDS, indent=2).encode()
OURS = b"[\n" + b",\n".join(json.dumps(each).encode() for each in RECORDS) + b"\n]\n"


def read(raw: bytes, end: int = 0, number: int = 0) -> list[FileLine | ImportFault]:
    source = ImportSource("f", io.BytesIO(raw))
    return list(format_of(source, own_format(raw)).read(source, end, number))


def own_format(raw: bytes) -> GivenFormat:
    """The format of an export with these first bytes, although its lines have no kind."""
    return "json" if raw[:1] == b"[" else "ndjson" if raw[:1] == b"{" else "auto"


def parsed(raw: bytes) -> list[Any]:
    return [json.loads(each.text) for each in read(raw) if isinstance(each, FileLine)]


def faults(raw: bytes) -> list[tuple[int, str]]:
    return [(each.line, each.what) for each in read(raw) if isinstance(each, ImportFault)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 4096])
@pytest.mark.parametrize("raw", [NDJSON, PRETTY, OURS, b"\xef\xbb\xbf" + NDJSON, b"\xef\xbb\xbf" + OURS])
def test_each_form_yields_the_same_records(raw: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ImportSource("f", io.BytesIO(raw))
    form = format_of(source)
    monkeypatch.setattr(import_file, "CHUNK", chunk)
    lines = list(form.read(source, 0, 0))
    assert [json.loads(each.text) for each in lines if isinstance(each, FileLine)] == RECORDS
    assert len(lines) == len(RECORDS)


@pytest.mark.parametrize("raw", [NDJSON, PRETTY, OURS])
def test_a_reader_continues_behind_any_line(raw: bytes) -> None:
    lines = [each for each in read(raw) if isinstance(each, FileLine)]
    for n, each in enumerate(lines):
        rest = [line for line in read(raw, end=each.end, number=each.last) if isinstance(line, FileLine)]
        assert [line.text for line in rest] == [line.text for line in lines[n + 1 :]]
        assert [line.number for line in rest] == [line.number for line in lines[n + 1 :]]


@pytest.mark.parametrize("separator", [b"\n", b",\n"])
def test_a_line_that_is_too_long_costs_that_line_and_no_memory(
    separator: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_file, "LINE_MAX", 1_000)
    monkeypatch.setattr(import_file, "CHUNK", 1_000)
    raw = separator.join((b'{"a":1}', b'{"a":"' + b"x" * 4_000_000 + b'"}', b'{"a":3}'))
    raw = raw if separator == b"\n" else b"[" + raw + b"]"
    source = ImportSource("f", io.BytesIO(raw))
    form = format_of(source, own_format(raw))
    tracemalloc.start()
    lines = list(form.read(source, 0, 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [type(each) for each in lines] == [FileLine, ImportFault, FileLine]
    assert faults(raw) == [(2, "the line has more than 1000 bytes")]
    assert peak < 200_000


def test_deep_items_cut_lists_and_other_things_in_a_list_are_faults() -> None:
    deep = b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"
    assert faults(b"[" + deep + b',\n{"a":1}]') == [(1, "the record is nested deeper than 200 levels")]
    assert faults(b'[{"a":1},\n{"a":') == [(2, "the list does not end: the file is cut")]
    assert faults(b'[{"a":1},\n7, "x", {"a":2}]') == [(2, "the list has something else than a record")] * 2
    assert parsed(b'[{"a":1},\n7, "x", {"a":2}]') == [{"a": 1}, {"a": 2}]
    assert faults(b'[{"a":1}]\nmore') == [(2, "the list has something else than a record")]


@pytest.mark.parametrize(
    ("raw", "advice"),
    [
        (gzip.compress(NDJSON), "gunzip"),
        (b"PK\x03\x04rest", "unpack"),
        (b"SQLite format 3\x00rest", "a database is no body of a request"),
        (NDJSON.decode().encode("utf-16"), "UTF-8"),
        (NDJSON.decode().encode("utf-16-be"), "UTF-8"),
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"memory: yes", "a text that is not JSON.*--format ndjson"),
        (b"<xml/>", "No format begins so"),
    ],
)
def test_other_files_are_refused_with_advice(raw: bytes, advice: str) -> None:
    with pytest.raises(ImportRefused, match=advice):
        read(raw)


def test_an_unknown_or_a_mixed_file_is_refused_with_what_was_seen() -> None:
    for raw, advice in (
        (b'[{"a": {"kind": 1}, "b": 2}]', "a JSON list of objects with the fields a, b\\. .* --format ndjson"),
        (b'[{"kind": "export", "mapping": {}}]', "it may be json or chatgpt: give --format"),
    ):
        with pytest.raises(ImportRefused, match=advice):
            format_of(ImportSource("f", io.BytesIO(raw)))


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nothing", Path("/dev/zero")):
        with pytest.raises(ImportRefused), opened_source(path):
            pass
