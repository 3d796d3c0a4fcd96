"""`memstream export`: every record of an owner or a tenant in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from ...recall.export.encoding import closing, further, opening
from ...recall.export.exporter import MemoryExporter
from ...recall.export.request import ExportCursor, ExportRequest
from ...schemas.archive import ArchivedText
from ...schemas.cloudevents import rfc3339
from ...schemas.export import ExportFormat, RecordKind
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console, export_progress
from ..output.part_file import PartFile
from ..wiring.ports import NoUsage, new_embedder, open_ports
from ..wiring.settings import Settings


@click.command()
@options.owner_options
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(ExportFormat)),
    default="ndjson",
    show_default=True,
    help="One record per line, or the same lines as one JSON list.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file to write. It must not exist.",
)
@click.option("--embeddings", is_flag=True, help="Also export the vectors of facts, episodes and messages.")
@click.option("--no-conversations", is_flag=True, help="Leave out the turns of the session log.")
@pass_context
def export(
    context: CommandContext,
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    form: ExportFormat,
    out: Path,
    embeddings: bool,
    no_conversations: bool,
) -> None:
    """Export every record of an owner, or of all owners of the tenant, as of one moment.

    If the command is stopped, run it again with the same options: it continues PATH.part.
    """
    request = ExportRequest(
        tenant,
        owner=options.owner_of(user=user, scope=scope, owner_id=owner_id),
        ceiling="secret",
        embeddings=embeddings,
        conversations=not no_conversations,
        removed=True,
    )
    if not out.parent.is_dir():
        raise usage(f"the folder {out.parent} does not exist")
    done = run(_export(context.settings, request, form, out))
    console.say(f"exported {_listed(done.counts)} to {out}, as of {rfc3339(done.at)}")


async def _export(settings: Settings, request: ExportRequest, form: ExportFormat, out: Path) -> ExportCursor:
    selection = f"{form} {request.digest()}"
    embedder = await _embedder_name(settings) if request.embeddings else ""
    async with open_ports(settings, purpose="export") as ports:
        exporter = MemoryExporter(store=ports.store, log=ports.log, embedder=embedder, may_show=_always, now=_now)
        totals = await exporter.totals(request)
        with PartFile.opened(out, selection=selection) as file, _advising(file), export_progress.shown(totals) as show:
            cursor = await _begun(exporter, request, form, file)
            async with aclosing(exporter.pages(request, cursor)) as pages:
                async for page in pages:
                    kind, cursor = cursor.kind, page.cursor
                    file.write(further(form, page.lines), cursor.token(request))
                    if kind is not None:
                        show(kind, cursor)
            file.finish(closing(form, exporter.end(cursor)))
        return cursor


@contextmanager
def _advising(file: PartFile) -> Iterator[None]:
    """Say how to continue if the export ends early."""
    try:
        yield
    except BaseException:
        if file.is_kept:
            console.advice(f"{file.part} is kept: run the same command again to continue it")
        raise


async def _embedder_name(settings: Settings) -> str:
    """Return the name under which the collections know the embedder. It may differ from the setting, which may name a
    folder."""
    embedder = new_embedder(settings, sink=NoUsage())
    await embedder.close()
    return embedder.identity.name


async def _begun(exporter: MemoryExporter, request: ExportRequest, form: ExportFormat, file: PartFile) -> ExportCursor:
    """Return the cursor of an earlier, interrupted run, or begin a new export."""
    if file.cursor is None:
        cursor = await exporter.begin(request)
        file.write(opening(form, exporter.header(request, cursor)), cursor.token(request))
        return cursor
    try:
        cursor = ExportCursor.read(file.cursor, request)
    except ValueError:
        raise usage(f"{file.state} is damaged: delete it and {file.part}, and export again") from None
    console.advice(f"continues {file.part} after {sum(cursor.counts.values())} records, as of {rfc3339(cursor.at)}")
    return cursor


def _listed(counts: Mapping[RecordKind, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no records"


async def _always(row: ArchivedText) -> bool:
    return True


def _now() -> datetime:
    return datetime.now(UTC)
