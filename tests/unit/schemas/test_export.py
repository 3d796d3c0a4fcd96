"""Lines of exports: any text stays one line, and each line is read back as it was written."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memstream.schemas.export import RECORD_OF, ExportEnd, ExportLine, LineKind
from tests.support.record_builders import stored_fact


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=200))
def test_any_text_stays_one_line_and_is_read_back(text: str) -> None:
    fact = stored_fact(text).public()
    line = ExportLine.of("fact", RECORD_OF["fact"].from_payload(fact.to_payload())).to_line()
    assert line.splitlines() == [line]
    assert json.loads(line)["record"]["content"] == text
    assert ExportLine.read(line).to_line() == line


def test_the_kind_decides_the_contract() -> None:
    assert list(RECORD_OF) == list(get_args(LineKind))
    fact = stored_fact("Works at Stripe").to_payload()
    assert type(ExportLine.from_payload({"kind": "fact", "record": fact}).record) is RECORD_OF["fact"]
    for kind in ("episode", "end", "turn", "cursor"):
        with pytest.raises(ValidationError):
            ExportLine.from_payload({"kind": kind, "record": fact})


def test_a_later_versions_fields_are_ignored() -> None:
    later: dict[str, Any] = {"counts": {"dream": 3}, "left_out": {}, "later_field": 1}
    line = ExportLine.read(json.dumps({"kind": "end", "record": later, "later_field": 1}))
    assert line.record == ExportEnd(counts={"dream": 3}, left_out={})
