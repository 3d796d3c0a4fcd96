"""`memstream doctor`: check everything that a worker needs, and suggest repairs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from ...adapters.addresses import without_credentials
from ...adapters.folder_lock import holder_of
from ...adapters.ports import EmbedderIdentity
from ...adapters.vectors.store import QdrantStore
from ...memory.policies import MemoryPolicy
from ...schemas.collections import COLLECTIONS
from ...schemas.errors import StageError
from ...schemas.topics import DEAD_LETTER_SUFFIX, STAGES, TURNS, StageName
from ...streams.engine.codec import tenant_of
from ...streams.engine.dead_letters import reason_of
from ...streams.engine.parking import REMEDY, read_parked_keys
from ...streams.engine.unread import REMEDY as REMEDY_UNREAD
from ...streams.engine.unread import read_unread
from ...streams.log import topic_admin
from ...streams.log.port import Log
from ...streams.log.stage_lag import stage_lag
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..output.tier_report import described
from ..wiring.broker import COMMAND_TIMEOUT, check_access, deployment, new_log
from ..wiring.checks import Check
from ..wiring.disk_room import needed_room, why_no_room
from ..wiring.model_checks import check_models
from ..wiring.model_trial import try_observer
from ..wiring.ports import NoUsage, new_embedder, new_store, reader_identity, tried_folders
from ..wiring.provider_check import check_provider
from ..wiring.settings import Settings
from ..wiring.token_file import check_tokens
from ..wiring.worker_check import check_worker

PARKED_SHOWN = 20
TENANTS_SHOWN = 5
CLOCK_OFF = 60.0
"""Largest accepted difference between this machine's clock and the broker's, in seconds."""
PASSED_OVER_SINCE = 86_400.0
"""Maximum age of the dead letters that `_passed_over` counts, in seconds."""
LETTERS_READ = 100_000
"""Maximum number of dead letters that `_passed_over` reads."""


@click.command()
@options.as_json
@pass_context
def doctor(context: CommandContext, as_json: bool) -> None:
    """Check settings, data directory, log, topics, Qdrant, embedder and every model, and suggest repairs.

    It makes one call to the observer's model. Exit 1 if a check fails.
    """
    try:
        settings = context.settings
    except CommandFailed as error:
        checks = [
            Check("settings", False, line, "correct it: docs/reference/settings.md") for line in str(error).splitlines()
        ]
    else:
        checks = run(_all(settings, context.policy))
    if as_json:
        for check in checks:
            console.line(asdict(check))
    else:
        rows = [(check.check, "ok" if check.ok else "FAILS", check.detail, check.fix) for check in checks]
        console.table(("check", "", "detail", "what to do"), rows, empty="", text="detail")
    if not all(check.ok for check in checks):
        raise SystemExit(Exit.PARTLY)


async def _all(settings: Settings, policy: MemoryPolicy) -> list[Check]:
    checks = [
        _python(),
        _settings(settings),
        Check("tiers", True, described(policy.tiers)),
        _datadir(settings),
        _disk(settings),
        *check_tokens(settings, datetime.now(UTC)),
        *await check_provider(settings),
    ]
    checks += [check async for check in _log_checks(settings)]
    checks += await check_worker(settings)
    embedder, identity = await _embedder(settings)
    models = await check_models(settings, policy.models.given)
    trial = await try_observer(settings, policy) if all(check.ok for check in models) else []
    return [*checks, await _qdrant(settings, identity), embedder, *models, *trial]


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check("python", True, version)


def _settings(settings: Settings) -> Check:
    keys = [name for name, value in (("OPENAI_API_KEY", settings.openai_api_key),) if value is not None]
    security = "" if settings.broker_folder is not None else f" ({settings.kafka_security.described()})"
    detail = (
        f"broker {settings.broker}{security}, Qdrant {without_credentials(settings.qdrant)}, "
        f"model {','.join(settings.model_names)}, embedder {settings.embedder}, tier {settings.tier}, "
        f"{', '.join(keys) or 'no key'}"
    )
    return Check("settings", True, detail)


def _datadir(settings: Settings) -> Check:
    problem = _unusable(settings.datadir)
    return Check("datadir", True, str(settings.datadir)) if problem is None else Check("datadir", False, *problem)


def _unusable(folder: Path | None) -> tuple[str, str] | None:
    """Return why this process cannot use a folder and how to repair it, or None if it can use the folder.

    `folder` is None when a server is used instead of a folder.
    """
    try:
        if folder is not None:
            check_access(folder)
    except OSError as error:
        return f"{error.filename} cannot be used: {error.strerror}", "set MEMSTREAM_DATADIR to a folder of this user"
    return None


def _disk(settings: Settings) -> Check:
    needed = needed_room(settings)
    short = why_no_room(needed)
    if short:
        return Check("disk", False, short, "free some space there: until then nothing is written, and nothing is lost")
    return Check("disk", True, "; ".join(f"{folder} has {room >> 20} MiB or more" for folder, room in needed.items()))


# ------------------------------------------------------------------------------------------------ the log
async def _log_checks(settings: Settings) -> AsyncIterator[Check]:
    if (unusable := _unusable(settings.broker_folder)) is not None:
        yield Check("broker", False, *unusable)
        return
    if settings.broker_folder is not None and not settings.broker_folder.exists():
        yield Check("broker", True, f"{settings.broker} does not exist yet; the first command creates it")
        return
    log = new_log(settings)
    problem = await _problem(log.start)
    if problem is not None:
        yield Check("broker", False, *problem)
        return
    try:
        yield Check("broker", True, f"{settings.broker} answers")
        if settings.broker_folder is None:
            yield await _clock(log, settings)
        yield await _topics(log, settings)
        for stage in STAGES:
            yield await _stage(log, stage)
        yield await _parked(log)
        yield await _unread(log)
        yield await _passed_over(log)
    except StageError as error:
        yield Check("broker", False, *_remedy(error))
    finally:
        await log.close()


async def _clock(log: Log, settings: Settings) -> Check:
    """Compare this machine's clock with the broker's: a broker refuses records whose timestamp differs too much."""
    from ...streams.log.kafka import KafkaLog  # slow to import, and not needed for an embedded log

    assert isinstance(log, KafkaLog)
    try:
        ahead = await log.clock_ahead(replication=settings.replication)
    except StageError as error:
        return Check("clock", True, f"not compared with the broker's: {error}")
    difference = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the broker's"
    if abs(ahead) <= CLOCK_OFF:
        return Check("clock", True, difference)
    return Check("clock", False, f"this machine's clock is {difference}", "set the clock, and synchronise it with NTP")


async def _topics(log: Log, settings: Settings) -> Check:
    reports = await topic_admin.check(log, deployment=deployment(settings))
    wrong = topic_admin.problems(reports)
    if not wrong:
        return Check("topics", True, f"{len(reports)} topics match the catalogue")
    shown = wrong[: topic_admin.NAMED]
    named = "; ".join(problem for problem, _ in shown)
    more = f"; and {len(wrong) - len(shown)} more" if len(wrong) > len(shown) else ""
    return Check("topics", False, named + more, " && ".join(dict.fromkeys(fix for _, fix in shown)))


async def _stage(log: Log, stage: StageName) -> Check:
    """Report a stage's number of workers and its lag. A stage without workers passes: workers may start later."""
    lag = await stage_lag(log, stage)
    if lag.deleted:
        lost = f"retention deleted {lag.deleted} before it had read them"
        lost = f"{lag.workers} workers, {lag.behind} records behind; {lost}"
        return Check(f"stage {stage}", False, lost, REMEDY_UNREAD)
    return Check(f"stage {stage}", True, f"{lag.workers} workers, {lag.behind} records behind")


