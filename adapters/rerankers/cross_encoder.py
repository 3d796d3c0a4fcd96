"""A cross-encoder on this machine with fastembed (ONNX): it reads cue and candidate together, as one text.

Source: Nogueira, Cho 2019, "Passage Re-ranking with BERT".
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...schemas.errors import Transient
from ..ports import RerankCandidate
from ..unicode import well_formed

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

COMPONENT: Final = "reranker"
SETTING: Final = "memory.recall.cross_encoder"
MAX_TEXT: Final = 2_000
"""Code points of a candidate that are looked at: such models read 512 tokens, the cue's included."""
BATCH: Final = 16
"""Pairs at once. Each is as long as the longest, so that few large ones cost more than they save."""
_REMEDY: Final = f"does {SETTING} name a cross-encoder, and are its files whole?"
_INSTALL: Final = "the reranker cross-encoder needs an optional package: pip install 'memstream[fastembed]'"
_MODEL_FILES: Final = ("onnx/model.onnx", "model.onnx")
_TOKENIZER_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True, slots=True)
class _Source:
    """What is loaded, and under which name fastembed knows it."""

    registered_as: str
    folder: Path | None = None


class CrossEncoder:
    """`Reranker` on the CPU. `name` is one of fastembed's cross-encoders or a folder with one.

    A wrong name, an incomplete folder or the missing package is a ValueError here; the model itself is loaded with the
    first read, in the thread that reranks (one: onnxruntime spreads a batch over the cores by itself). A read that
    gives up waiting takes its place in that thread's queue along, unless the work has begun.
    """

    def __init__(self, name: str) -> None:
        folder = Path(name).expanduser()
        self._source = _from_folder(folder) if folder.is_dir() else _by_name(name)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cross-encoder")
        self._model: TextCrossEncoder | None = None

    async def rerank(self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str) -> list[int]:
        if not candidates:
            return []
        texts = [well_formed(each.text)[:MAX_TEXT] for each in candidates]
        scores = await asyncio.get_running_loop().run_in_executor(self._thread, self._scores, well_formed(cue), texts)
        return sorted(range(len(scores)), key=lambda place: -scores[place])

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _scores(self, cue: str, texts: list[str]) -> list[float]:
        """Of each text, in their order. The texts go in by length, so that a batch is not padded for one long text."""
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        try:
            if self._model is None:
                self._model = _load(self._source)
            found = [float(score) for score in self._model.rerank(cue, [texts[i] for i in by_length], batch_size=BATCH)]
        except _model_errors() as error:
            raise Transient(COMPONENT, f"the cross-encoder cannot be used: {error}", remedy=_REMEDY) from error
        if not all(math.isfinite(score) for score in found):
            raise Transient(COMPONENT, "the cross-encoder gave no number", remedy=_REMEDY)
        scores = [0.0] * len(texts)
        for place, score in zip(by_length, found, strict=True):
            scores[place] = score
        return scores


def _by_name(name: str) -> _Source:
    known = {model["model"].lower() for model in _library().list_supported_models()}
    if name.lower() not in known:
        raise ValueError(
            f"{SETTING} = {name!r}: neither a folder nor a cross-encoder that fastembed knows; "
            "for instance Xenova/ms-marco-MiniLM-L-6-v2 or jinaai/jina-reranker-v1-turbo-en"
        )
    return _Source(registered_as=name)


def _from_folder(folder: Path) -> _Source:
    """A folder as a model of its own: fastembed takes it under a name."""
    TextCrossEncoder = _library()
    from fastembed.common.model_description import ModelSource

    model_file = next((file for file in _MODEL_FILES if (folder / file).is_file()), None)
    missing = [file for file in _TOKENIZER_FILES if not (folder / file).is_file()]
    if model_file is None or missing:
        lacks = [*([] if model_file else _MODEL_FILES[:1]), *missing]
        raise ValueError(f"{SETTING} = {str(folder)!r}: the folder lacks {', '.join(lacks)}")
    registered_as = f"folder/{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
    if registered_as not in {model["model"] for model in TextCrossEncoder.list_supported_models()}:
        TextCrossEncoder.add_custom_model(
            model=registered_as,
            sources=ModelSource(hf=registered_as),  # never asked: the folder is given when it is loaded
            model_file=model_file,
        )
    return _Source(registered_as=registered_as, folder=folder)


def _load(source: _Source) -> TextCrossEncoder:
    TextCrossEncoder = _library()
    if source.folder is not None:
        return TextCrossEncoder(model_name=source.registered_as, specific_model_path=str(source.folder))
    try:
        return TextCrossEncoder(model_name=source.registered_as)
    except (OSError, ValueError) as error:  # fastembed's last word after all its sources have failed
        raise Transient(
            COMPONENT,
            f"the cross-encoder {source.registered_as} could not be downloaded: {error}",
            remedy=f"check the connection, or fetch the model elsewhere and set {SETTING} to its folder",
        ) from error


def _model_errors() -> tuple[type[Exception], ...]:
    """What says that a model cannot be loaded or run: its files are damaged, or (TypeError) it gives no single number
    for a pair. onnxruntime's errors have no base of their own."""
    runtime = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    its = (each for each in runtime.values() if isinstance(each, type) and issubclass(each, Exception))
    return (OSError, ValueError, TypeError, *its)


def _library() -> type[TextCrossEncoder]:
    try:
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        raise ValueError(_INSTALL) from error
    library: type[TextCrossEncoder] = TextCrossEncoder
    return library
