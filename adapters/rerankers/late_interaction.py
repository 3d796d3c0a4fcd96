"""`Reranker` in this process by late interaction. A sentence encoder (ONNX, fastembed) encodes cue and candidates
separately. Each token of the cue is matched to the most similar token of a candidate.

Source: Khattab, Zaharia 2020, "ColBERT". ColBERT trains a model for this task. Here any sentence encoder works, with
its token vectors before pooling.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...schemas.errors import Transient
from ..embedders.fastembed import MODEL_FILES, THREADS, model_in_folder
from ..fastembed_models import ModelClass, ModelSource, model_errors, require_fastembed
from ..ports import RerankCandidate
from ..unicode import replace_surrogates

if TYPE_CHECKING:
    from fastembed import TextEmbedding

COMPONENT: Final = "reranker"
SETTING: Final = "memory.recall.late_encoder"
MAX_TEXT: Final = 2_000
"""Maximum code points of a text that are read. Sentence encoders read at most 512 tokens."""
BATCH: Final = 16
"""Texts in one batch of the model. Larger batches need more padding."""
HELD_BYTES: Final = 50_000_000
"""Maximum bytes of the cache of token vectors: about 9 000 messages with 384 dimensions. The least recently used texts
are evicted."""
PRODUCT_MAX: Final = 2**17
"""Maximum multiplications in one matrix product. For larger products, OpenBLAS uses several threads, and the product
takes longer."""
PLACE_K: Final = 10.0
"""Constant k in the weight of a candidate's rank from recall: k / (k + rank)."""
SPEAKER: Final = 0.3
"""Bonus for a message of the speaker whom the cue names. Recall's own order has the same bonus, `fusion.speaker`."""
_REMEDY: Final = f"does {SETTING} name a sentence encoder, and are its files complete?"


