"""The index of what waits: built from rows of an earlier version, kept by decisions, read at an assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common import pending_index
from memstream.agents.common.outcomes import OutcomeRow
from memstream.agents.common.pending_index import INDEX_ROW, forget, pending_keys
from memstream.agents.common.stored_row import ROW_VERSION, StoredRow
from memstream.agents.consolidation.rows import COUNTS, FOLLOWS, FollowUp, ProgressRow, progress_index
from memstream.agents.observer.rows import WAITS, SessionRow, session_of_waiting_key, waiting_index
from memstream.agents.reflector.timers import TASKS, TaskTimer, TaskTimers, TimerRows, timers_index, timers_key
from memstream.memory.upkeep.consolidation import Counters
from memstream.schemas import ids
from memstream.schemas.outcomes import Outcome, Source
from memstream.schemas.row_keys import (
    AFTER_INDEX,
    INDEX,
    INDEX_BUILT,
    INDEX_FENCE,
    index_key,
    index_prefix,
    partition_key,
)
from memstream.streams.log.markers import MARKER_KEY
from tests.support.embedded_stage import MemoryRows
from tests.support.record_builders import NOW

SOURCE = Source(topic="memory.turns", partition=0, offset=1, id="t1")
TEXT = st.text(min_size=1, max_size=6)
KEYS = st.builds(ids.join, TEXT, TEXT, TEXT)


class WatchedRows(MemoryRows):
    """Rows that count the pages of rows outside the index."""

    def __init__(self, rows: Mapping[str, bytes] | None = None) -> None:
        super().__init__()
        self.rows = dict(rows or {})
        self.looked_at = 0
        self.written: list[str] = []

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        self.written += rows
        await super().put(rows, partition=partition)

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        self.looked_at += not prefix
        return super().page(partition, prefix=prefix, after=after)


async def waiting(rows: MemoryRows, partitions: int = 12) -> list[str]:
    return [key async for key in pending_keys(rows, 0, WAITS, partitions=partitions, indexed=waiting_index)]


# ------------------------------------------------------------------------------------------------ keys
@given(KEYS, TEXT, TEXT, st.integers(0))
def test_every_row_lies_on_the_partition_of_the_key_that_it_belongs_to(key: str, user: str, name: str, n: int) -> None:
    session = ids.session_key("acme", user, name)
    for row_key in (key, f"{key}/tasks", f"{key}/recalled", f"{key}/{n}", f"{key}/{session}"):
        assert partition_key(row_key) == key
    for kind in (WAITS, TASKS, FOLLOWS, COUNTS):
        assert partition_key(index_key(kind, key)) == key
        assert INDEX < index_key(kind, key) < AFTER_INDEX < key


@pytest.mark.parametrize("mark", [INDEX_BUILT, INDEX_FENCE, MARKER_KEY])
def test_a_mark_belongs_to_its_partition_and_to_no_key(mark: str) -> None:
    assert partition_key(mark) is None


# ------------------------------------------------------------------------------------------------ building
@given(st.dictionaries(KEYS, st.integers(0, 3), max_size=8))
async def test_a_table_of_an_earlier_version_gets_its_index_once(sessions: dict[str, int]) -> None:
    rows = WatchedRows()
    for key, turns in sessions.items():
        rows.rows[key] = SessionRow(waiting_next=turns).to_bytes()
        rows.rows |= {f"{key}/{n}": b"a turn" for n in range(turns)}
    expected = sorted(key for key, turns in sessions.items() if turns)
    assert sorted(await waiting(rows)) == expected
    seen, rows.looked_at = rows.looked_at, 0
    assert seen
    assert sorted(await waiting(rows)) == expected
    assert rows.looked_at == 0, "no row is looked at again"


@given(st.dictionaries(KEYS, st.booleans(), max_size=8))
async def test_times_of_tasks_of_an_earlier_version_are_found(owners: dict[str, bool]) -> None:
    rows = WatchedRows()
    for key, has_timers in owners.items():
        timers = (TaskTimer(task_id="t", due_at=NOW),) if has_timers else ()
        rows.rows |= {key: b"{}", timers_key(key): TaskTimers(timers=timers).to_bytes()}
    found = [key async for key in pending_keys(rows, 0, TASKS, partitions=1, indexed=timers_index)]
    assert sorted(found) == sorted(key for key, has_timers in owners.items() if has_timers)


async def test_follow_ups_and_counted_turns_of_an_earlier_version_are_found() -> None:
    follow_up = FollowUp(kind="prune", run_id="r", not_before=NOW)
    rows = WatchedRows(
        {
            "acme/user/a": ProgressRow(errands=(follow_up,)).to_bytes(),
            "acme/user/b": ProgressRow(counters=Counters(turns=1)).to_bytes(),
            "acme/user/c": ProgressRow().to_bytes(),
            "acme/user/a/recalled": b"{}",
            "acme/user/a/acme/a/s": b"{}",
        }
    )
    found = {
        kind: [key async for key in pending_keys(rows, 0, kind, partitions=1, indexed=progress_index)]
        for kind in (FOLLOWS, COUNTS)
    }
    assert found == {FOLLOWS: ["acme/user/a"], COUNTS: ["acme/user/b"]}


async def test_under_another_partition_count_the_index_is_built_again() -> None:
    rows = WatchedRows({"acme/u/s": SessionRow().to_bytes()})
    assert await waiting(rows, partitions=12) == []
    rows.rows |= {"acme/u/t": SessionRow(waiting_next=1).to_bytes(), "acme/u/t/0": b"moved here"}
    assert await waiting(rows, partitions=24) == ["acme/u/t"]


class Killed(Exception):
    """The worker ends here."""


class KilledRows(WatchedRows):
    """Rows of a worker that is killed within its `puts_left`-th write, after `kept` rows of it."""

    puts_left: int | None = None
    kept = 0

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        if self.puts_left == 0:
            await super().put(dict(list(rows.items())[: self.kept]), partition=partition)
            raise Killed
        if self.puts_left is not None:
            self.puts_left -= 1
        await super().put(rows, partition=partition)


@given(st.sets(st.integers(0, 60)), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
async def test_a_build_that_is_killed_again_and_again_goes_on_where_it_was(
    waits: set[int], kills: list[tuple[int, int]]
) -> None:
    sessions = [f"acme/u/s{n:02}" for n in range(61)]
    rows = KilledRows({key: SessionRow(waiting_next=int(n in waits)).to_bytes() for n, key in enumerate(sessions)})
    looked_at: list[str] = []

    def indexed(key: str, raw: bytes) -> tuple[str, ...]:
        looked_at.append(key)
        return (index_key(WAITS, key),) if SessionRow.read(raw).waiting else ()

    async def found() -> list[str]:
        return [key async for key in pending_keys(rows, 0, WAITS, partitions=1, indexed=indexed)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending_index, "_LOOKED_AT", 7)
        patch.setattr(pending_index, "_WRITTEN_AT_ONCE", 3)
        for rows.puts_left, rows.kept in kills:
            with suppress(Killed):
                await found()
        rows.puts_left = None
        assert await found() == [sessions[n] for n in sorted(waits)]
    assert len(looked_at) <= len(sessions) + 7 * len(kills), "what a killed build noted is not looked at again"
    written = [key for key in rows.written if key.startswith(index_prefix(WAITS))]
    assert len(written) == len(waits), "each index row is written once"


async def test_a_build_stops_workers_of_an_earlier_version_from_its_begin() -> None:
    """They would write rows where the build has looked already."""
    rows = KilledRows({f"acme/u/s{n}/0": b"a turn" for n in range(3)})
    rows.puts_left = 1
    with pytest.raises(Killed):
        await waiting(rows)
    for mark in (INDEX_BUILT, INDEX_FENCE):
        assert StoredRow.read(rows.rows[mark]).row_version == ROW_VERSION
    rows.puts_left = None
    assert len(await waiting(rows)) == 3


async def test_a_build_for_another_partition_count_is_not_continued() -> None:
    rows = KilledRows({f"acme/u/s{n}/0": b"a turn" for n in range(3)})
    rows.rows[INDEX_BUILT] = pending_index.IndexMark(partitions=12, built_to="acme/u/s1/0").to_bytes()
    assert len(await waiting(rows, partitions=24)) == 3


async def test_a_search_that_begins_again_writes_only_what_is_missing() -> None:
    rows = WatchedRows({f"acme/u/s{n}/0": b"a turn" for n in range(20)})
    await waiting(rows)
    del rows.rows[INDEX_BUILT], rows.rows[index_key(WAITS, "acme/u/s7")]
    rows.written.clear()
    assert len(await waiting(rows)) == 20
    assert set(rows.written) == {index_key(WAITS, "acme/u/s7"), INDEX_BUILT, INDEX_FENCE}


async def test_workers_of_an_earlier_version_stop_at_the_marks() -> None:
    """They read rows of these forms at each assignment, and understand version 1."""
    rows = WatchedRows()
    await waiting(rows)
    assert INDEX_BUILT.count("/") == 2, "consolidation takes it for an owner's row"
    assert INDEX_FENCE.count("/") == 3, "the observer takes it for a waiting turn of that session"
    assert INDEX_FENCE.rpartition("/")[0] == INDEX_BUILT
    assert INDEX_FENCE.endswith("/tasks"), "the reflector takes it for an owner's tasks"
    for mark in (INDEX_BUILT, INDEX_FENCE):
        assert StoredRow.read(rows.rows[mark]).row_version == ROW_VERSION > 1
        assert session_of_waiting_key(mark) is None


# ------------------------------------------------------------------------------------------------ keeping
class Kinds(OutcomeRow):
    kinds: tuple[str, ...] = ()

    def index_kinds(self) -> tuple[str, ...]:
        return self.kinds


Steps = st.lists(
    st.tuples(st.sets(st.sampled_from(["a", "b", "c"])), st.sampled_from(["whole", "cut", "older"]), st.integers(0, 9)),
    max_size=12,
)


@given(Steps)
async def test_a_row_that_waits_always_has_its_index_rows(steps: list[tuple[set[str], str, int]]) -> None:
    """A crash may leave some of the writes of a decision, in their order. Then its outcome is applied again."""
    rows, key, row = MemoryRows(), "acme/u/s", Kinds()
    for kinds, how, cut in steps:
        row = row.model_copy(update={"kinds": tuple(sorted(kinds))})
        if how == "older":  # an earlier version does not keep the field, and wrote the row with its index row before
            row = row.model_copy(update={"indexed": ()})
        row, decision = row.decide(key, Outcome(source=SOURCE))
        assert decision.row is not None
        writes: list[tuple[str, bytes | None]] = [*decision.before.items(), (key, decision.row)]
        writes += [(each, None) for each in decision.outcome.cleanup]
        for each, value in writes[:cut] if how == "cut" else writes:
            await rows.put({each: value})
            check(rows, key)
        for each, value in writes:
            await rows.put({each: value})
        if how != "older":
            continue
        for each in {"a", "b", "c"} - kinds:  # what the lost field hides is found at the next assignment
            await forget(rows, 0, each, key)
    check(rows, key)
    found = {each for each in rows.rows if each.startswith(INDEX)}
    assert found == {index_key(kind, key) for kind in row.kinds if steps}


def check(rows: MemoryRows, key: str) -> None:
    raw = rows.rows.get(key)
    for kind in () if raw is None else Kinds.read(raw).kinds:
        assert rows.rows.get(index_key(kind, key)) == INDEX_ROW


def test_an_owner_whose_last_time_is_gone_has_neither_row() -> None:
    some, key = TaskTimers().add("t", NOW), "acme/user/u"
    begun = TimerRows.changed(key, TaskTimers(), some)
    assert list(begun.after) == [index_key(TASKS, key), timers_key(key)], "the index row first"
    ended = TimerRows.changed(key, some, TaskTimers())
    assert (list(ended.after), set(ended.cleanup)) == ([timers_key(key)], {timers_key(key), index_key(TASKS, key)})
    assert TimerRows.changed(key, some, some) == TimerRows()
    assert index_key(TASKS, key).startswith(index_prefix(TASKS))
