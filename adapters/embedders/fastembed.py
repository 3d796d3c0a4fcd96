"""Sentence embeddings on this machine with fastembed (ONNX): a model by name, downloaded once, or from a folder."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...schemas.errors import Fatal, Transient
from ..ports import EmbedderIdentity
from ..unicode import well_formed

if TYPE_CHECKING:
    from fastembed import TextEmbedding

MAX_TEXT: Final = 8_000
"""Code points of a text that are looked at; such models read 512 tokens at most, so nothing is lost."""
BATCH: Final = 16
"""Texts of a run of the model; more are not faster on a CPU, and pad more."""
_INSTALL: Final = "MEMSTREAM_EMBEDDER=fastembed:… needs an optional package: pip install 'memstream[fastembed]'"
_MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
_TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True, slots=True)
class _Source:
    """What is loaded, and under which name fastembed knows it."""

    registered_as: str
    dimension: int
    folder: Path | None = None


class FastEmbedder:
    """`Embedder` on the CPU. `name` is one of fastembed's models or a folder with an ONNX sentence encoder.

    A wrong name or an incomplete folder is a ValueError here; the model itself is loaded with the first text, in the
    thread that embeds (one: onnxruntime spreads a batch over the cores by itself).
    """

    def __init__(self, name: str) -> None:
        folder = Path(name).expanduser()
        self._source = _from_folder(folder) if folder.is_dir() else _by_name(name)
        self._identity = EmbedderIdentity(
            name=f"fastembed:{folder.resolve().name if self._source.folder else name}", dimension=self._source.dimension
        )
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fastembed")
        self._model: TextEmbedding | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if not texts:
            return []
        cut = [well_formed(text)[:MAX_TEXT] for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, cut)

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: list[str]) -> list[list[float]]:
        if self._model is None:
            self._model = _load(self._source)
        # A batch is as long as its longest text: windows and messages of one call would all be as long as windows.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        embedded = self._model.embed([texts[place] for place in order], batch_size=BATCH)
        vectors = {place: _unit([float(x) for x in vector]) for place, vector in zip(order, embedded, strict=True)}
        return [vectors[place] for place in range(len(texts))]


def _by_name(name: str) -> _Source:
    TextEmbedding = _library()
    known = {model["model"].lower(): int(model["dim"]) for model in TextEmbedding.list_supported_models()}
    if name.lower() not in known:
        raise ValueError(
            f"MEMSTREAM_EMBEDDER=fastembed:{name}: neither a folder nor a model that fastembed knows; "
            "for instance fastembed:BAAI/bge-small-en-v1.5 or fastembed:sentence-transformers/all-MiniLM-L6-v2"
        )
    return _Source(registered_as=name, dimension=known[name.lower()])


def _from_folder(folder: Path) -> _Source:
    """A folder as a model of its own: fastembed takes it under a name, with pooling and dimension from its files."""
    TextEmbedding = _library()
    from fastembed.common.model_description import ModelSource, PoolingType

    model_file = next((file for file in _MODEL_FILES if (folder / file).is_file()), None)
    missing = [file for file in ("config.json", *_TOKENIZER_FILES) if not (folder / file).is_file()]
    if model_file is None:
        missing.append(_MODEL_FILES[0])
    if model_file is None or missing:
        raise ValueError(f"MEMSTREAM_EMBEDDER=fastembed:{folder}: the folder lacks {', '.join(missing)}")
    try:
        dimension = int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"MEMSTREAM_EMBEDDER=fastembed:{folder}: config.json names no hidden_size") from error
    registered_as = f"folder/{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
    if registered_as not in {model["model"] for model in TextEmbedding.list_supported_models()}:
        TextEmbedding.add_custom_model(
            model=registered_as,
            pooling=PoolingType.CLS if _pools_first_token(folder) else PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=registered_as),  # never asked: the folder is given when it is loaded
            dim=dimension,
            model_file=model_file,
        )
    return _Source(registered_as=registered_as, dimension=dimension, folder=folder)


def _pools_first_token(folder: Path) -> bool:
    """As sentence-transformers writes it down; without a word, mean pooling, which most such models use."""
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(pooling, dict) and pooling.get("pooling_mode_cls_token") is True


def _load(source: _Source) -> TextEmbedding:
    TextEmbedding = _library()
    if source.folder is not None:
        return TextEmbedding(model_name=source.registered_as, specific_model_path=str(source.folder))
    try:
        return TextEmbedding(model_name=source.registered_as)
    except (OSError, ValueError) as error:  # fastembed's last word after all its sources have failed
        raise Transient(
            "embedder",
            f"the model {source.registered_as} could not be downloaded: {error}",
            remedy="check the connection, or fetch the model elsewhere and set MEMSTREAM_EMBEDDER=fastembed:<folder>",
        ) from error


def _library() -> type[TextEmbedding]:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise ValueError(_INSTALL) from error
    library: type[TextEmbedding] = TextEmbedding
    return library


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector))
    if not math.isfinite(length) or length == 0.0:
        raise Fatal("the embedding model gave a vector without a direction; its files may be damaged")
    return [x / length for x in vector]
