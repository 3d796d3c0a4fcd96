"""`memstream import`: restore the memory that `memstream export` wrote, or read the file of another memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import click

from ...client.import_file import FileLine, ImportRefused, ImportSource, located, opened_source
from ...client.import_formats import FORMAT_NAMES, GivenFormat, ImportFormat, format_of
from ...memory.erasures import ErasedUsers
from ...memory.policies import MemoryPolicy
from ...schemas.facts import Trust
from ...schemas.imports import ImportFault, ImportReport
from ...schemas.topics import STAGES
from ...schemas.turns import Owner
from ...streams.senders.commands import CommandSender
from ...tools.importing.importer import PAGE_LINES, MemoryImporter
from ...tools.importing.lines import ImportLine, ImportPlan, is_end, read_page
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import PATIENCE, Exit, usage
from ..output import console, import_progress
from ..output.import_state import ImportState
from ..process.account import account
from ..wiring.command_runs import start_audit, warn_without_worker
from ..wiring.local_stages import local_stages
from ..wiring.secret_detectors import new_secret_filter
from ..wiring.settings import Settings
from ..wiring.stages import utc_now

PAGE_BYTES = 4 * 1024 * 1024


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMAT_NAMES),
    default="auto",
    show_default=True,
    help="Format of the file; auto reads it from the file.",
)
@click.option("--tenant", type=options.GIVEN_ID, help="The tenant. [default: the tenant of the export]")
@click.option("--user", type=options.GIVEN_ID, help="The user. [default: the owner of the export]")
@click.option("--no-dedup", is_flag=True, help="Also restore facts and episodes whose text memory already has.")
@click.option(
    "--trust",
    type=click.Choice(get_args(Trust)),
    default="tool",
    show_default=True,
    help="Trust of the statements of another memory.",
)
@click.option("--dry-run", is_flag=True, help="Check the file, and write nothing.")
@pass_context
def import_memory(
    context: CommandContext,
    path: Path,
    form: GivenFormat,
    tenant: str | None,
    user: str | None,
    no_dedup: bool,
    trust: Trust,
    dry_run: bool,
) -> None:
    """Restore the memory of an export, or import the file of another memory.

    An export is restored with ids, versions and times, without a model. Conversations of another memory are observed;
    they need --tenant and --user.
    Vectors are computed again with the embedder of this deployment. Records that memory has are skipped. If the command
    is stopped, run it again: it continues. It prints the result as JSON, and exits 1 if a line was not imported.
    """
    owner = None if user is None else Owner(scope="user", id=user)
    try:
        with opened_source(path) as source:
            found = format_of(source, form)
            plan = ImportPlan.of(
                str(path),
                found.header(source, tenant_id=tenant, owner=owner),
                tenant_id=tenant,
                owner=owner,
                dedup=not no_dedup,
                dry_run=dry_run,
                trust=trust,
            )
            report = run(_import(context.settings, context.policy, plan, path, source, found))
    except ImportRefused as error:
        raise usage(str(error)) from None
    except ValueError as error:
        raise usage(f"{path}: {error}") from None
    console.line(report.to_payload())
    if report.errors:
        raise SystemExit(Exit.PARTLY)


async def _import(
    settings: Settings, policy: MemoryPolicy, plan: ImportPlan, path: Path, source: ImportSource, form: ImportFormat
) -> ImportReport:
    secrets = new_secret_filter(policy)
    if plan.dry_run:
        report = ImportReport()
        for page in _pages(source, form, end=0, line=0):
            done = read_page(plan, page.lines, secrets, ErasedUsers()).tally.report()
            report = report.plus(page.report(done))
        return report
    start_audit(settings)
    size = form.size(source)
    state = ImportState.of(path, plan.source, size)
    if state.line:
        console.advice(f"continues after line {state.line} of {path}")
    async with local_stages(settings, policy, purpose="import") as ports:
        for stage in STAGES:
            await warn_without_worker(stage, ports.log)
        importer = MemoryImporter(
            log=ports.log,
            store=ports.store,
            commands=CommandSender(ports.log, "import"),
            now=utc_now,
            secrets=secrets,
        )
        with import_progress.shown(size) as show:
            for page in _pages(source, form, end=state.end, line=state.line):
                done = await importer.page(plan, page.lines, caller=f"cli:{account()}", patience=PATIENCE)
                report = state.report.plus(page.report(done))
                state.note(end=page.end, line=page.line, report=report)
                show(page.end, report)
    state.finish()
    return state.report


@dataclass(slots=True)
class _Page:
    """Lines that are imported together. `end` and `line`: the offset and the number of the last line."""

    end: int
    line: int
    read: list[FileLine] = field(default_factory=list)
    errors: list[ImportFault] = field(default_factory=list)
    size: int = 0

    @property
    def full(self) -> bool:
        return len(self.read) >= PAGE_LINES or self.size >= PAGE_BYTES or len(self.errors) >= PAGE_LINES

    @property
    def lines(self) -> list[ImportLine]:
        return [ImportLine(each.number, each.text) for each in self.read]

    def report(self, done: ImportReport) -> ImportReport:
        """Return the result of the page, with the lines that could not be read."""
        return ImportReport(errors=tuple(self.errors)).plus(located(done, self.read))


def _pages(source: ImportSource, form: ImportFormat, *, end: int, line: int) -> Iterator[_Page]:
    """Yield the lines from an offset on, in pages of bounded size."""
    page = _Page(end, line)
    complete = False
    for each in form.read(source, end, line):
        if isinstance(each, ImportFault):
            page.errors.append(each)
        else:
            page.read.append(each)
            page.end, page.line, page.size = each.end, each.last, page.size + len(each.text)
            complete = is_end(each.text)
        if page.full:
            yield page
            page = _Page(page.end, page.line)
    if not complete:
        page.errors.append(
            ImportFault(
                file=source.name,
                line=page.line,
                what="the file has no line of the kind end, so the export is not complete",
                what_to_do="export again, and import the new file: records that memory has are skipped",
            )
        )
    yield page
