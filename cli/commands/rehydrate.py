"""`memstream rehydrate EPISODE_ID`: the words of an old episode of which a gist is left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import click

from ...memory.policies import MemoryPolicy
from ...recall.verbatim import EpisodeRef, Nothing, VerbatimReader, VerbatimResult
from ...schemas.cloudevents import rfc3339
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..wiring.ports import open_ports
from ..wiring.settings import Settings

WHY: Final[Mapping[Nothing, str]] = {
    "whole": "it was never compressed: `memstream show episodes` has all of its text",
    "gone": "its words are not in the archive any more: their time there was over",
    "damaged": "what the archive has is not what was put there (its SHA-256 differs): nothing is shown",
}


@click.command()
@click.argument("episode_id")
@options.tenant
@options.as_json
@pass_context
def rehydrate(context: CommandContext, episode_id: str, tenant: str, as_json: bool) -> None:
    """Show the words of an episode of which a gist is left (`archived_at`). Each access is logged, and keeps them
    longer.

    Exit code 1 says that there is no such episode, or nothing to show; stderr says why.
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
        click.echo(console.printable(found.content))
    if found.nothing is not None:
        raise CommandFailed(Exit.PARTLY, f"episode {episode_id}: {WHY[found.nothing]}")


async def _rehydrated(settings: Settings, policy: MemoryPolicy, ref: EpisodeRef) -> VerbatimResult | None:
    async with open_ports(settings, purpose="rehydrate") as ports:
        service = VerbatimReader(store=ports.store, log=ports.log, gist=policy.gist, recall=policy.recall)
        return await service.rehydrate(ref, now=datetime.now(UTC))