class Tokens(NamedTuple):
    """Token vectors of a text, one per row, each of length 1. The vector of a row is `codes` × `scale`."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    """One scale per row."""

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scales.nbytes


class LateInteraction:
    """`Reranker` on the CPU. `name` is a sentence encoder of fastembed or a folder with one.

    A score is the sum of two values between 0 and 1: the weight of the rank from recall, and the similarity of the
    tokens. By similarity alone, candidates that recall found by exact words or by their neighbours would move too far
    down. If the cue names a speaker, messages are compared with the cue in the first person of this speaker, and
    messages of this speaker get a bonus.

    The constructor raises ValueError for a wrong name, an incomplete folder or a missing package. One thread does all
    work. The first read loads the model in this thread. The token vectors of recently read texts are cached, so a read
    encodes only new texts.
    """

    def __init__(self, name: str) -> None:
        self._models = _sentence_encoders()
        setting = f"{SETTING} = {name!r}"
        folder = Path(name).expanduser()
        if folder.is_dir():
            self._source, _ = model_in_folder(self._models, folder, setting=setting)
        else:
            self._models.by_name(name, setting=setting)
            self._source = ModelSource(registered_as=name)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="late-interaction")
        self._model: TextEmbedding | None = None
        self._held: OrderedDict[str, Tokens] = OrderedDict()
        self._held_bytes = 0

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        if not candidates:
            return []
        cues = [cue if as_speaker is None or each.tier != "turns" else as_speaker for each in candidates]
        texts = [each.text for each in candidates]
        likeness = await asyncio.get_running_loop().run_in_executor(self._thread, self._likenesses, cues, texts)
        places = np.arange(len(texts))
        by_speaker = np.array([each.by_speaker for each in candidates])
        scores = _from_0_to_1(likeness) + PLACE_K / (PLACE_K + places) + SPEAKER * by_speaker
        return [int(place) for place in np.argsort(-scores, kind="stable")]

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    # -------------------------------------------------------------------------------------------- in the thread
    def _likenesses(self, cues: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the similarity of each text to its cue."""
        cut = [replace_surrogates(text)[:MAX_TEXT] for text in texts]
        likeness = np.empty(len(cut), dtype=np.float32)
        for cue in dict.fromkeys(cues):
            places = [place for place, of in enumerate(cues) if of == cue]
            likeness[places] = self._likeness(replace_surrogates(cue)[:MAX_TEXT], [cut[place] for place in places])
        return likeness

    def _likeness(self, cue: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return, for each text, the mean over the cue's tokens of the greatest cosine with a token of the text."""
        asked, *shown = self._tokens([cue, *texts])
        begins = np.cumsum([0, *(len(each.codes) for each in shown[:-1])])
        cosines = _cosines(_join(shown), asked)
        likeness: NDArray[np.float32] = np.maximum.reduceat(cosines, begins, axis=0).mean(axis=1)
        return likeness

    def _tokens(self, texts: Sequence[str]) -> list[Tokens]:
        found = {text: self._held[text] for text in texts if text in self._held}
        new = sorted({text for text in texts if text not in found}, key=len)  # similar lengths need little padding
        for begin in range(0, len(new), BATCH):
            some = new[begin : begin + BATCH]
            found.update(zip(some, self._read(some), strict=True))
        self._hold(found)
        return [found[text] for text in texts]

    def _read(self, texts: list[str]) -> list[Tokens]:
        try:
            model = self._model
            if model is None:
                model = self._model = self._models.load(self._source, threads=THREADS)
            output = model.model.onnx_embed(texts)
        except model_errors() as error:
            raise Transient(COMPONENT, f"the sentence encoder cannot be used: {error}", remedy=_REMEDY) from error
        if output.model_output.ndim != 3:
            raise Transient(COMPONENT, "the sentence encoder gives no vector for each token", remedy=_REMEDY)
        vectors = output.model_output / np.linalg.norm(output.model_output, axis=2, keepdims=True)
        there = output.attention_mask.astype(bool)
        if not np.isfinite(vectors[there]).all():
            raise Transient(COMPONENT, "the sentence encoder returned a vector that is not finite", remedy=_REMEDY)
        # The vectors of [CLS] and [SEP] are removed, because they are similar in all texts. A text without a word keeps
        # them, so that it has at least one vector.
        words = there & ~np.isin(output.input_ids, list(model.model.special_token_to_id.values()))
        shown = np.where(words.any(axis=1, keepdims=True), words, there)
        return [_int8(of_text[tokens]) for of_text, tokens in zip(vectors, shown, strict=True)]

    def _hold(self, found: dict[str, Tokens]) -> None:
        """Cache these texts as the newest, and evict the oldest texts."""
        for text, tokens in found.items():
            if self._held.pop(text, None) is None:
                self._held_bytes += tokens.nbytes
            self._held[text] = tokens
        while self._held_bytes > HELD_BYTES:
            _, gone = self._held.popitem(last=False)
            self._held_bytes -= gone.nbytes


def _int8(vectors: NDArray[np.float32]) -> Tokens:
    """Quantise the vectors to 8 bits. A cosine changes by less than 0.001."""
    scales = np.abs(vectors).max(axis=1, keepdims=True) / 127
    return Tokens(np.rint(vectors / scales).astype(np.int8), scales)


def _join(texts: Sequence[Tokens]) -> Tokens:
    codes, scales = zip(*texts, strict=True)
    return Tokens(np.concatenate(codes), np.concatenate(scales))


def _cosines(shown: Tokens, asked: Tokens) -> NDArray[np.float32]:
    """Return the cosine of each text token (row) with each cue token (column)."""
    cue = (asked.codes * asked.scales).T
    rows = max(1, PRODUCT_MAX // cue.size)
    parts = [shown.codes[at : at + rows].astype(np.float32) @ cue for at in range(0, len(shown.codes), rows)]
    cosines: NDArray[np.float32] = np.concatenate(parts) * shown.scales
    return cosines


def _from_0_to_1(likeness: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the values to 0 … 1, because the cosines of any two texts are close together."""
    least, greatest = likeness.min(), likeness.max()
    return (likeness - least) / (greatest - least) if greatest > least else np.zeros_like(likeness)


def _sentence_encoders() -> ModelClass:
    require_fastembed("the reranker late")
    from fastembed import TextEmbedding

    return ModelClass(
        library=TextEmbedding,
        component=COMPONENT,
        noun="sentence encoder",
        examples="sentence-transformers/all-MiniLM-L6-v2",
        folder_setting=f"{SETTING} to its folder",
        model_files=MODEL_FILES,
    )
