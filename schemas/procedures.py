"""Procedures: steps for a recurring situation, found by the deep phase of consolidation or defined by hand."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import CommandId, Contract, GivenId, Instant, ModelName, OurId, Reason
from .facts import Trust
from .observations import PromptName
from .turns import Owner, Sensitivity

STEPS_MAX = 20
SOURCES_MAX = 100
"""Maximum number of episodes that a procedure names as its source."""
PROCEDURES_MAX = 100
"""Maximum number of an owner's procedures that people and agents may define."""
VERSIONS_KEPT = 10
"""Maximum number of earlier versions of a procedure."""
ProcedureName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
ProcedureText = Annotated[str, StringConstraints(min_length=1, max_length=500)]
SourceEpisodes = Annotated[tuple[OurId, ...], Field(max_length=SOURCES_MAX)]


class ProcedureVersion(Contract):
    """An earlier version of a procedure."""

    version: Annotated[int, Field(ge=1)]
    trigger: ProcedureText
    steps: Annotated[tuple[ProcedureText, ...], Field(min_length=1, max_length=STEPS_MAX)]
    at: Instant
    source_episode_ids: SourceEpisodes = ()


class Procedure(Contract):
    """A procedure of an owner. A new procedure of the same name becomes its next version."""

    procedure_id: OurId
    tenant_id: GivenId
    owner: Owner
    name: ProcedureName
    trigger: ProcedureText
    """The situation in which the procedure applies."""
    steps: Annotated[tuple[ProcedureText, ...], Field(min_length=1, max_length=STEPS_MAX)]
    at: Instant
    sensitivity: Sensitivity = "internal"
    model: ModelName | None = None
    prompt: PromptName | None = None
    run_id: OurId | None = None
    version: Annotated[int, Field(ge=1)] = 1
    command_id: CommandId | None = None
    """The command of the last edit by hand."""
    trust: Trust | None = None
    """`user`: a person defined this version, so it may contain instructions to the assistant. Null: an agent,
    consolidation or an earlier version of memstream wrote it."""
    reason: Reason = ""
    removed_at: Instant | None = None
    """Time of removal. A removed procedure is returned only by the read of its versions."""
    earlier: Annotated[tuple[ProcedureVersion, ...], Field(max_length=VERSIONS_KEPT)] = ()
    """Earlier versions, oldest first."""
    source_episode_ids: SourceEpisodes = ()
    """The episodes that contain the steps of this version. Empty: a person or an agent defined the version, or an
    earlier version of memstream found it."""


class StoredProcedure(Procedure):
    """A procedure as Qdrant stores it."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]

    def public(self) -> Procedure:
        return Procedure.from_payload(self.to_payload())


def earlier_versions(procedure: Procedure) -> tuple[ProcedureVersion, ...]:
    """Return the last versions, including the current version."""
    last = ProcedureVersion(
        version=procedure.version,
        trigger=procedure.trigger,
        steps=procedure.steps,
        at=procedure.at,
        source_episode_ids=procedure.source_episode_ids,
    )
    return (*procedure.earlier, last)[-VERSIONS_KEPT:]
