"""Factory for the embedder that MEMSTREAM_EMBEDDER names."""

from __future__ import annotations

from ..ports import Embedder, UsageSink
from .hashing import HashingEmbedder

DEFAULT_EMBEDDER = "hashing"


def create_embedder(
    name: str | None,
    *,
    api_key: str | None,
    base_url: str | None,
    timeout: float,
    sink: UsageSink,
) -> Embedder:
    """Create an embedder: `hashing` (also the default), `fastembed:<name or folder>`, or `openai:<model>`. Raise
    ValueError when the setting is invalid.

    Nothing connects and no model is loaded here.
    """
    kind, _, rest = (name or DEFAULT_EMBEDDER).strip().partition(":")
    if kind == "hashing" and not rest:
        return HashingEmbedder()
    if kind == "fastembed" and rest:
        from .fastembed import FastEmbedder  # a lazy import: the library loads slowly

        return FastEmbedder(rest)
    if kind == "openai" and rest:
        if not (api_key or base_url):
            raise ValueError(f"MEMSTREAM_EMBEDDER={name} needs OPENAI_API_KEY (or OPENAI_BASE_URL of your own server)")
        from .openai import OpenAIEmbedder

        return OpenAIEmbedder(model=rest, api_key=api_key, base_url=base_url, timeout=timeout, sink=sink)
    raise ValueError(
        f"MEMSTREAM_EMBEDDER={name}: unknown; it is hashing, fastembed:<name or folder> or openai:<model>, "
        "for instance openai:text-embedding-3-small"
    )
