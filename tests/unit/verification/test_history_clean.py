"""The history checker finds nothing wrong with a real run: not with redeliveries, not with what retention took, not
when it is asked in the middle of the work."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memstream.memory.policies import MemoryPolicy
from memstream.schemas import ids
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.topics import FACTS
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Position, Record
from memstream.streams.senders.commands import command_record, result_record
from memstream.verification import InvariantVerdict
from tests.support.history_dump import Dump, parsed
from tests.support.record_builders import NOW

OUTPUTS = ("memory.observations", "memory.facts.updated", "memory.episodes.recorded", "memory.commands.results")
LOGS = (*OUTPUTS, "memory.turns", "memory.commands", "memory.turns.dlq")
quick = settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink))


def wrong(verdicts: dict[str, InvariantVerdict]) -> list[object]:
    return [violation for verdict in verdicts.values() for violation in verdict.violations]


@pytest.mark.slow
async def test_a_real_run_is_clean(dump: Dump) -> None:
    verdicts = await dump.verdicts()
    assert wrong(verdicts) == []
    assert list(verdicts) == ["I1", "I2", "I3", "I5", "I6", "I7", "I8", "facts"]
    assert all(verdict.checked > 5 for verdict in verdicts.values()), verdicts


async def test_a_run_of_one_tenant_is_clean(dump: Dump) -> None:
    whole, part = await dump.verdicts(), await dump.verdicts(tenant="zeta")
    assert wrong(part) == []
    assert part["I1"].checked < whole["I1"].checked
    history = await dump.history(tenant="zeta")
    assert {row.tenant_id for row in history.turns} == {"zeta"}
    assert history.refusals == []
    assert history.dead_letters == []


async def test_what_the_caller_knows_is_held_to(dump: Dump) -> None:
    refused = frozenset({(ids.session_key("acme", "u1", "s1"), "t51")})
    acknowledged = frozenset(row.name for row in (await dump.history()).turns)
    assert not await dump.broken(refused_by_model=refused, acknowledged=acknowledged)


async def test_waiting_turns_are_told(dump: Dump) -> None:
    verdict = (await dump.verdicts())["I1"]
    assert verdict.notes == ("2 turns wait to be observed: they have rows in the observer's table",)


@pytest.mark.parametrize("kind", ["turn.retract", "session.erase"])
async def test_a_turn_that_was_taken_back_may_have_no_effect(dump: Dump, kind: str) -> None:
    (found,) = [each for each in dump.records["memory.episodes.recorded"] if parsed(each.value).get("episodes")][:1]
    lost = parsed(found.value)
    dump.edit(found.position.topic, lambda fields: fields.update(episodes=[]), lambda fields: fields == lost)
    for each in lost["episodes"]:
        del dump.points["episodes"][each["episode_id"]]
    assert await dump.broken() == {"I1"}
    command = Command(
        command_id="r1",
        kind=kind,
        tenant_id=str(lost["tenant_id"]),
        session=SessionRef(user_id=str(lost["user_id"]), session_id=str(lost["session_id"])),
        args={"turn_id": lost["turn_id"]} if kind == "turn.retract" else {},
        issued_at=NOW,
    )
    result = CommandResult(command_id="r1", status="applied", at=NOW)
    for sent in (command_record(command, source="test"), result_record(result, of=command, source="test")):
        position = Position(sent.topic, partition_for(sent.key or b"", len(dump.ends[sent.topic])), 0)
        dump.append(Record(position=position, key=sent.key, value=sent.value, headers=sent.headers, timestamp=1))
    assert wrong(await dump.verdicts()) == []


async def test_nothing_is_asked_of_a_stage_that_did_not_run(dump: Dump) -> None:
    for topic in ("memory.episodes.recorded", "memory.commands"):
        dump.committed["memory-consolidation", topic] = [None] * len(dump.ends[topic])
    dump.committed["memory-recorder", "memory.turns"] = [None] * len(dump.ends["memory.turns"])
    dump.points["turns"].clear()
    assert await dump.broken() == {"I8"}
    assert not await dump.broken(stages=frozenset(("observer", "reflector")))


@quick
@given(data=st.data())
def test_records_that_come_again_change_nothing(real_dump: Dump, data: st.DataObject) -> None:
    dump = real_dump.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        topic = data.draw(st.sampled_from([*OUTPUTS, "memory.turns.dlq"]))
        ours = [each for each in dump.records[topic] if each.key != b"any" or topic.endswith("dlq")]
        dump.append(data.draw(st.sampled_from(ours)))
    assert asyncio.run(dump.broken()) == set()


async def test_a_state_from_before_a_growth_is_not_the_last_one(dump: Dump) -> None:
    """It stays on the partition that the key had. Partitions may be read in any order."""
    at = dump.find(FACTS.name, lambda fact: fact.get("version") == 2)
    key = dump.records[FACTS.name][at].key
    first = next(each for each in dump.records[FACTS.name] if each.key == key)
    other = (first.position.partition + 1) % len(dump.ends[FACTS.name])
    dump.ends[FACTS.name][other] = 10_000
    dump.append(first, partition=other)  # is read last
    assert not await dump.broken()


@quick
@given(data=st.data())
def test_retention_is_no_loss(real_dump: Dump, data: st.DataObject) -> None:
    """The oldest records of any partitions of any logs are gone: what is left is judged, and nothing is said of what
    is not there."""
    dump = real_dump.copy()
    for topic in data.draw(st.sets(st.sampled_from(LOGS), min_size=1)):
        for partition, end in enumerate(dump.ends[topic]):
            first = data.draw(st.integers(0, end))
            dump.starts[topic][partition] = first
    assert wrong(asyncio.run(dump.verdicts())) == []
    cut = asyncio.run(dump.history()).cut()
    assert cut == {
        topic: {part: first for part, first in enumerate(starts) if first}
        for topic, starts in dump.starts.items()
        if any(starts) and not topic.endswith("changelog")
    }


@quick
@given(data=st.data())
def test_work_in_hand_is_lag_and_nothing_else(real_dump: Dump, data: st.DataObject) -> None:
    dump = real_dump.copy()
    lowered = False
    for offsets in dump.committed.values():
        for partition, at in enumerate(offsets):
            back = data.draw(st.integers(0, at or 0))
            offsets[partition] = (at or 0) - back if at is not None else None
            lowered = lowered or back > 0
    assert asyncio.run(dump.broken()) == ({"I8"} if lowered else set())


async def test_another_threshold_asks_for_other_episodes(dump: Dump) -> None:
    """Where observations go follows from the policy that the checker is given."""
    from dataclasses import replace

    from memstream.verification import Expected, verify

    policy = MemoryPolicy()
    strict = replace(policy, routing=replace(policy.routing, significance=1.0))
    verdicts = verify(await dump.history(policy=strict), Expected(policy=strict, tier="standard"))
    assert "its episodes do not match its observations" in verdicts[0].violations[0].what


def test_the_dump_has_what_the_checker_looks_at(real_dump: Dump) -> None:
    """A run in which nothing happened would prove nothing."""
    actions = {parsed(record.value)["action"] for record in real_dump.records["memory.facts.updated"]}
    assert actions >= {"new", "reinforced", "superseded", "invalidated"}
    reasons = [dict(record.headers)["memstream-reason"] for record in real_dump.records["memory.turns.dlq"]]
    assert sorted(reasons) == [b"invalid", b"refused_by_model", b"undecodable", b"undecodable"]
    assert real_dump.records["memory.commands"]
    assert {payload["tenant_id"] for payload in real_dump.points["facts"].values()} == {"acme", "zeta"}
