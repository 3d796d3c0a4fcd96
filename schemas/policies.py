"""Policy of a tenant: records of memory.policies."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, JsonValue

from .base import Contract

POLICY_MAX_BYTES: Final = 256 * 1024
Section = Annotated[dict[str, JsonValue], Field(max_length=1_000, default_factory=dict)]
"""Settings by name, with the same meaning as in the file's `[memory]`."""


class TenantPolicy(Contract):
    """Settings that differ from the deployment's policy. The deployment's values apply to all other settings. Unknown
    names are refused."""

    working: Section
    blocks: Section
    capture: Section
    evidence: Section
    routing: Section
    confidence: Section
    conflict: Section
    consolidation: Section
    session_log: Section
    sharing: Section
    prune: Section
    digest: Section
    hygiene: Section
    gist: Section
    recall: Section
    tools: Section
    limits: Section
    slots: Section
    """Slots by name. A table changes the slot of this name, or adds a slot."""
    personas: Section
    """Personas by `agent_id`: six traits, 0–1."""
