"""`memstream profile`: the current values of a subject's slots."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from ...memory.policies import MemoryPolicy
from ...memory.recall.context_lines import USER
from ...memory.tenant_policies import TenantPolicies
from ...recall.profile import ProfileReader, ProfileRequest
from ...schemas.cloudevents import rfc3339
from ...schemas.profile import Profile, ProfileValue
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..wiring.ports import open_ports
from ..wiring.settings import Settings
from .recall import tenant_policy

COLUMNS = ("slot", "value", "qualifier", "since", "fact_id")


@click.command()
@options.owner_options
@click.option("--subject", default=USER, help="Subject of the profile. [default: user]")
@click.option("--slot", "slots", multiple=True, help="Show only this slot; may be repeated.")
@click.option(
    "--as-of", type=options.MOMENT, help=f"Show facts that were valid at this time. {options.END_OF_DAY} [default: now]"
)
@click.option(
    "--known-at", type=options.MOMENT, help=f"Show facts as believed at this time. {options.END_OF_DAY} [default: now]"
)
@options.as_json
@pass_context
def profile(
    context: CommandContext,
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    subject: str,
    slots: tuple[str, ...],
    as_of: datetime | None,
    known_at: datetime | None,
    as_json: bool,
) -> None:
    """Show a profile: the current values of a subject's slots, each with its fact.

    The column since has the start of the validity.
    """
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    if owner is None:
        raise usage("the owner of the memory is missing: give --user, or --scope and --id")
    policy = run(tenant_policy(context.settings, context.policy, tenant, None))
    try:
        request = ProfileRequest(
            tenant_id=tenant,
            owner=owner,
            subject=subject,
            slots=slots,
            ceiling="secret",
            as_of=as_of,
            known_at=known_at,
        )
        found = run(_read(context.settings, policy, request))
    except ValueError as error:
        raise usage(str(error)) from error
    if as_json:
        for slot in found.slots:
            console.line(slot.to_payload())
    else:
        rows = [
            _cells(slot.slot, value, denied=denied)
            for slot in found.slots
            for denied, values in ((False, slot.values), (True, slot.denied))
            for value in values
        ]
        console.table(COLUMNS, rows, empty=f"memory has no slots of {subject}", text="value")
    if found.truncated:
        console.advice("there are more facts: give --slot to see the older ones")


async def _read(settings: Settings, policy: MemoryPolicy, request: ProfileRequest) -> Profile:
    async with open_ports(settings, purpose="profile") as ports:
        reader = ProfileReader(store=ports.store, policies=TenantPolicies(policy))
        return await reader.profile(request, now=datetime.now(UTC))


def _cells(slot: str, value: ProfileValue, *, denied: bool) -> tuple[str, ...]:
    shown = value.value or value.content
    since = f"{rfc3339(value.valid_from)[:10]}"
    return (slot, f"not {shown}" if denied and value.value else shown, value.qualifier or "", since, value.fact_id)
