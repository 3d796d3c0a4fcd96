"""`POST /v1/import`: restore records of an export, in parts that fit into a request."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from ..client.import_file import ImportRefused, ImportSource
from ..client.import_formats import GivenFormat, format_of
from ..schemas.facts import Trust
from ..schemas.imports import ImportFault, ImportReport
from ..tools.importing.importer import MemoryImporter
from ..tools.importing.lines import ImportLine, ImportPlan
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .owner_params import Whose
from .problems import invalid_field
from .request_body import read_body
from .shares import SharedPool, party_of

LINES_MAX: Final = 200
"""Lines of one request, besides the header."""
PATIENCE: Final = 20.0
"""Seconds that a request waits for the result of each command."""
NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"


class ImportQuery(Whose):
    """Target of an import, and its options."""

    format: Annotated[GivenFormat, Field(description="Format of the body; auto reads it from the body.")] = "auto"
    file: Annotated[str, Field(max_length=255, description="Name of the file, for the errors of the answer.")] = "body"
    first_line: Annotated[
        int, Field(ge=2, le=2**53, description="Number of the first line after the header, for the errors.")
    ] = 2
    dedup: Annotated[
        bool, Field(description="False: restore facts and episodes whose text memory has under another id, too.")
    ] = True
    trust: Annotated[Trust, Field(description="Trust of the statements of another memory.")] = "tool"
    dry_run: Annotated[bool, Field(description="Check the lines, and write nothing.")] = False


def router(*, importer: MemoryImporter, places: SharedPool, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["import"])
    admin = Depends(caller_with(credentials, "memory:admin"))
    text: dict[str, Any] = {"schema": {"type": "string"}}

    @routes.post(
        "/v1/import",
        summary="Import memory",
        response_model=ImportReport,
        openapi_extra={
            "requestBody": {"required": True, "content": {NDJSON: text, "application/json": text, CSV: text}},
        },
    )
    async def take(request: Request, query: Annotated[ImportQuery, Query()], caller: Caller = admin) -> ImportReport:
        """The body is an export: its header, and at most 200 further lines or list items. Send a longer export in
        parts, each with the header. A part that is sent again has no second effect. The owner may differ from the
        owner of the export; a record then gets a new id. Or the body is the file of another memory (`format`), and the
        request names the owner."""
        body = await read_body(request, limit=limits.body, also=(NDJSON, CSV))
        plan, lines, faults = _read(body, query, caller)
        async with places.place(party_of(caller, plan.target.tenant_id)):
            report = await importer.page(plan, lines, caller=caller.name, patience=PATIENCE)
        return ImportReport(errors=tuple(faults)).plus(report)

    return routes


def _read(body: bytes, query: ImportQuery, caller: Caller) -> tuple[ImportPlan, list[ImportLine], list[ImportFault]]:
    """Read the body and check its target against the credential. Raises Problem."""
    source = ImportSource("the body", io.BytesIO(body))
    try:
        form = format_of(source, query.format)
        tenant_id = query.tenant_of(caller) if query.tenant_id or query.tenant or caller.tenants else None
        owner = query.owner_or_all(caller)
        header = form.header(source, tenant_id=tenant_id, owner=owner)
        read = form.read(replace(source, name=query.file), 0, 0)
        rest = list(read if form.foreign else islice(read, 1, None))
    except ImportRefused as error:
        raise invalid_field("body", str(error)) from None
    if len(rest) > LINES_MAX:
        raise invalid_field("body", f"has {len(rest)} lines after the header; at most {LINES_MAX} are taken")
    try:
        plan = ImportPlan.of(
            query.file,
            header,
            tenant_id=tenant_id,
            owner=owner,
            dedup=query.dedup,
            dry_run=query.dry_run,
            trust=query.trust,
        )
    except ValueError as error:
        raise invalid_field("body", str(error)) from None
    caller.tenant(plan.target.tenant_id)
    if plan.target.owner is None and caller.users is not None:
        raise invalid_field("user_id", "is required, because the token may change the memory of its users only")
    if plan.target.owner is not None:
        caller.check_owner(plan.target.owner)
    moved = 0 if form.foreign else query.first_line - 2
    lines = [ImportLine(each.number + moved, each.text) for each in rest if not isinstance(each, ImportFault)]
    faults = [each.model_copy(update={"line": each.line + moved}) for each in rest if isinstance(each, ImportFault)]
    return plan, lines, faults
