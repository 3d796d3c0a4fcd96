"""Which embedder MEMSTREAM_EMBEDDER means."""

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
    """`hashing` (also for no name), `fastembed:<name or folder>`, `openai:<model>`; a ValueError says what is wrong.

    Nothing is connected or loaded here.
    """
    kind, _, rest = (name or DEFAULT_EMBEDDER).strip().partition(":")
    if kind == "hashing" and not rest:
        return HashingEmbedder()
    if kind == "fastembed" and rest:
        from .fastembed import FastEmbedder  # only who uses it pays for its imports

        return FastEmbedder(rest)
    if kind == "openai" and rest:
        if not (api_key or base_url):
            raise ValueError(
                f"MEMSTREAM_EMBEDDER={name} needs OPENAI_API_KEY (or OPENAI_BASE_URL of a server of yours)"
            )
        from .openai import OpenAIEmbedder

        return OpenAIEmbedder(model=rest, api_key=api_key, base_url=base_url, timeout=timeout, sink=sink)
    raise ValueError(
        f"MEMSTREAM_EMBEDDER={name}: unknown; it is hashing, fastembed:<name or folder> or openai:<model>, "
        "for instance openai:text-embedding-3-small"
    )
