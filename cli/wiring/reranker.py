"""Models of `[memory.recall]`: the reranker, and the model that selects answers of the tool `recall`."""

from __future__ import annotations

import importlib

from ...adapters.ports import Reranker, UsageSink
from ...memory.policies import MemoryPolicy
from ...recall.llm_reranker import LlmReranker
from ...schemas.tasks import names_in
from ..errors import usage
from .settings import OFFLINE, Settings


def new_reranker(settings: Settings, policy: MemoryPolicy, *, sink: UsageSink) -> Reranker | None:
    """Return the reranker, or None for Reciprocal Rank Fusion alone.

    It loads no model and opens no connection. Raises CommandFailed (exit 2) if a setting or a package is missing.
    """
    try:
        match policy.recall.reranker:
            case "rrf":
                return None
            case "late":
                from ...adapters.rerankers.late_interaction import LateInteraction  # slow to import

                return LateInteraction(policy.recall.late_encoder)
            case "cross-encoder":
                from ...adapters.rerankers.cross_encoder import CrossEncoder  # slow to import

                return CrossEncoder(policy.recall.cross_encoder)
            case "model":
                return _selector(settings, policy, sink, needed_by='memory.recall.reranker = "model"')
    except ValueError as error:
        raise usage(str(error)) from error


def new_selector(settings: Settings, policy: MemoryPolicy, *, sink: UsageSink) -> LlmReranker | None:
    """Return the model that selects answers of the tool `recall`, or None if the policy ranks them.

    It opens no connection. Raises CommandFailed (exit 2) if a setting is missing.
    """
    if policy.recall.tool.strategy == "ranked":
        return None
    try:
        return _selector(settings, policy, sink, needed_by='memory.recall.tool.strategy = "model"')
    except ValueError as error:
        raise usage(str(error)) from error


def _selector(settings: Settings, policy: MemoryPolicy, sink: UsageSink, *, needed_by: str) -> LlmReranker:
    from ...adapters.completions.factory import create_completions
    from .ports import secret

    if (names_in(policy.models.selection) or settings.model_names)[0] == OFFLINE:
        raise ValueError(f"{needed_by} needs a model: set OPENAI_API_KEY or MEMSTREAM_MODEL")
    importlib.import_module("openai")  # import now: the first read has too little time for this import
    return LlmReranker(
        completions=create_completions(
            model=settings.model or None,
            api_key=secret(settings.openai_api_key),
            base_url=settings.openai_base_url,
            timeout=settings.model_timeout,
            concurrency=settings.in_flight,
            sink=sink,
            models=policy.models.given,
            requests=settings.requests,
        )
    )
