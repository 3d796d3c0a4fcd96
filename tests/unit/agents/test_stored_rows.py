"""Rows of tables as versions before and after this one wrote them."""

from __future__ import annotations

import json

import pytest

from memstream.agents.common.stored_row import FIRST_VERSION, ROW_VERSION, StoredRow
from memstream.agents.consolidation import rows as consolidation
from memstream.agents.consolidation.recall_counts import RecallRow
from memstream.agents.observer import rows as observer
from memstream.agents.reflector import rows as reflector
from memstream.memory.upkeep.consolidation import Counters
from memstream.schemas.errors import LaterVersion
from memstream.schemas.outcomes import Outcome, Source
from memstream.streams.engine.error_boundary import unexpected
from tests.support.record_builders import NOW, OWNER
from tests.support.release_0_1_rows import FIELDS, of_first_release

LAST = Outcome(source=Source(topic="memory.turns", partition=0, offset=7, id="t1"))
ROWS: list[StoredRow] = [
    observer.SessionRow(turns=3, last=LAST),
    reflector.LedgerRow(turns=3, last=LAST),
    reflector.ReflectedTurns(turn_number=3),
    consolidation.ProgressRow(
        counters=Counters(episodes=2, turns=3),
        runs=(consolidation.RunRecord(run_id="r1", status="done", at=NOW, changes=1),),
        waiting=consolidation.PendingRun(tenant_id="acme", owner=OWNER, run_id="r1"),
        last=LAST,
    ),
    consolidation.CountedTurns(turn_number=3),
    RecallRow(last=LAST),
]


def name_of(row: StoredRow) -> str:
    return f"{type(row).__module__.split('.')[-2]}.{type(row).__name__}"


rows = pytest.mark.parametrize("row", ROWS, ids=name_of)


@pytest.mark.parametrize("row", [row for row in ROWS if name_of(row) in FIELDS], ids=name_of)
def test_a_row_of_the_first_release_is_read_and_what_is_new_has_its_default(row: StoredRow) -> None:
    fields = of_first_release(name_of(row), json.loads(row.to_bytes()))
    assert fields.keys() == FIELDS[name_of(row)]
    assert type(row).read(json.dumps(fields).encode()) == row


@rows
def test_a_row_says_by_which_version_it_was_written(row: StoredRow) -> None:
    assert json.loads(row.to_bytes())["row_version"] == FIRST_VERSION


@rows
def test_a_field_that_a_later_minor_version_adds_is_read_over(row: StoredRow) -> None:
    assert type(row).read(json.dumps({**json.loads(row.to_bytes()), "later": [1]}).encode()) == row


@rows
@pytest.mark.parametrize("shape", [{}, {"last": {"what": "ever"}, "turn_number": {}}], ids=["known", "unknown"])
def test_a_row_of_a_later_version_is_refused_and_no_record_is_to_blame(
    row: StoredRow, shape: dict[str, object]
) -> None:
    raw = json.dumps({**json.loads(row.to_bytes()), **shape, "row_version": ROW_VERSION + 1}).encode()
    with pytest.raises(LaterVersion, match="later version") as raised:
        type(row).read(raw)
    assert not unexpected(raised.value)


def test_an_outcome_with_an_effect_that_is_not_known_is_never_applied_in_part() -> None:
    fields = json.loads(reflector.LedgerRow(last=LAST).to_bytes())
    fields["last"]["later"] = ["an effect"]
    with pytest.raises(LaterVersion, match=r"last\.later"):
        reflector.LedgerRow.read(json.dumps(fields).encode())
