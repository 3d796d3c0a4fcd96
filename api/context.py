"""`POST /v1/context`: memory for a prompt, as framed text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from ..memory.recall.context import Section
from ..recall.context import (
    PRESETS,
    TOKENS_DEFAULT,
    TOKENS_MAX,
    ContextRequest,
    ContextService,
    Preset,
    Switch,
    recalled_switches,
    switches_with_slots,
)
from ..recall.profile import ProfileReader
from ..recall.record_conditions import CONDITIONS_MAX
from ..recall.record_reader import RecordReader
from ..schemas.said_at import zone_named
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .metadata_query import MetadataQuery, with_metadata
from .openapi import body_of
from .owner_params import SessionHeader, bounded
from .problems import MissingPart, invalid_field, missing_parts, silent
from .recall import About, MemoryQuery, Slots, checked, selected
from .request_body import decode_model, read_body


class ContextQuery(MemoryQuery):
    """Query for a context: its owner, session and cue, and the parts of memory to include."""

    time_zone: Annotated[
        str,
        Field(
            max_length=64, description="The user's time zone as an IANA name: Europe/Lisbon. Dates are in this zone."
        ),
    ] = "UTC"
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] = TOKENS_DEFAULT
    preset: Preset = "default"
    sections: Annotated[
        tuple[Switch, ...] | None,
        Field(max_length=len(get_args(Switch)), description="Sections to include instead of the preset."),
    ] = None
    slot: Slots = ()
    metadata: MetadataQuery = Field(default_factory=dict, max_length=CONDITIONS_MAX)

    def request(self, about: About, *, profiles: ProfileReader) -> ContextRequest:
        slots = selected(about.tenant_id, self.slot, profiles)
        switches = PRESETS[self.preset] if self.sections is None else frozenset(self.sections)
        try:
            switches = switches_with_slots(switches, slots)
        except ValueError as error:
            raise invalid_field("slot", str(error)) from None
        conditions = self.conditions(with_metadata(self.metadata))
        if conditions or self.subject is not None or self.category is not None:
            try:
                switches = recalled_switches(switches)
            except ValueError as error:
                raise invalid_field("sections", str(error)) from None
        try:
            zone_named(self.time_zone)
        except ValueError as error:
            raise invalid_field("time_zone", str(error)) from None
        return bounded(
            lambda: ContextRequest(
                tenant_id=about.tenant_id,
                owner=about.owner,
                session=about.session,
                groups=self.groups,
                cue=self.cue,
                max_tokens=self.max_tokens,
                switches=switches,
                by_preset=self.sections is None,
                time_zone=self.time_zone,
                ceiling=self.ceiling,
                as_of=self.as_of,
                known_at=self.known_at,
                min_score=self.min_score,
                subject=self.subject,
                category=self.category,
                conditions=conditions,
                slots=slots,
                asked_by=about.asked_by,
            )
        )


class ContextAnswer(BaseModel):
    """A context for a prompt. Put `text` into the system prompt unchanged: it frames memory as data. It is empty if
    nothing is shown."""

    model_config = ConfigDict(extra="forbid")

    text: str
    tokens: int
    """Estimated number of tokens. The model's tokenizer may count differently."""
    shown: dict[Section, list[str]]
    """Ids of the shown records by section, in the order of the text."""
    tools: list[Literal["recall"]]
    missing: list[MissingPart]


def router(
    *,
    contexts: ContextService,
    profiles: ProfileReader,
    memberships: RecordReader,
    credentials: Credentials,
    limits: Limits,
    now: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(tags=["recall"])
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.post("/v1/context", summary="A context for a prompt", openapi_extra=body_of(ContextQuery))
    async def context(request: Request, session: SessionHeader = None, caller: Caller = reader) -> ContextAnswer:
        """Render blocks, profile, digest, facts, focus, episodes and messages within a number of tokens."""
        query = decode_model(ContextQuery, await read_body(request, limit=limits.body))
        about = await checked(query, caller, session, memberships)
        made = await contexts.context(query.request(about, profiles=profiles), now=now())
        missing = missing_parts(made.missing)
        if made.silent:
            raise silent(missing, retry_after=limits.retry_seconds)
        return ContextAnswer(
            text=made.text,
            tokens=made.tokens,
            shown={section: list(ids) for section, ids in made.shown.items()},
            tools=list(made.tools),
            missing=missing,
        )

    return routes
