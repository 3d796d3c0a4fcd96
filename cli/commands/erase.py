"""`memstream erase`: erase a user or a session, show a receipt, and scan again (docs/how-to/delete-a-user.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ...memory.user_traces import UserTraces
from ...schemas import ids
from ...schemas.commands import SessionRef
from ...schemas.edits.sessions import EraseSession
from ...schemas.erasures import ErasedPlace, ErasureReceipt
from ...tools.audit import audit
from ...tools.audit_topic import AuditPublisher
from ...tools.editor import EditAnswer, EditTarget
from ...tools.erasure.eraser import ErasureStalled, UserEraser, check_again, read_receipt
from ...tools.erasure.scan import UserRecords, UserScan
from ...tools.erasure.session_records import count_session_records
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..output.edits import tell
from ..process.account import account
from ..wiring.broker import require_memory
from ..wiring.command_runs import start_audit
from ..wiring.edit_runs import edit_session
from ..wiring.local_stages import local_stages
from ..wiring.ports import open_ports
from ..wiring.stages import utc_now


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, help="The tenant.")
@click.option("--user", type=options.GIVEN_ID, help="The user to erase.")
@click.option("--session", type=options.GIVEN_ID, help="Erase only this session of the user.")
@click.option("--dry-run", is_flag=True, help="Count what memory has of the user or session. Change nothing.")
@click.option("--receipt", metavar="ID", help="Show the receipt of an erasure.")
@click.option("--check", metavar="ID", help="Scan again for the user of a receipt.")
@options.as_json
@pass_context
def erase(
    context: CommandContext,
    tenant: str | None,
    user: str | None,
    session: str | None,
    dry_run: bool,
    receipt: str | None,
    check: str | None,
    as_json: bool,
) -> None:
    """Erase a user for ever: facts, episodes, messages, working sets, blocks, tasks, and their rows and events.

    Wait for the receipt. It says what was removed, what a scan still finds, and when the last byte leaves each topic.
    If the command is interrupted, run it again: it continues. Exit 1 if the scan still finds the user.

    With --session, one session is taken back: a fact without evidence from another session is erased, and no later turn
    of the session has an effect. There is no receipt. The command counts what is left. Exit 1 if a record still names
    the session, or if it is not applied within 60 s.
    """
    if session is not None and user is None:
        raise usage("--user is missing: name the user of the session")
    if sum((receipt is not None, check is not None, user is not None)) != 1:
        raise usage("name one of: --tenant and --user, --receipt ID, --check ID")
    if receipt is not None:
        _print(run(_receipt(context, receipt)), as_json=as_json)
        return
    if check is not None:
        made = run(_checked(context, check))
    elif tenant is None:
        raise usage("--tenant is missing: name the tenant of the user")
    elif session is not None:
        assert user is not None  # checked above
        _erase_session(context, tenant, SessionRef(user_id=user, session_id=session), dry_run=dry_run, as_json=as_json)
        return
    elif dry_run:
        assert user is not None  # checked above
        _print_places(run(_counted(context, tenant, user)).places.values(), as_json=as_json)
        return
    else:
        assert user is not None  # checked above
        made = run(_erase(context, tenant, user))
    _print(made, as_json=as_json)
    left = {place.place: place.with_ids for place in made.places if place.with_ids}
    if left:
        where = ", ".join(f"{place} ({count})" for place, count in left.items())
        raise CommandFailed(Exit.PARTLY, f"records still name the user: {where}")


def _erase_session(context: CommandContext, tenant: str, session: SessionRef, *, dry_run: bool, as_json: bool) -> None:
    async def count() -> Mapping[str, int]:
        async with open_ports(context.settings, purpose="erase") as ports:
            return await count_session_records(ports.store, tenant_id=tenant, session=session)

    async def erase() -> tuple[EditAnswer, Mapping[str, int]]:
        async with edit_session(context.settings, context.policy, purpose="erase") as opened:
            answer = await opened.send_all("session.erase", EraseSession(), EditTarget(tenant, session=session))
            return answer, await count_session_records(opened.ports.store, tenant_id=tenant, session=session)

    if dry_run:
        counts = run(count())
        if as_json:
            console.line({**counts})
        for name, records in counts.items() if not as_json else ():
            console.say(f"  {name}: {records}")
        return
    answer, left = run(erase())
    tell(answer, as_json=as_json)
    if any(left.values()):
        where = ", ".join(f"{name} ({records})" for name, records in left.items() if records)
        raise CommandFailed(Exit.PARTLY, f"records still name the session, run the command again: {where}")


async def _erase(context: CommandContext, tenant: str, user: str) -> ErasureReceipt:
    require_memory(context.settings.broker_folder)
    start_audit(context.settings)
    who = f"cli:{account()}"
    async with (
        local_stages(context.settings, context.policy, purpose="erase") as ports,
        AuditPublisher(log=ports.log).running(),
    ):
        eraser = UserEraser(
            store=ports.store,
            log=ports.log,
            now=utc_now,
            tenant_id=tenant,
            user_id=user,
            issued_by=who,
            told=console.advice,
        )
        status = "failed"
        try:
            made = await eraser.run()
            status = "applied"
        except ErasureStalled as stalled:
            raise CommandFailed(Exit.PARTLY, str(stalled)) from None
        finally:
            audit("erase", who=who, tenant_id=tenant, owner=None, user_hash=ids.user_hash(tenant, user), result=status)
        return made


async def _counted(context: CommandContext, tenant: str, user: str) -> UserRecords:
    async with open_ports(context.settings, purpose="erase") as ports:
        traces = UserTraces(tenant, ids.user_hash(tenant, user))
        return await UserScan(store=ports.store, log=ports.log, tenant_id=tenant, traces=traces).run()


async def _receipt(context: CommandContext, erasure_id: str) -> ErasureReceipt:
    async with open_ports(context.settings, purpose="erase") as ports:
        found = await read_receipt(ports.log, erasure_id)
    if found is None:
        raise CommandFailed(Exit.PARTLY, f"there is no receipt {erasure_id}: `memstream erase` prints its id")
    return found


async def _checked(context: CommandContext, erasure_id: str) -> ErasureReceipt:
    async with open_ports(context.settings, purpose="erase") as ports:
        found = await read_receipt(ports.log, erasure_id)
        if found is None:
            raise CommandFailed(Exit.PARTLY, f"there is no receipt {erasure_id}: `memstream erase` prints its id")
        return await check_again(ports.store, ports.log, found)


def _print(receipt: ErasureReceipt, *, as_json: bool) -> None:
    if as_json:
        console.line(receipt.to_payload())
        return
    console.say(f"erasure {receipt.erasure_id}, completed {receipt.ended_at:%Y-%m-%d %H:%M:%S}Z")
    _print_places(receipt.places, as_json=False)
    for end in receipt.logs:
        when = "no end" if end.gone_by is None else f"gone by {end.gone_by:%Y-%m-%d %H:%M}Z"
        console.say(f"  {end.topic}: {when} ({end.why})")


def _print_places(places: Any, *, as_json: bool) -> None:
    each: ErasedPlace
    for each in places:
        if as_json:
            console.line(each.to_payload())
        else:
            console.say(
                f"  {each.place}: {each.removed} removed; of {each.scanned} records {each.with_ids} name the user, "
                f"{each.with_texts} have a text of theirs"
            )
