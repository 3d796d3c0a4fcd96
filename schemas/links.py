"""Links between the records of an owner, for readers: one point per owner. Consolidation writes this point."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from .base import Contract, GivenId, OurId

PACKED_MAX = 250_000
"""Maximum length of `packed`: 4 096 links of 44 bytes, in base64."""


class StoredLinks(Contract):
    """Links as Qdrant stores them: ids and weights, no text. memory/recall/links.py unpacks `packed`."""

    links_id: OurId
    tenant_id: GivenId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    packed: Annotated[str, StringConstraints(max_length=PACKED_MAX)]
