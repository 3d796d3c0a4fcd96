"""Answers of recall: items, with the parts of each score. Also reports of these answers, on memory.recalled."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Hash, Instant, IssuedBy, OurId, Subject, Unit
from .observations import Category
from .turns import TURN_MAX_BYTES, Owner

Tier = Literal["semantic", "working", "episodic", "turns"]
TIERS: tuple[Tier, ...] = ("semantic", "working", "episodic", "turns")
"""Tiers in order of precedence: a tier wins over duplicates in the later tiers."""


class RecalledItem(Contract):
    """One item of an answer. A message of the tier `turns` has no subject and no category."""

    tier: Tier
    id: OurId
    content: Annotated[str, StringConstraints(max_length=TURN_MAX_BYTES)]
    score: Unit
    """Sum of the parts, divided by the greatest sum that is possible in the read."""
    subject: Subject | None
    category: Category | None
    parts: dict[str, float]


RECALLED_MAX = 100
"""Maximum number of items of an answer."""


class RecalledRef(Contract):
    """One item of an answer, without its text. `rank` counts from 0, best first."""

    tier: Tier
    id: OurId
    rank: Annotated[int, Field(ge=0, lt=RECALLED_MAX)]


RecallReportKind = Literal["recalled", "rehydrated"]
"""Kind of the reported answer: an answer of recall, or the archived text of one episode."""


class RecallReport(Contract):
    """Report of one answer, for an owner whose memory was read. An answer from the memory of several owners (a user and
    shared groups) has a report for each owner. The report does not contain the cue, only the SHA-256 of its canonical
    text (null without a cue). A report that is sent twice has the same `recall_id`."""

    recall_id: OurId
    tenant_id: GivenId
    owner: Owner
    at: Instant
    cue_hash: Hash | None = None
    items: Annotated[tuple[RecalledRef, ...], Field(min_length=1, max_length=RECALLED_MAX)]
    kind: RecallReportKind = "recalled"
    asked_by: IssuedBy = ""
    """The caller: the name of a token, `oidc:<subject>`, or `anyone` without tokens. Empty when unknown, and in reports
    of earlier versions."""
