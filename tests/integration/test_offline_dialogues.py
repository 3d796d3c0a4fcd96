"""The offline model through all stages, on dialogues that were written before its rules and never tuned on."""

from __future__ import annotations

import pytest

from bench.quality.__main__ import measured
from bench.quality.dialogues import dialogues

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


async def test_what_it_remembers_is_right_and_has_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    row = await measured("offline", "test", dialogues("test"), embedder="hashing", seed=1)
    counts = row.counts
    with capsys.disabled():
        print(f"\noffline model, dialogues (test half): precision {counts.precision:.3f}, recall {counts.recall:.3f}")
    assert counts.precision >= 0.9
    assert counts.evidence_rate == 1.0
    assert counts.forbidden == 0
