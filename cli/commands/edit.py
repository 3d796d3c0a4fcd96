"""`memstream remember|forget|retract|edit|supersede|merge`: change facts, episodes and turns by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

import click

from ...schemas.base import Contract
from ...schemas.commands import SessionRef
from ...schemas.edits import episodes, facts, turns
from ...schemas.episodes import Episode
from ...schemas.facts import Fact
from ...schemas.observations import Category
from ...schemas.turns import Sensitivity
from ...tools.editor import EditAnswer, EditTarget
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..output.edits import tell
from ..wiring.edit_runs import EditSession, edit_session

RECORD_ID = click.argument("record_id")
tags = click.option("--tag", "tags", multiple=True, help="A tag; may be repeated.")


@click.command()
@click.argument("content")
@options.owner_options
@click.option("--subject", default="user", help="Person or thing that the statement is about. [default: user]")
@click.option("--category", type=click.Choice(get_args(Category)), help="[default: derived from the statement]")
@click.option("--since", type=options.MOMENT, help="Time from which the statement is true. [default: now]")
@click.option(
    "--sensitivity",
    type=click.Choice(get_args(Sensitivity)),
    default="internal",
    show_default=True,
    help="Sensitivity of the statement.",
)
@click.option("--episode", is_flag=True, help="Remember the statement as an episode (an event), not as a fact.")
@click.option("--as-it-is", is_flag=True, help="Add the fact without closing facts that it contradicts.")
@tags
@options.reason
@options.idempotency_key
@options.as_json
@pass_context
def remember(
    context: CommandContext,
    content: str,
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    subject: str,
    category: Category | None,
    since: datetime | None,
    sensitivity: Sensitivity,
    episode: bool,
    as_it_is: bool,
    tags: tuple[str, ...],
    reason: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Remember a statement in the third person: "Works at Stripe".

    The statement goes through the same conflict rules as the user's own words: it closes facts that it contradicts.
    Exit 1 if memory refuses it, or if it is not applied within 60 s.
    """
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    if owner is None:
        raise usage("the owner is missing: give --user, or --scope and --id")
    target = EditTarget(tenant, owner=owner)
    common = {"content": content, "subject": subject, "tags": tags, "sensitivity": sensitivity}
    args: Contract
    if episode:
        kind = "episodes.add"
        chosen = {name: value for name, value in (("category", category), ("occurred_at", since)) if value is not None}
        args = options.checked(lambda: episodes.EpisodeAdd.model_validate(common | chosen))
    else:
        kind = "facts.add" if as_it_is else "facts.remember"
        given = {"category": category, "valid_from": since, "reason": reason}
        args = options.checked(lambda: facts.FactRemember.model_validate(common | given))

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="remember", key=key) as session:
            return await session.send(kind, args, target)

    tell(run(work()), as_json=as_json)


@click.command()
@RECORD_ID
@options.tenant
@click.option(
    "--because",
    type=click.Choice(get_args(facts.ForgetCause)),
    help="wrong: the fact was never true. over: it was true.",
)
@click.option(
    "--restore/--no-restore",
    default=None,
    help="Believe the facts again that this fact had closed. [default: with --because wrong]",
)
@options.reason
@options.as_json
@pass_context
def forget(
    context: CommandContext,
    record_id: str,
    tenant: str,
    because: facts.ForgetCause | None,
    restore: bool | None,
    reason: str,
    as_json: bool,
) -> None:
    """Forget a fact or an episode. No read returns it any more; the log keeps it.

    A fact that is forgotten can be forgotten again with --restore. Exit 1 if no record has this id, or if it is not
    applied within 60 s.
    """

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="forget") as session:
            found = await session.record(tenant, record_id)
            target = EditTarget(tenant, owner=found.owner)
            if isinstance(found, Fact):
                args: Contract = facts.FactForget(
                    fact_id=found.fact_id, because=because, restore=restore, reason=reason
                )
                return await session.send("facts.forget", args, target)
            if because is not None or restore is not None:
                raise usage("--because and --restore apply to facts only: an episode closes no fact")
            args = episodes.EpisodeForget(episode_id=found.episode_id, reason=reason)
            return await session.send("episodes.forget", args, target)

    answer = run(work())
    tell(answer, as_json=as_json)
    if not as_json and _offers_restore(answer):
        console.wrapped(f"`memstream forget {record_id} --tenant {tenant} --restore` believes what it had closed again")


def _offers_restore(answer: EditAnswer) -> bool:
    result = answer.result
    return isinstance(result, facts.FactForgotten) and any(each.why == "not_asked" for each in result.still_closed)


