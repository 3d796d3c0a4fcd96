"""The table of who may write and read, against what the stages read."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.agents.consolidation.stage import Consolidation
from memstream.agents.observer.stage import Observer
from memstream.agents.recorder.stage import Recorder
from memstream.agents.reflector.stage import Reflector
from memstream.schemas.topics import FACTS, POLICIES, STAGES, TOPICS, accesses, dead_letters_of, group_of

ACCESS = {each.principal: each for each in accesses()}


@pytest.mark.parametrize("stage", [Recorder, Observer, Reflector, Consolidation])
def test_a_stage_may_read_what_it_reads(stage: Any) -> None:
    allowed = {topic.name for topic in ACCESS[stage.name].consumes if topic in TOPICS}
    read = {topic.name for topic in stage.reads}
    assert read <= allowed
    assert allowed - read <= {POLICIES.name, FACTS.name}, "what is read without the group"
    letters = {dead_letters_of(topic).name for topic in stage.reads}
    assert letters <= {topic.name for topic in ACCESS[stage.name].produces}


def test_every_stage_has_its_group_and_no_client_has_one() -> None:
    assert [each.group for each in accesses() if each.group] == [group_of(stage) for stage in STAGES]
