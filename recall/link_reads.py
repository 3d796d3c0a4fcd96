"""Links of what those whose memory is read recalled together: of each one point, all in one look."""

from __future__ import annotations

from ..adapters.ports import VectorStore
from ..memory.policies import RecallPolicy
from ..memory.recall.links import Links
from ..schemas.collections import LINKS
from ..schemas.ids import links_id
from ..schemas.links import StoredLinks
from .deadline import LINKS as PART
from .deadline import DeadlineReads
from .request import RecallRequest


def lifts(request: RecallRequest, policy: RecallPolicy) -> bool:
    """Whether links can lift anything. Without a cue nothing is called up. And they have no past: what was recalled
    since was not known then."""
    return policy.links > 0 and request.asked is not None and request.known_at is None


async def linked(*, store: VectorStore, request: RecallRequest, parts: DeadlineReads) -> tuple[Links, ...]:
    """None, and `links` among the missing parts, when the store does not answer."""
    named = [links_id(owner_key) for owner_key in request.owner_keys]
    found = await parts.ask(PART, lambda: store.get(LINKS, tenant_id=request.tenant_id, ids=named))
    return tuple(Links(packed=StoredLinks.from_payload(each.payload).packed) for each in (found or {}).values())