@click.command()
@click.argument("turn_id")
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="The user of the session.")
@options.session
@options.reason
@options.as_json
@pass_context
def retract(
    context: CommandContext, turn_id: str, tenant: str, user: str, session: str, reason: str, as_json: bool
) -> None:
    """Take a turn back: its messages are deleted, its episodes end, and facts lose its evidence.

    A fact without other evidence is invalidated, and a task of the turn is cancelled. The turn has no effect if it
    arrives again. Memory need not know the turn. Exit 1 if it is not applied within 60 s.
    """
    args = options.checked(lambda: turns.TurnRetract.model_validate({"turn_id": turn_id, "reason": reason}))
    target = EditTarget(tenant, session=SessionRef(user_id=user, session_id=session))

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="retract") as opened:
            return await opened.send_all("turn.retract", args, target)

    tell(run(work()), as_json=as_json)


@click.command()
@RECORD_ID
@options.tenant
@click.option("--content", help="The new text.")
@click.option("--category", type=click.Choice(get_args(Category)), help="The new category of a fact.")
@click.option("--tag", "tags", multiple=True, help="A new tag; may be repeated. Replaces the present tags.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@options.reason
@options.idempotency_key
@options.as_json
@pass_context
def edit(
    context: CommandContext,
    record_id: str,
    tenant: str,
    content: str | None,
    category: Category | None,
    tags: tuple[str, ...],
    no_tags: bool,
    reason: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Reword a fact or an episode, or change its category or tags.

    If the fact itself has changed, use `memstream supersede`: it replaces the fact and keeps the old one in history.
    """
    if content is None and category is None and not tags and not no_tags:
        raise usage("nothing to change: give --content, --category, --tag or --no-tags")
    changes = {"content": content, "tags": tags if tags or no_tags else None}

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="edit", key=key) as session:
            found = await session.record(tenant, record_id)
            target = EditTarget(tenant, owner=found.owner)
            if isinstance(found, Fact):
                given = {"fact_id": found.fact_id, "category": category, "reason": reason, **changes}
                args: Contract = options.checked(lambda: facts.FactEdit.model_validate(given))
                return await session.send("facts.update", args, target)
            if category is not None:
                raise usage("--category applies to facts only: an episode keeps its category")
            given = {"episode_id": found.episode_id, "reason": reason, **changes}
            args = options.checked(lambda: episodes.EpisodeEdit.model_validate(given))
            return await session.send("episodes.update", args, target)

    tell(run(work()), as_json=as_json)


@click.command()
@click.argument("fact_id")
@click.argument("content")
@options.tenant
@click.option("--since", type=options.MOMENT, help="Time from which the new fact is true. [default: now]")
@options.reason
@options.idempotency_key
@options.as_json
@pass_context
def supersede(
    context: CommandContext,
    fact_id: str,
    content: str,
    tenant: str,
    since: datetime | None,
    reason: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Replace a fact with a new one. The old fact stays in the history."""

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="supersede", key=key) as session:
            found = await session.record(tenant, fact_id)
            if isinstance(found, Episode):
                raise usage(f"{fact_id} is an episode: an episode cannot be replaced")
            given = {"fact_id": found.fact_id, "content": content, "valid_from": since, "reason": reason}
            args = options.checked(lambda: facts.FactSupersede.model_validate(given))
            return await session.send("facts.supersede", args, EditTarget(tenant, owner=found.owner))

    tell(run(work()), as_json=as_json)


@click.command()
@click.argument("record_ids", nargs=-1, required=True)
@options.tenant
@click.option("--content", help="Text of the merged record. [default: all texts, joined in order]")
@options.reason
@options.idempotency_key
@options.as_json
@pass_context
def merge(
    context: CommandContext,
    record_ids: tuple[str, ...],
    tenant: str,
    content: str | None,
    reason: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Merge two or more facts, or two or more episodes, into the first one."""
    if len(record_ids) < 2:
        raise usage("give the ids of two or more facts, or of two or more episodes")

    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose="merge", key=key) as session:
            return await _merged(session, [await session.record(tenant, each) for each in record_ids])

    async def _merged(session: EditSession, found: Sequence[Fact | Episode]) -> EditAnswer:
        target = EditTarget(tenant, owner=found[0].owner)
        given = {"content": content, "reason": reason}
        if all(isinstance(each, Fact) for each in found):
            fact_ids = tuple(each.fact_id for each in found if isinstance(each, Fact))
            args: Contract = options.checked(lambda: facts.FactMerge.model_validate({"fact_ids": fact_ids, **given}))
            return await session.send("facts.merge", args, target)
        if any(isinstance(each, Fact) for each in found):
            raise usage("facts and episodes cannot be merged with each other")
        episode_ids = tuple(each.episode_id for each in found if isinstance(each, Episode))
        args = options.checked(lambda: episodes.EpisodesMerge.model_validate({"episode_ids": episode_ids, **given}))
        return await session.send("episodes.merge", args, target)

    tell(run(work()), as_json=as_json)
