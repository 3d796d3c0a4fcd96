"""Written cues through the real stages and the real read path: how often the right answer comes first. The cues were
written before the ranking; this half was never tuned on."""

from __future__ import annotations

import pytest

from tests.support.recall_cues import measured, share
from tests.support.small_model import minilm_or_skip

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


async def test_with_hashing() -> None:
    await hold("hashing", first=0.75, three=0.90)


@pytest.mark.semantic
async def test_with_a_small_model() -> None:
    await hold(f"fastembed:{minilm_or_skip()}", first=0.75, three=0.93)


async def hold(embedder: str, *, first: float, three: float) -> None:
    """Which cues are answered wrongly is not told: whoever changes the ranking reads the other half."""
    places = [each for each in await measured(embedder) if each.cue.half == "test"]
    reached = share(places, among=1), share(places, among=3)
    if reached[0] < first or reached[1] < three:
        pytest.fail(
            f"right first {reached[0]:.3f}, among three {reached[1]:.3f}; at least {first}, {three}", pytrace=False
        )
