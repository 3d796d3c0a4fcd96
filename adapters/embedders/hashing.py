"""Embedder by feature hashing, without a download, server or model. It compares words, not meanings.

Each word is hashed to one of 2 048 dimensions and a sign. A text's vector is the sum over its words. The square root of
the count damps repeated words, and the sum is scaled to length 1. Word order is ignored. Two different words get
unrelated dimensions, even if their meanings are similar. Source: Weinberger et al. 2009, "Feature Hashing for Large
Scale Multitask Learning".

A text that is not ASCII has further terms (`schemas/terms.py`): pairs of letters in scripts without spaces, and words
without accents. The features of its words stay the same, so records stored before these terms existed are still found.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from ...schemas.terms import added_terms
from ..ports import EmbedderIdentity
from ..unicode import replace_surrogates

DIMENSION: Final = 2048
WORDS_KEPT: Final = 32_768
WORD_MAX: Final = 32
"""Maximum number of cached words, and the maximum length of a cached word in code points. A full cache takes about
5 MB and has room for the common words of a language."""
_WORD: Final = re.compile(r"\w+")


class HashingEmbedder:
    """Deterministic `Embedder`: equal texts have equal vectors in every process and on every machine."""

    def __init__(self) -> None:
        self._identity = EmbedderIdentity(name="hashing", dimension=DIMENSION, mostly_zeros=True)
        self._known = lru_cache(maxsize=WORDS_KEPT)(_place)

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    async def close(self) -> None:
        return None

    def _vector(self, text: str) -> list[float]:
        plain = replace_surrogates(text)
        folded = unicodedata.normalize("NFKC", plain).casefold()
        features = Counter(_WORD.findall(folded))
        features.update([term for term in added_terms(plain) if term not in features])
        weights: dict[int, float] = {}
        for feature, count in features.items():
            place, sign = self._known(feature) if len(feature) <= WORD_MAX else _place(feature)
            weights[place] = weights.get(place, 0.0) + sign * math.sqrt(count)
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        if length == 0.0:  # no word, or the words cancel out: use the whole text as one feature
            place, sign = _place(folded)
            weights, length = {place: sign}, 1.0
        vector = [0.0] * DIMENSION
        for place, weight in weights.items():
            vector[place] = weight / length
        return vector


def _place(feature: str) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(feature.encode("utf-8"), digest_size=8).digest(), "big")
    return (digest >> 1) % DIMENSION, 1.0 if digest & 1 else -1.0