async def _parked(log: Log) -> Check:
    """List parked keys: keys whose last outcome cannot be applied."""
    entries = sorted((await read_parked_keys(log)).values(), key=lambda each: each.parked_at)
    if not entries:
        return Check("parked keys", True, "none")
    named = [
        f"{each.stage} {each.key} since {each.parked_at:%Y-%m-%d %H:%M} UTC: {each.error}"
        for each in entries[:PARKED_SHOWN]
    ]
    more = [f"and {len(entries) - PARKED_SHOWN} more"] if len(entries) > PARKED_SHOWN else []
    return Check("parked keys", False, "; ".join([*named, *more]), REMEDY)


async def _unread(log: Log) -> Check:
    """Count the records that retention deleted in the last 30 days before a stage read them."""
    name, lost = "unread records", Counter[tuple[str, str]]()
    for note in await read_unread(log, now=datetime.now(UTC)):
        lost[note.stage, note.topic] += note.count
    if not lost:
        return Check(name, True, "retention deleted none")
    named = ", ".join(f"{stage} {count} of {topic}" for (stage, topic), count in lost.most_common())
    return Check(name, False, f"retention deleted in the last 30 days: {named}", REMEDY_UNREAD)


async def _passed_over(log: Log) -> Check:
    """Count the turns of the last day that were not observed because too many turns of their tenant waited."""
    name = "waiting turns"
    letters, since = TURNS.name + DEAD_LETTER_SUFFIX, round((time.time() - PASSED_OVER_SINCE) * 1000)
    tenants: Counter[str] = Counter()
    begin = {n: await log.offset_at(letters, n, since) for n in range(await log.partitions(letters) or 0)}
    start = {partition: offset for partition, offset in begin.items() if offset is not None}
    if start:
        async with aclosing(log.read(letters, start=start)) as records:
            read = 0
            async for letter in records:
                if (read := read + 1) > LETTERS_READ:
                    break
                if reason_of(letter.headers) == "over_ceiling":
                    tenants[tenant_of(letter.value) or "?"] += 1
    if not tenants:
        return Check(name, True, "none was passed over in the last day")
    most = ", ".join(f"{tenant} {turns}" for tenant, turns in tenants.most_common(TENANTS_SHOWN))
    return Check(
        name,
        False,
        f"{tenants.total()} turns of {len(tenants)} tenants were passed over in the last day: {most}",
        "see why they wait (model, budget, observe.waiting_turns), then: memstream dlq redrive --reason over_ceiling",
    )


