"""`Embedder` that runs a sentence encoder (ONNX) in this process through fastembed, by name or from a folder."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...schemas.errors import Fatal
from ..fastembed_models import ModelClass, ModelSource, require_fastembed
from ..ports import EmbedderIdentity
from ..unicode import replace_surrogates

if TYPE_CHECKING:
    from fastembed import TextEmbedding

MAX_TEXT: Final = 8_000
"""Maximum code points of a text that are embedded. Sentence encoders read at most 512 tokens, which is less."""
MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
"""Possible paths of the model file in the folder of a sentence encoder."""
THREADS: Final = 1
"""Threads of a model. Several threads wait for each other actively. With two threads, a batch took twice the processor
time, and took longer when other work shared the cores."""
BATCH: Final = 16
"""Texts in one batch of the model. Larger batches are not faster on a CPU, and need more padding."""


class FastEmbedder:
    """`Embedder` on the CPU. `name` is a fastembed model or a folder with an ONNX sentence encoder.

    The constructor raises ValueError for a wrong name, an incomplete folder or a missing package. The first text loads
    the model. One thread does all embedding, and the model uses `THREADS` threads.
    """

    def __init__(self, name: str) -> None:
        self._models = _embedding_models()
        setting = f"MEMSTREAM_EMBEDDER=fastembed:{name}"
        folder = Path(name).expanduser()
        if folder.is_dir():
            self._source, dimension = model_in_folder(self._models, folder, setting=setting)
            name = folder.resolve().name
        else:
            dimension = int(self._models.by_name(name, setting=setting)["dim"])
            self._source = ModelSource(registered_as=name)
        self._identity = EmbedderIdentity(name=f"fastembed:{name}", dimension=dimension)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fastembed")
        self._model: TextEmbedding | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if not texts:
            return []
        cut = [replace_surrogates(text)[:MAX_TEXT] for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, cut)

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: list[str]) -> list[list[float]]:
        model = self._model
        if model is None:
            model = self._model = self._models.load(self._source, threads=THREADS)
        # The model pads every text of a batch to the longest text. Sorting by length reduces the padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        embedded = model.embed([texts[place] for place in order], batch_size=BATCH)
        vectors = {place: _unit([float(x) for x in vector]) for place, vector in zip(order, embedded, strict=True)}
        return [vectors[place] for place in range(len(texts))]


def _embedding_models() -> ModelClass:
    require_fastembed("MEMSTREAM_EMBEDDER=fastembed:…")
    from fastembed import TextEmbedding

    return ModelClass(
        library=TextEmbedding,
        component="embedder",
        noun="model",
        examples="fastembed:BAAI/bge-small-en-v1.5 or fastembed:sentence-transformers/all-MiniLM-L6-v2",
        folder_setting="MEMSTREAM_EMBEDDER=fastembed:<folder>",
        model_files=MODEL_FILES,
    )


def model_in_folder(models: ModelClass, folder: Path, *, setting: str) -> tuple[ModelSource, int]:
    """Return the model in this folder and its dimension. The folder's files define the pooling and the dimension."""
    from fastembed.common.model_description import PoolingType

    model_file = models.model_file(folder, setting=setting)
    try:
        dimension = int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{setting}: config.json has no hidden_size") from error
    pooling = PoolingType.CLS if _pools_first_token(folder) else PoolingType.MEAN
    return models.register(folder, model_file, pooling=pooling, normalization=True, dim=dimension), dimension


def _pools_first_token(folder: Path) -> bool:
    """Return whether the model uses the vector of the first token as the vector of the text. A file in the format of
    sentence-transformers states this. Without that file, assume mean pooling, which most sentence encoders use."""
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(pooling, dict) and pooling.get("pooling_mode_cls_token") is True


def _unit(vector: list[float]) -> list[float]:
    """Scale the vector to length 1."""
    length = math.sqrt(sum(x * x for x in vector))
    if not math.isfinite(length) or length == 0.0:
        raise Fatal("the embedding model returned a zero or non-finite vector; its files may be damaged")
    return [x / length for x in vector]
