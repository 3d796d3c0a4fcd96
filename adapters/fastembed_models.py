"""Models that fastembed loads (ONNX): one of its own by name, downloaded once, or one in a folder.

The embedder and the reranker on this machine both load their model here.
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
    """What is loaded. fastembed knows a model in a folder under the name `registered_as`."""

    registered_as: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A class of fastembed, `TextEmbedding` or `TextCrossEncoder`, and the words that error messages use for its
    models.

    In the methods, `setting` is the setting with its value, as the user wrote it.
    """

    library: Any
    component: str
    """The component of `Transient` errors."""
    noun: str
    examples: str
    """Names that a user may copy."""
    folder_setting: str
    """How to set a folder, for the remedy of a failed download."""
    model_files: tuple[str, ...]
    """Where a folder may have its model, the preferred place first."""

    def by_name(self, name: str, *, setting: str) -> Mapping[str, Any]:
        """Return fastembed's description of its model `name`. ValueError: it has no such model."""
        for model in self.library.list_supported_models():
            if model["model"].lower() == name.lower():
                described: Mapping[str, Any] = model
                return described
        raise ValueError(
            f"{setting}: neither a folder nor a {self.noun} that fastembed knows; for instance {self.examples}"
        )

    def model_file(self, folder: Path, *, setting: str) -> str:
        """Return the path of the model within the folder. ValueError: the folder lacks a file that a model needs."""
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
                sources=DownloadSource(hf=name),  # required, but never used: the folder is given when it is loaded
                model_file=model_file,
                **options,
            )
        return ModelSource(registered_as=name, folder=folder)

    def load(self, source: ModelSource, *, threads: int | None = None) -> Any:
        """Load the model, and download it first if need be. It runs on so many threads; None: on all cores.
        `Transient`: the download failed."""
        options: dict[str, Any] = {"model_name": source.registered_as, "threads": threads}
        if source.folder is not None:
            return self.library(**options, specific_model_path=str(source.folder))
        try:
            return self.library(**options)
        except (OSError, ValueError) as error:  # fastembed raises these after all its download sources have failed
            raise Transient(
                self.component,
                f"the {self.noun} {source.registered_as} could not be downloaded: {error}",
                remedy=f"check the connection, or fetch the model elsewhere and set {self.folder_setting}",
            ) from error


def model_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors which say that a model cannot be loaded or run: its files are damaged, or of another kind;
    and `more`. onnxruntime's errors have no base class of their own."""
    runtime = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    its = (each for each in runtime.values() if isinstance(each, type) and issubclass(each, Exception))
    return (OSError, ValueError, *more, *its)


def require_fastembed(needed_by: str) -> None:
    """Raise ValueError with the command that installs fastembed when it is missing."""
    try:
        import fastembed  # noqa: F401
    except ImportError as error:
        raise ValueError(f"{needed_by} needs an optional package: pip install 'memstream[fastembed]'") from error
