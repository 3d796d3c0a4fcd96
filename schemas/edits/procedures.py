"""Edits of procedures. Consolidation defines and removes procedures; the observer activates them in a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import Contract, OurId, Reason
from ..facts import Trust
from ..procedures import STEPS_MAX, ProcedureText
from ..turns import Owner, Sensitivity
from .common import Name, NotBlank


class ProcedureDefine(Contract):
    """`args` of procedures.define. An existing procedure of this name gets a new version; the older versions are
    kept."""

    name: Name
    trigger: Annotated[ProcedureText, NotBlank]
    """The situation in which the procedure applies."""
    steps: Annotated[tuple[Annotated[ProcedureText, NotBlank], ...], Field(min_length=1, max_length=STEPS_MAX)]
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    """`user` for a person's own edit, `assistant` for a tool call of an agent."""
    reason: Reason = ""


class ProcedureRemove(Contract):
    """`args` of procedures.remove. Its versions are kept."""

    name: Name
    reason: Reason = ""


class ProcedureActivate(Contract):
    """`args` of procedures.activate and procedures.deactivate, on a session: an active procedure is in the session's
    context until it is deactivated."""

    name: Name
    owner: Owner


class ProcedureChanged(Contract):
    """Result of procedures.define and procedures.remove. `version` is 0 when there was no procedure of this name."""

    procedure_id: OurId
    name: Name
    version: Annotated[int, Field(ge=0)]
    changed: bool


class ProcedureActivated(Contract):
    """Result of procedures.activate and procedures.deactivate."""

    name: Name
    owner: Owner
    active: bool
