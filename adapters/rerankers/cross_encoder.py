"""`Reranker` with a cross-encoder (ONNX) in this process, through fastembed. It reads cue and candidate as one text.

Source: Nogueira, Cho 2019, "Passage Re-ranking with BERT".
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...schemas.errors import Transient
from ..fastembed_models import ModelClass, ModelSource, model_errors, require_fastembed
from ..ports import RerankCandidate
from ..unicode import replace_surrogates

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

COMPONENT: Final = "reranker"
SETTING: Final = "memory.recall.cross_encoder"
MAX_TEXT: Final = 2_000
"""Maximum code points of a candidate that are read. A cross-encoder reads 512 tokens, including the cue."""
BATCH: Final = 16
"""Pairs in one batch of the model. The model pads each pair to the longest pair of the batch, so larger batches are
slower."""
_REMEDY: Final = f"does {SETTING} name a cross-encoder, and are its files complete?"


class CrossEncoder:
    """`Reranker` on the CPU. `name` is a cross-encoder of fastembed or a folder with one.

    The constructor raises ValueError for a wrong name, an incomplete folder or a missing package. One thread does all
    work, because onnxruntime uses all cores for a batch. The first read loads the model in this thread. A cancelled
    read leaves the queue of the thread, unless the thread already works on it.
    """

    def __init__(self, name: str) -> None:
        self._models = _cross_encoder_models()
        setting = f"{SETTING} = {name!r}"
        folder = Path(name).expanduser()
        if folder.is_dir():
            self._source = self._models.register(folder, self._models.model_file(folder, setting=setting))
        else:
            self._models.by_name(name, setting=setting)
            self._source = ModelSource(registered_as=name)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cross-encoder")
        self._model: TextCrossEncoder | None = None

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        if not candidates:
            return []
        texts = [replace_surrogates(each.text)[:MAX_TEXT] for each in candidates]
        scores = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._scores, replace_surrogates(cue), texts
        )
        return sorted(range(len(scores)), key=lambda place: -scores[place])

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _scores(self, cue: str, texts: list[str]) -> list[float]:
        """Return the score of each text, in the order of `texts`. The model gets the texts sorted by length, so that
        texts in one batch need little padding."""
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        try:
            model = self._model
            if model is None:
                model = self._model = self._models.load(self._source)
            found = [float(score) for score in model.rerank(cue, [texts[i] for i in by_length], batch_size=BATCH)]
        except model_errors(TypeError) as error:  # TypeError: more than one number for a pair
            raise Transient(COMPONENT, f"the cross-encoder cannot be used: {error}", remedy=_REMEDY) from error
        if not all(math.isfinite(score) for score in found):
            raise Transient(COMPONENT, "the cross-encoder returned a score that is not finite", remedy=_REMEDY)
        scores = [0.0] * len(texts)
        for place, score in zip(by_length, found, strict=True):
            scores[place] = score
        return scores


def _cross_encoder_models() -> ModelClass:
    require_fastembed("the reranker cross-encoder")
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    return ModelClass(
        library=TextCrossEncoder,
        component=COMPONENT,
        noun="cross-encoder",
        examples="Xenova/ms-marco-MiniLM-L-6-v2 or jinaai/jina-reranker-v1-turbo-en",
        folder_setting=f"{SETTING} to its folder",
        model_files=("onnx/model.onnx", "model.onnx"),
    )