# ------------------------------------------------------------------------------------------------ store and embedder
async def _qdrant(settings: Settings, identity: EmbedderIdentity | None) -> Check:
    """Check Qdrant. `identity` is None if the embedder does not answer; then collections are not compared with it."""
    folder = settings.qdrant_folder
    if (unusable := _unusable(folder)) is not None:
        return Check("qdrant", False, *unusable)
    if folder is not None and not folder.exists():
        return Check("qdrant", True, f"{settings.qdrant} does not exist yet; the first worker creates it")
    try:
        async with tried_folders(settings, purpose="doctor") as folders:
            store = await new_store(settings, identity=identity or reader_identity(settings), folders=folders)
            try:
                problem = await _problem(store.version)
                version = await store.version() if problem is None else ""
                if problem is None and identity is not None:
                    problem = await _problem(lambda: _collections(store))
            finally:
                await store.close()
            held = folder is not None and not folders.holds(folder)
    except StageError as error:
        return Check("qdrant", False, *_remedy(error))
    if problem is not None:
        return Check("qdrant", False, *problem)
    holder = f", held by {holder_of(folder)}" if held and folder is not None else ""
    return Check("qdrant", True, f"{without_credentials(settings.qdrant)} answers, version {version}{holder}")


async def _collections(store: QdrantStore) -> None:
    """Check the server's version, and that the existing collections were filled by the embedder of the settings."""
    existing = [spec.name for spec in COLLECTIONS if await store.exists(spec.name)]
    if existing:
        await store.ensure(*existing)


async def _embedder(settings: Settings) -> tuple[Check, EmbedderIdentity | None]:
    try:
        embedder = new_embedder(settings, sink=NoUsage())
    except CommandFailed as error:
        return Check("embedder", False, str(error), "set the missing setting"), None
    try:
        problem = await _problem(lambda: embedder.embed(["memstream"], tenant_id="doctor"))
        if problem is not None:
            return Check("embedder", False, *problem), None
        identity = embedder.identity
        return Check("embedder", True, f"{identity.name}, {identity.dimension} dimensions"), identity
    finally:
        await embedder.close()


async def _problem(attempt: Callable[[], Awaitable[object]]) -> tuple[str, str] | None:
    """Run `attempt`. Return its problem and a remedy, or None if it succeeded."""
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT * 2):
            await attempt()
    except StageError as error:
        return _remedy(error)
    except TimeoutError:
        return f"no answer within {COMMAND_TIMEOUT * 2:.0f} s", "check that it runs and that its address is right"
    return None


def _remedy(error: StageError) -> tuple[str, str]:
    return str(error), error.remedy or "see the detail"
