"""`memstream export`: every record of an owner or a tenant in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from ...recall.export.exporter import MemoryExporter
from ...recall.export.request import ExportCursor, ExportRequest
from ...schemas.archive import ArchivedText
from ...schemas.cloudevents import rfc3339
from ...schemas.export import FileFormat, NotesFormat, RecordKind
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console, export_file, export_progress
from ..output.export_file import ExportFile
from ..output.part_file import check_target
from ..wiring.ports import NoUsage, new_embedder, open_ports
from ..wiring.settings import Settings


@click.command()
@options.owner_options
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(FileFormat)),
    default="ndjson",
    show_default=True,
    help="One record per line, one JSON list, a SQLite database, or a folder of notes.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="The file or folder to write. It must not exist.",
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
    form: FileFormat,
    out: Path,
    embeddings: bool,
    no_conversations: bool,
) -> None:
    """Export every record of an owner, or of all owners of the tenant, as of one moment.

    If the command is stopped, run it again with the same options: it continues PATH.part.
    """
    if embeddings and form in get_args(NotesFormat):
        raise usage("notes have no vectors: leave out --embeddings, or export as ndjson, json or sqlite")
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
    check_target(out)
    done = run(_export(context.settings, request, form, out))
    console.say(f"exported {_listed(done.counts)} to {out}, as of {rfc3339(done.at)}")


async def _export(settings: Settings, request: ExportRequest, form: FileFormat, out: Path) -> ExportCursor:
    selection = f"{form} {request.digest()}"
    embedder = await _embedder_name(settings) if request.embeddings else ""
    async with open_ports(settings, purpose="export") as ports:
        exporter = MemoryExporter(store=ports.store, log=ports.log, embedder=embedder, may_show=_always, now=_now)
        totals = await exporter.totals(request)
        with export_file.opened(out, form, selection=selection) as file, _advising(file):
            cursor = await _pages(exporter, request, file, totals)
            file.finish(exporter.end(cursor))
        return cursor


async def _pages(
    exporter: MemoryExporter, request: ExportRequest, file: ExportFile, totals: Mapping[RecordKind, int]
) -> ExportCursor:
    """Write all pages, and return the last cursor."""
    cursor = await _begun(exporter, request, file)
    with export_progress.shown(totals) as show:
        async with aclosing(exporter.pages(request, cursor)) as pages:
            async for page in pages:
                kind, cursor = cursor.kind, page.cursor
                file.write(page.lines, cursor.token(request))
                if kind is not None:
                    show(kind, cursor)
    return cursor


@contextmanager
def _advising(file: ExportFile) -> Iterator[None]:
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


async def _begun(exporter: MemoryExporter, request: ExportRequest, file: ExportFile) -> ExportCursor:
    """Return the cursor of an earlier, interrupted run, or begin a new export."""
    if file.cursor is None:
        cursor = await exporter.begin(request)
        file.begin(exporter.header(request, cursor), cursor.token(request))
        return cursor
    try:
        cursor = ExportCursor.read(file.cursor, request)
    except ValueError:
        raise usage(f"the cursor of {file.part} is damaged: delete {file.part}*, and export again") from None
    console.advice(f"continues {file.part} after {sum(cursor.counts.values())} records, as of {rfc3339(cursor.at)}")
    return cursor


def _listed(counts: Mapping[RecordKind, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no records"


async def _always(row: ArchivedText) -> bool:
    return True


def _now() -> datetime:
    return datetime.now(UTC)
