"""Builders of facts that several users of a tenant share."""

from __future__ import annotations

from typing import Any

from memstream.memory.policies import SharingPolicy
from memstream.schemas import ids
from memstream.schemas.facts import StoredFact
from memstream.schemas.turns import Owner

from .record_builders import stored_fact

POLICY = SharingPolicy(group="team", users=3)
GROUP = Owner(scope="group", id="team")
OFFICE = "Office is in Vienna"


def known_by(user: str, content: str = OFFICE, *, tenant: str = "acme", **changes: Any) -> StoredFact:
    """Return a fact of this user that a group may share by default, from a session of the user's own."""
    fact = stored_fact(content, subject=changes.pop("subject", "fixpoint-labs"), category="knowledge")
    owner = changes.pop("owner", Owner(scope="user", id=user))
    said = fact.evidence[0].model_copy(update={"session_id": f"session of {user}", "quote": f"{user} says so"})
    return fact.model_copy(
        update={
            "fact_id": ids.fact_id(owner.key(tenant), f"{user}/{content}"),
            "tenant_id": tenant,
            "owner": owner,
            "owner_key": owner.key(tenant),
            "sensitivity": "public",
            "evidence": (said,),
        }
        | changes
    )
