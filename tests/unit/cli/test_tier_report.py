"""What is said of tiers that are off."""

from __future__ import annotations

import pytest

from memstream.cli.output.tier_report import described, idle_stages, tell_tiers
from memstream.memory.policies import TiersPolicy
from memstream.schemas.topics import STAGES

ALONE = TiersPolicy(episodic=False, semantic=False, digest=False)
WITHOUT_FACTS = TiersPolicy(semantic=False, digest=False)


def test_a_stage_that_has_nothing_to_do_says_so_at_start(capfd: pytest.CaptureFixture[str]) -> None:
    tell_tiers(STAGES, ALONE)
    told = capfd.readouterr().out
    assert told.count("stage_idle") == 2
    assert "reflector" in told
    assert "run recorder and observer only, or write episodic = true" in told
    tell_tiers(("recorder", "observer"), ALONE)
    assert "stage_idle" not in capfd.readouterr().out


def test_where_all_is_kept_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    tell_tiers(STAGES, TiersPolicy())
    assert capfd.readouterr().out == ""
    tell_tiers(STAGES, WITHOUT_FACTS)
    told = capfd.readouterr().out
    assert "stage_idle" not in told
    assert "tiers_off" in told
    assert "['semantic', 'digest']" in told


def test_doctor_has_a_line_for_each_deployment() -> None:
    assert described(TiersPolicy()) == "all tiers are on"
    assert described(WITHOUT_FACTS) == "off in [memory.tiers]: semantic, digest"
    assert described(ALONE) == (
        "only the working set is on (episodic, semantic, digest off in [memory.tiers]): "
        "reflector and consolidation have nothing to do"
    )
    assert idle_stages(WITHOUT_FACTS) == ()
