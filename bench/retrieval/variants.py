"""The compared variants of retrieval, and the choice of parameters on a part of the conversations.

All variants read the same index, so in each of them BM25 uses the words of a message and of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memstream.memory.policies import FusionPolicy

from .conversations import Conversation

DEFAULT = FusionPolicy()
VARIANTS: dict[str, FusionPolicy] = {
    "lexical": replace(DEFAULT, dense=0, windowed=0, speaker=0),
    "dense": replace(DEFAULT, windowed=0, lexical=0, speaker=0),
    "fused": replace(DEFAULT, windowed=0, speaker=0),
    "windowed": replace(DEFAULT, speaker=0),
    "full": DEFAULT,
}
LATE = "late"
"""The variant `full`, with its best results reordered by the reranker `late`."""
TUNED = "tuned"
STEPS: tuple[tuple[dict[str, float], ...], ...] = (
    tuple({"k": k} for k in (5.0, 10.0, 20.0, 60.0)),
    tuple({"windowed": windowed, "lexical": lexical} for windowed in (0.5, 1.0, 2.0) for lexical in (1.0, 2.0, 3.0)),
    tuple({"speaker": speaker} for speaker in (0.15, 0.3, 0.45, 0.6)),
)
"""Parameter changes, tried step by step, each from the best policy so far. A wider search would overfit the part."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The two parts of the conversations. Conversations are not split, so no measured question was used for tuning."""

    tuning: Sequence[Conversation]
    held_out: Sequence[Conversation]


def split(conversations: Sequence[Conversation]) -> Parts:
    """Split the conversations: the second, fourth … are held out."""
    return Parts(conversations[::2], conversations[1::2])


def tuned(score: Callable[[FusionPolicy], float]) -> FusionPolicy:
    """Return the policy with the best score. Among equals, the policy that was tried first wins (the default first)."""
    best, highest = DEFAULT, score(DEFAULT)
    for step in STEPS:
        for policy in _tries(best, step):
            if (reached := score(policy)) > highest:
                best, highest = policy, reached
    return best


def _tries(best: FusionPolicy, step: Sequence[dict[str, float]]) -> Iterator[FusionPolicy]:
    for change in step:
        policy = replace(best, **change)
        if policy != best:
            yield policy
