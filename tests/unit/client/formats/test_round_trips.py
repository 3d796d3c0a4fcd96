"""Every format returns the records that were written, whatever their words are."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.schemas.export import FileFormat
from tests.support.export_files import FORMATS, read_export, records_of, written
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme", group=True)
LINES = [MEMORY.header(), *MEMORY.lines()]
NASTY = st.text(
    st.sampled_from("ab \n\r\t\"'\\`*_[]()<>{}#+-.!|~$^=%&:;?,@/0²é日🧵\x00\x07\x1b\x7f\x85\u2028\u202e\ufeff\uffff")
    | st.characters(codec="utf-8"),
    max_size=60,
)


@pytest.mark.parametrize("form", FORMATS)
def test_a_generated_memory_is_read_back(tmp_path: Path, form: FileFormat) -> None:
    found = records_of(read_export(written(tmp_path / "a", form, LINES)))
    expected = records_of(LINES)
    if form == "sqlite":
        assert found == expected
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, expected))
    kinds = [kind for kind, _ in found]
    assert list(dict.fromkeys(kinds)) == list(dict.fromkeys(kind for kind, _ in expected)), "in the order of an export"
    assert [each for each in found if each[0] == "fact_change"] == [
        each for each in expected if each[0] == "fact_change"
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_reading_begins_behind_any_record(tmp_path: Path, form: FileFormat) -> None:
    path = written(tmp_path / "a", form, LINES)
    whole = read_export(path)
    for place in (0, 1, 45, 60, 110, len(whole) - 1):
        behind = whole[place]
        assert not_a_fault(behind)
        assert read_export(path, end=behind.end, number=behind.last) == whole[place + 1 :]  # type: ignore[union-attr]


def not_a_fault(line: object) -> bool:
    return hasattr(line, "end")


@given(
    words=st.lists(NASTY, min_size=4, max_size=4),
    tags=st.lists(NASTY.map(lambda each: each[:64]), max_size=3),
    metadata=st.dictionaries(
        NASTY | st.just("k" * 2_000),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NASTY,
        max_size=3,
    ),
)
@settings(max_examples=20, deadline=None)
def test_hostile_words_are_read_back(words: list[str], tags: list[str], metadata: dict[str, object]) -> None:
    content, subject, quote, name = (each or "-" for each in words)
    fact = json.loads(next(each for each in LINES if each.startswith('{"kind":"fact"') and '"quote"' in each))["record"]
    evidence = [{**fact["evidence"][0], "quote": quote}]
    fact |= {"content": content, "subject": subject, "tags": tags, "metadata": metadata, "evidence": evidence}
    block = json.loads(next(each for each in LINES if each.startswith('{"kind":"block"')))["record"]
    turn = json.loads(next(each for each in LINES if each.startswith('{"kind":"turn"')))["record"]
    block |= {"name": name, "value": content}
    turn["messages"][0] |= {"content": content, "name": name}
    records = (("fact", fact), ("block", block), ("turn", turn))
    lines = [LINES[0], *(json.dumps({"kind": kind, "record": record}) for kind, record in records), LINES[-1]]
    with TemporaryDirectory() as folder:
        for form in FORMATS:
            path = written(Path(folder) / form, form, lines)
            assert sorted(map(json.dumps, records_of(read_export(path)))) == sorted(map(json.dumps, records_of(lines)))
