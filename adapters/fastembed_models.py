"""Models that fastembed (ONNX) loads: a model from its list, downloaded once, or a model in a local folder.

The local embedder and the local rerankers load their models here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from ..schemas.errors import Transient

TOKENIZER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model to load. `registered_as` is its name in fastembed. `folder` has its files; None: fastembed downloads
    them."""

    registered_as: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A model class of fastembed (`TextEmbedding`, `TextCrossEncoder`) with the words for its error messages.

    The argument `setting` of the methods is the setting with its value, as the user wrote it.
    """

    library: Any
    component: str
    """The component of `Transient` errors."""
    noun: str
    examples: str
    """Model names that the error message suggests."""
    folder_setting: str
    """How to set a folder, for the remedy of a failed download."""
    model_files: tuple[str, ...]
    """Possible paths of the model file in a folder, in order of preference."""

    def by_name(self, name: str, *, setting: str) -> Mapping[str, Any]:
        """Return fastembed's description of the model `name`. Raise ValueError when fastembed has no such model."""
        for model in self.library.list_supported_models():
            if model["model"].lower() == name.lower():
                described: Mapping[str, Any] = model
                return described
        raise ValueError(
            f"{setting}: neither a folder nor a {self.noun} that fastembed knows; for instance {self.examples}"
        )

    def model_file(self, folder: Path, *, setting: str) -> str:
        """Return the path of the model file within the folder. Raise ValueError when a required file is missing."""
        found = next((file for file in self.model_files if (folder / file).is_file()), None)
        missing = [file for file in TOKENIZER_FILES if not (folder / file).is_file()]
        if found is None or missing:
            lacks = [*(self.model_files[:1] if found is None else ()), *missing]
            raise ValueError(f"{setting}: the folder lacks {', '.join(lacks)}")
        return found

    def register(self, folder: Path, model_file: str, **options: Any) -> ModelSource:
        """Register the model in this folder with fastembed, which loads a folder only under a registered name."""
        from fastembed.common.model_description import ModelSource as DownloadSource

        name = f"folder/{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
        if name not in {model["model"] for model in self.library.list_supported_models()}:
            self.library.add_custom_model(
                model=name,
                sources=DownloadSource(hf=name),  # required but unused: `load` passes the folder
                model_file=model_file,
                **options,
            )
        return ModelSource(registered_as=name, folder=folder)

    def load(self, source: ModelSource, *, threads: int | None = None) -> Any:
        """Load the model; download it first when necessary. `threads` is the number of threads; None means all cores.
        Raise `Transient` when the download fails."""
        options: dict[str, Any] = {"model_name": source.registered_as, "threads": threads}
        if source.folder is not None:
            return self.library(**options, specific_model_path=str(source.folder))
        try:
            return self.library(**options)
        except (OSError, ValueError) as error:  # raised by fastembed after all its download sources have failed
            raise Transient(
                self.component,
                f"the {self.noun} {source.registered_as} could not be downloaded: {error}",
                remedy=f"check the connection, or fetch the model elsewhere and set {self.folder_setting}",
            ) from error


def model_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the error types of a model that cannot be loaded or run (damaged files, another model type), and the types
    in `more`.

    The result lists each error type of onnxruntime, because these types have no common base class.
    """
    runtime = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    its = (each for each in runtime.values() if isinstance(each, type) and issubclass(each, Exception))
    return (OSError, ValueError, *more, *its)


def require_fastembed(needed_by: str) -> None:
    """Raise ValueError with the install command when fastembed is missing."""
    try:
        import fastembed  # noqa: F401
    except ImportError as error:
        raise ValueError(f"{needed_by} needs an optional package: pip install 'memstream[fastembed]'") from error
