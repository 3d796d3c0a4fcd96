"""Rows that move when a topic grows: each is in its one place afterwards, from whatever step the plan begins again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.cloudevents import MOVED_HEADER
from memstream.schemas.row_keys import INDEX_BUILT, INDEX_FENCE, index_key, index_prefix
from memstream.streams.log.growth_plan import (
    CompactedPartition,
    MoveStep,
    Unplaceable,
    event_key,
    misplaced_rows,
    own_key,
    plan_moves,
    steps,
)
from memstream.streams.log.markers import Marker, marker_entry
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Headers, Position, Record

Topic = list[list[tuple[bytes, bytes | None, Headers]]]
PARTS = st.sampled_from(["a", "b", "user", "u1", "u2", "u3", "s1", "s2", "s%2F3"])
EVENT_KEYS = st.tuples(PARTS, PARTS, PARTS).map("/".join)
ROW_KEYS = st.builds(
    lambda index, key, rest: (index + key + rest).encode(),
    st.sampled_from(["", index_prefix("due"), index_prefix("turns")]),
    EVENT_KEYS,
    st.sampled_from(["", "/0", "/17", "/tasks", "/recalled", "/a/u1/s1"]),
)
ROWS = st.dictionaries(ROW_KEYS, st.binary(max_size=4), max_size=30)


def laid_out(rows: dict[bytes, bytes], partitions: int) -> Topic:
    topic: Topic = [[] for _ in range(partitions)]
    for key, value in rows.items():
        topic[partition_for(event_key(key), partitions)].append((key, value, ()))
    return topic


def image_of(topic: Topic) -> list[CompactedPartition]:
    image = [CompactedPartition() for _ in topic]
    for partition, records in enumerate(topic):
        for offset, (key, value, headers) in enumerate(records):
            image[partition].take(Record(Position("t", partition, offset), key, value, headers))
    return image


def take(step: MoveStep, topic: Topic) -> None:
    move = step.move
    if step.kind == "copy":
        topic[move.target].append((move.key, topic[move.source][move.offset][1], ()))
    else:
        topic[move.source].append((move.key, None, ()))


def rows_of(topic: Topic) -> list[dict[bytes, bytes]]:
    found: list[dict[bytes, bytes]] = []
    for records in topic:
        last = {key: value for key, value, _ in records}
        found.append({key: value for key, value in last.items() if value is not None})
    return found


@given(rows=ROWS, before=st.integers(1, 6), more=st.integers(0, 7), data=st.data())
def test_every_row_is_in_its_one_place_from_whatever_step_it_begins_again(
    rows: dict[bytes, bytes], before: int, more: int, data: st.DataObject
) -> None:
    topic = laid_out(rows, before)
    after = before + more
    topic += [[] for _ in range(more)]
    for _ in range(3):
        every = [
            step for group in steps(plan_moves("t", image_of(topic), after, key_of=event_key).moves) for step in group
        ]
        for step in every[: data.draw(st.integers(0, len(every)))]:
            take(step, topic)
            there = {key for each in rows_of(topic) for key in each}
            assert there == set(rows), "a row is in no place"
    plan = plan_moves("t", image_of(topic), after, key_of=event_key)
    for group in steps(plan.moves):
        for step in group:
            take(step, topic)
    assert misplaced_rows(plan, image_of(topic), after, key_of=event_key) == []
    for partition, found in enumerate(rows_of(topic)):
        assert found == {key: value for key, value in rows.items() if partition_for(event_key(key), after) == partition}
    assert plan_moves("t", image_of(topic), after, key_of=event_key).moves == []


@given(rows=ROWS, counts=st.lists(st.integers(1, 9), min_size=2, max_size=4).map(sorted))
def test_a_topic_may_grow_again_and_again(rows: dict[bytes, bytes], counts: list[int]) -> None:
    topic = laid_out(rows, counts[0])
    for count in counts[1:]:
        topic += [[] for _ in range(count - len(topic))]
        for group in steps(plan_moves("t", image_of(topic), count, key_of=event_key).moves):
            for step in group:
                take(step, topic)
    assert {key: value for each in rows_of(topic) for key, value in each.items()} == rows


@pytest.mark.parametrize("key", [b"k0", b"a/b", b"a//c", b"/b/c/d"])
def test_a_row_whose_key_does_not_begin_with_an_events_key_cannot_be_placed(key: bytes) -> None:
    with pytest.raises(Unplaceable, match="cannot be placed"):
        plan_moves("t", image_of([[(key, b"1", ())], []]), 2, key_of=event_key)


def test_two_values_of_one_row_are_refused() -> None:
    key = b"a/b/c"
    topic: Topic = [[(key, b"1", ())], [(key, b"2", ())], []]
    with pytest.raises(Unplaceable, match="two values"):
        plan_moves("t", image_of(topic), 3, key_of=event_key)


@pytest.mark.parametrize("value", [b"newer", None])
def test_what_producers_wrote_to_the_target_is_newer(value: bytes | None) -> None:
    """A fact that changed, or was erased, after partitions had been added by hand."""
    key, target = b"a/f1", partition_for(b"a/f1", 3)
    topic: Topic = [[], [], []]
    topic[(target + 1) % 3].append((key, b"older", ()))
    topic[target].append((key, value, ()))
    plan = plan_moves("t", image_of(topic), 3, key_of=own_key, newest_on_target=True)
    assert [move.copy for move in plan.moves] == [False]
    for group in steps(plan.moves):
        for step in group:
            take(step, topic)
    assert misplaced_rows(plan, image_of(topic), 3, key_of=own_key) == []
    assert [each.get(key) for each in rows_of(topic) if key in each] == ([] if value is None else [value])


def test_a_tombstone_of_an_earlier_growth_erases_nothing() -> None:
    key, target = b"a/f1", partition_for(b"a/f1", 3)
    topic: Topic = [[], [], []]
    topic[(target + 1) % 3].append((key, b"1", ()))
    topic[target].append((key, None, ((MOVED_HEADER, b"1"),)))
    plan = plan_moves("t", image_of(topic), 3, key_of=own_key, newest_on_target=True)
    assert [move.copy for move in plan.moves] == [True]


def test_markers_are_no_rows_and_the_last_one_counts() -> None:
    first, last = (Marker(identity="x", whole_from=0, written_at=n, partitions=2) for n in range(2))
    topic: Topic = [[(*marker_entry(first), ()), (*marker_entry(last), ())], []]
    image = image_of(topic)
    assert image[0].marker == last
    assert plan_moves("t", image, 2, key_of=event_key).rows == {}


def test_an_index_row_goes_where_its_row_goes_and_marks_stay() -> None:
    key = "acme/user/u1"
    assert event_key(index_key("due", key).encode()) == event_key(f"{key}/tasks".encode()) == key.encode()
    topic: Topic = [[(mark.encode(), b"{}", ()) for mark in (INDEX_BUILT, INDEX_FENCE)] for _ in range(3)]
    plan = plan_moves("t", image_of(topic), 7, key_of=event_key)
    assert (list(plan.moves), plan.rows) == ([], {})
