"""The policy of a tenant: records of memory.policies."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, JsonValue

from .base import Contract

POLICY_MAX_BYTES: Final = 256 * 1024
Section = Annotated[dict[str, JsonValue], Field(max_length=1_000, default_factory=dict)]
"""Settings by their names; each means what it means in the file's `[memory]`."""


class TenantPolicy(Contract):
    """What differs from the deployment's policy. What is not named holds as the deployment has it. Unknown names are
    refused."""

    working: Section
    blocks: Section
    capture: Section
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
    personas: Section
    """By `agent_id` the persona: six traits, 0–1."""
