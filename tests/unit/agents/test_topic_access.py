"""The table of who may write and read, against what the stages read."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.agents.consolidation.stage import Consolidation
from memstream.agents.observer.stage import Observer
from memstream.agents.recorder.stage import Recorder
from memstream.agents.reflector.stage import Reflector
from memstream.schemas.access import OPERATOR, Acl, accesses
from memstream.schemas.topics import ERASURES, FACTS, POLICIES, STAGES, TOPICS, dead_letters_of, group_of

ACCESS = {each.role: each for each in accesses()}


@pytest.mark.parametrize("stage", [Recorder, Observer, Reflector, Consolidation])
def test_a_stage_may_read_what_it_reads(stage: Any) -> None:
    allowed = {topic.name for topic in ACCESS[stage.name].consumes if topic in TOPICS}
    read = {topic.name for topic in stage.reads}
    assert read <= allowed
    assert allowed - read <= {POLICIES.name, FACTS.name, ERASURES.name}, "what is read without the group"
    letters = {dead_letters_of(topic).name for topic in stage.reads}
    assert letters <= {topic.name for topic in ACCESS[stage.name].produces}


def test_every_stage_has_its_group_and_no_client_has_one() -> None:
    """A server and a program that erases users look at the offsets of every stage, and cannot commit them."""
    grouped = {each.role: each.groups for each in accesses() if each.groups and each.role != OPERATOR}
    assert grouped == {stage: (group_of(stage),) for stage in STAGES}
    every = tuple(group_of(stage) for stage in STAGES)
    assert {each.role: each.watches for each in accesses() if each.watches} == {"serve": every, "eraser": every}
    looked = [acl for role in ("serve", "eraser") for acl in ACCESS[role].acls() if acl.resource == "group"]
    assert {acl.operations for acl in looked} == {("Describe",)}


def test_only_the_operator_creates_topics_and_writes_policies() -> None:
    assert [each.role for each in accesses() if each.creates] == [OPERATOR]
    assert [each.role for each in accesses() if POLICIES in each.produces] == [OPERATOR]


def test_a_right_is_named_once_and_includes_describe() -> None:
    for each in accesses():
        acls = each.acls()
        assert len({(acl.resource, acl.name) for acl in acls}) == len(acls)
        assert all("Describe" in acl.operations for acl in acls)
    (turns,) = ACCESS["chat-service"].acls()
    assert turns == Acl("topic", "memory.turns", ("Describe", "Write"))
