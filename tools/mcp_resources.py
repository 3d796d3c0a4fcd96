"""The resources of an MCP connection: facts, blocks and digest of the connection's user, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from ..recall.record_filters import RecordSelection
from ..recall.record_reader import RecordReader
from .mcp_server import MemoryResource
from .tool_port import ToolIdentity

FACTS_MAX: Final = 200
"""Maximum facts in the resource, the newest first."""
FIELDS: Final = frozenset(
    (
        "fact_id",
        "subject",
        "content",
        "category",
        "confidence",
        "trust",
        "valid_from",
        "valid_to",
        "recorded_at",
        "tags",
    )
)


BLOCK_FIELDS: Final = {"name", "value", "limit", "description"}


@dataclass(frozen=True, slots=True)
class UserResources:
    """The resources of one user."""

    reader: RecordReader

    def all(self) -> tuple[MemoryResource, ...]:
        return (
            MemoryResource(
                "facts",
                "Facts",
                f"What memory believes about the user: the newest {FACTS_MAX} facts, as JSON.",
                "application/json",
                self._facts,
            ),
            MemoryResource(
                "blocks",
                "Blocks",
                "The user's blocks, and what the session holds, as JSON.",
                "application/json",
                self._blocks,
            ),
            MemoryResource("digest", "Digest", "A summary of what memory knows.", "text/plain", self._digest),
        )

    async def _facts(self, identity: ToolIdentity) -> str:
        selection = RecordSelection(tenant_id=identity.tenant_id, owner=identity.user, ceiling=identity.ceiling)
        page = await self.reader.facts(selection, limit=FACTS_MAX)
        return json.dumps(
            [fact.model_dump(mode="json", include=set(FIELDS)) for fact in page.items], ensure_ascii=False
        )

    async def _blocks(self, identity: ToolIdentity) -> str:
        tenant_id, ceiling = identity.tenant_id, identity.ceiling
        selection = RecordSelection(tenant_id=tenant_id, owner=identity.user, ceiling=ceiling)
        owned = (await self.reader.blocks(selection)).items
        held = None
        if identity.session_id is not None:
            held = await self.reader.holdings(tenant_id, identity.user_id, identity.session_id, ceiling=ceiling)
        blocks = {
            "user": [block.model_dump(mode="json", include=BLOCK_FIELDS) for block in owned],
            "session": []
            if held is None
            else [block.model_dump(mode="json", include=BLOCK_FIELDS) for block in held.blocks],
        }
        return json.dumps(blocks, ensure_ascii=False)

    async def _digest(self, identity: ToolIdentity) -> str:
        digest = await self.reader.digest(identity.tenant_id, identity.user, ceiling=identity.ceiling)
        return "" if digest is None else digest.text
