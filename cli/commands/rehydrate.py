"""`memstream rehydrate EPISODE_ID`: the original text of an episode that was reduced to a gist."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import click

from ...memory.policies import MemoryPolicy
from ...recall.verbatim import EpisodeRef, Nothing, VerbatimReader, VerbatimResult
from ...schemas.cloudevents import rfc3339
from ...tools.audit import audit
from ...tools.audit_topic import AuditPublisher
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..process.account import account
from ..process.policy_reader import read_policies
from ..wiring.command_runs import start_audit
from ..wiring.ports import open_ports
from ..wiring.settings import Settings

WHY: Final[Mapping[Nothing, str]] = {
    "whole": "it was never reduced: `memstream show episodes` has its full text",
    "gone": "the archive no longer has its text: the retention period is over",
    "damaged": "the archived text is damaged (its SHA-256 differs), so it is not shown",
}


@click.command()
@click.argument("episode_id")
@options.tenant
@options.as_json
@pass_context
def rehydrate(context: CommandContext, episode_id: str, tenant: str, as_json: bool) -> None:
    """Show the original text of an episode that was reduced to a gist (it has `archived_at`).

    Each access is logged and extends the retention of the text. Exit 1 if the episode does not exist, or if it has no
    text to show; stderr has the reason.
    """
    found = run(_rehydrated(context.settings, context.policy, EpisodeRef(tenant, episode_id, ceiling="secret")))
    if found is None:
        raise CommandFailed(
            Exit.PARTLY, f"tenant {tenant} has no episode {episode_id}: `memstream show episodes` has their ids"
        )
    if as_json:
        console.line(
            {
                "episode_id": found.episode_id,
                "verbatim_content": found.content,
                "archived_at": rfc3339(found.archived_at) if found.archived_at else None,
                "sha256": found.sha256,
                "kept_until": rfc3339(found.kept_until) if found.kept_until else None,
                "nothing": found.nothing,
            }
        )
    elif found.content is not None:
        console.say(console.printable(found.content))
    if found.nothing is not None:
        raise CommandFailed(Exit.PARTLY, f"episode {episode_id}: {WHY[found.nothing]}")


async def _rehydrated(settings: Settings, policy: MemoryPolicy, ref: EpisodeRef) -> VerbatimResult | None:
    start_audit(settings)
    async with open_ports(settings, purpose="rehydrate") as ports, AuditPublisher(log=ports.log).running():
        policies = await read_policies(ports.log, policy)
        service = VerbatimReader(store=ports.store, log=ports.log, policies=policies)
        found = await service.rehydrate(ref, now=datetime.now(UTC))
        audit(
            "rehydrate",
            who=f"cli:{account()}",
            tenant_id=ref.tenant_id,
            owner=None,
            result="read" if found is not None and found.content is not None else "nothing",
            episode_id=ref.episode_id,
        )
        return found
