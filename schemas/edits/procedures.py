"""Edits of procedures. Consolidation defines and removes them; the observer keeps which are active in a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import Contract, OurId, Reason
from ..facts import Trust
from ..procedures import STEPS_MAX, ProcedureText
from ..turns import Owner, Sensitivity
from .common import Name


class ProcedureDefine(Contract):
    """`args` of procedures.define. A procedure of this name gets a new version; the older ones are kept."""

    name: Name
    trigger: ProcedureText
    """When it applies."""
    steps: Annotated[tuple[ProcedureText, ...], Field(min_length=1, max_length=STEPS_MAX)]
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    """A person's own edit is `user`, a tool call of an agent `assistant`."""
    reason: Reason = ""


class ProcedureRemove(Contract):
    """`args` of procedures.remove. Its versions are kept."""

    name: Name
    reason: Reason = ""


class ProcedureActivate(Contract):
    """`args` of procedures.activate and procedures.deactivate, on a session: the procedure stands in its context until
    it is deactivated."""

    name: Name
    owner: Owner


class ProcedureChanged(Contract):
    """Result of procedures.define and procedures.remove. `version` 0: there was none of this name."""

    procedure_id: OurId
    name: Name
    version: Annotated[int, Field(ge=0)]
    changed: bool


class ProcedureActivated(Contract):
    """Result of procedures.activate and procedures.deactivate."""

    name: Name
    owner: Owner
    active: bool
