"""The links of an owner's records as readers see them: one point per owner, a projection of consolidation's row."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from .base import Contract, GivenId, OurId

PACKED_MAX = 250_000
"""4 096 links of 44 bytes, in base64."""


class StoredLinks(Contract):
    """Links as Qdrant stores them: ids and weights, no text. memory/recall/links.py reads `packed`."""

    links_id: OurId
    tenant_id: GivenId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    packed: Annotated[str, StringConstraints(max_length=PACKED_MAX)]
