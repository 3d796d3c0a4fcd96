"""Procedures: instructions that the deep phase of consolidation found in episodes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Instant, ModelName, OurId
from .observations import PromptName
from .turns import Owner, Sensitivity

STEPS_MAX = 20
ProcedureName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
ProcedureText = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class Procedure(Contract):
    """A procedure of an owner. A new one of the same name replaces it."""

    procedure_id: OurId
    tenant_id: GivenId
    owner: Owner
    name: ProcedureName
    trigger: ProcedureText
    """When it applies."""
    steps: Annotated[tuple[ProcedureText, ...], Field(min_length=1, max_length=STEPS_MAX)]
    at: Instant
    sensitivity: Sensitivity = "internal"
    model: ModelName | None = None
    prompt: PromptName | None = None
    run_id: OurId | None = None


class StoredProcedure(Procedure):
    """A procedure as Qdrant stores it."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]

    def public(self) -> Procedure:
        return Procedure.from_payload(self.to_payload())
