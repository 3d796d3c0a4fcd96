"""`memstream pin|unpin|block|task|procedure|group`: pins, and records that people write by hand, for a session or an
owner."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

import click
from pydantic import BaseModel, JsonValue

from ...recall.paging import PAGE_MAX
from ...recall.record_filters import RecordSelection
from ...recall.record_reader import RecordReader
from ...schemas.base import Contract
from ...schemas.commands import SessionRef
from ...schemas.edits import blocks, facts, groups, procedures, prospective, working
from ...schemas.edits.prospective import TaskState
from ...schemas.episodes import Episode
from ...schemas.turns import Owner
from ...tools.editor import EditAnswer, EditTarget
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..output.edits import tell
from ..wiring.edit_runs import edit_session
from ..wiring.ports import open_ports
from ..wiring.settings import Settings

TEXT = {"blocks": "value", "tasks": "content", "groups": "description", "procedures": "steps"}
"""Main text column of each list (the argument `text` of console.table)."""
COLUMNS = {
    "blocks": ("name", "value", "limit", "version"),
    "tasks": ("state", "due_at", "condition", "content", "task_id"),
    "groups": ("group_id", "description", "members", "fact_ids"),
    "procedures": ("name", "trigger", "steps", "version"),
}


# ------------------------------------------------------------------------------------------------ pins
def _pin_command(verb: Literal["pin", "unpin"], text: str) -> click.Command:
    @click.command(verb, help=text)
    @click.argument("record_id")
    @options.tenant
    @click.option("--user", type=options.GIVEN_ID, help="The user of the session.")
    @click.option("--session", type=options.GIVEN_ID, help="The session of the entry.")
    @options.reason
    @options.as_json
    @pass_context
    def command(
        context: CommandContext,
        record_id: str,
        tenant: str,
        user: str | None,
        session: str | None,
        reason: str,
        as_json: bool,
    ) -> None:
        if session is not None:
            if reason:
                raise usage("--reason applies to facts only: an entry has no history")
            target = EditTarget(tenant, session=_session(_user_of(user), session))
            entry = options.checked(lambda: working.WorkingEntryRef(entry_id=record_id))
            tell(_sent(context, f"working.{verb}", entry, target), as_json=as_json)
            return
        if user is not None:
            raise usage("--user needs --session; the id of a fact names its owner")

        async def work() -> EditAnswer:
            async with edit_session(context.settings, context.policy, purpose=verb) as editing:
                found = await editing.record(tenant, record_id)
                if isinstance(found, Episode):
                    raise usage(f"{record_id} is an episode: only facts and entries are pinned")
                args = facts.FactPin(fact_id=found.fact_id, reason=reason)
                return await editing.send(f"facts.{verb}", args, EditTarget(tenant, owner=found.owner))

        tell(run(work()), as_json=as_json)

    return command


pin = _pin_command(
    "pin",
    "Pin a fact, so that each context of its owner has it. With --session: pin an entry of the session's working set, "
    "so that it is not evicted. `memstream show facts --json` and `memstream show working --json` have ids.",
)
unpin = _pin_command("unpin", "Unpin a fact or, with --session, an entry of the session's working set.")


# ------------------------------------------------------------------------------------------------ blocks
@click.command()
@click.argument(
    "what", type=click.Choice(["define", "append", "replace", "rethink", "remove", "attach", "detach", "list"])
)
@click.argument("texts", nargs=-1)
@options.owner_options
@click.option("--session", type=options.GIVEN_ID, help="Session that owns the block, or to attach it to.")
@click.option("--limit", type=click.IntRange(1, blocks.BLOCK_LIMIT_MAX), help="Maximum length in characters (define).")
@options.as_json
@pass_context
def block(
    context: CommandContext,
    what: str,
    texts: tuple[str, ...],
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    session: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Edit blocks: short named texts that are part of an agent's prompt.

    \b
    block define NAME [TEXT]    block append NAME TEXT     block replace NAME OLD NEW
    block rethink NAME TEXT     block remove NAME          block list
    block attach NAME           block detach NAME          (an owner's block, in --session)
    """
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    if owner is None:
        raise usage("the owner of the block is missing: give --user, or --scope and --id")
    if what == "list":
        _list(context, "blocks", RecordSelection(tenant, owner=owner, ceiling="secret"), as_json=as_json)
        return
    ref = None if session is None else _session(_user_of(user), session)
    if what in ("attach", "detach"):
        if ref is None:
            raise usage(f"block {what} needs --user and --session: the session that shows the block")
        target = EditTarget(tenant, session=ref)
    else:
        target = EditTarget(tenant, owner=None if ref else owner, session=ref)
    args = options.checked(lambda: _block_args(what, _texts(what, texts), owner, limit))
    tell(_sent(context, f"blocks.{what}", args, target), as_json=as_json)


_TEXTS = {
    "define": ("NAME", "[TEXT]"),
    "append": ("NAME", "TEXT"),
    "replace": ("NAME", "OLD", "NEW"),
    "rethink": ("NAME", "TEXT"),
    "remove": ("NAME",),
    "attach": ("NAME",),
    "detach": ("NAME",),
}


def _texts(what: str, given: Sequence[str]) -> tuple[str, ...]:
    wanted = _TEXTS[what]
    least = sum(not each.startswith("[") for each in wanted)
    if not least <= len(given) <= len(wanted):
        raise usage(f"usage: memstream block {what} {' '.join(wanted)} …; {len(given)} texts were given")
    return tuple(given)


def _block_args(what: str, texts: tuple[str, ...], owner: Owner, limit: int | None) -> Contract:
    name, *rest = texts
    match what:
        case "define":
            return blocks.BlockDefine(name=name, value=rest[0] if rest else "", limit=limit)
        case "append":
            return blocks.BlockAppend(name=name, text=rest[0])
        case "replace":
            return blocks.BlockReplace(name=name, old=rest[0], new=rest[1])
        case "rethink":
            return blocks.BlockRethink(name=name, value=rest[0])
        case "remove":
            return blocks.BlockRemove(name=name)
        case _:
            return blocks.BlockAttach(name=name, owner=owner)


# ------------------------------------------------------------------------------------------------ tasks
@click.command()
@click.argument("what", type=click.Choice(["add", "done", "cancel", "list"]))
@click.argument("text", required=False)
@options.owner_options
@click.option("--due", type=options.MOMENT, help=f"Time of the reminder (add). {options.END_OF_DAY}")
@click.option("--condition", help="Condition in words (add): contexts show the task when a cue matches it.")
@click.option("--state", type=click.Choice(get_args(TaskState)), help="List only tasks in this state (list).")
@options.reason
@options.as_json
@pass_context
def task(
    context: CommandContext,
    what: str,
    text: str | None,
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    due: datetime | None,
    condition: str | None,
    state: TaskState | None,
    reason: str,
    as_json: bool,
) -> None:
    """Manage tasks: `task add TEXT --due TIME`, `task done ID`, `task cancel ID`, `task list`.

    When a task is due, one event appears on memory.tasks.due, and contexts show the task under `To do:`.
    """
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    if owner is None:
        raise usage("the owner of the task is missing: give --user, or --scope and --id")
    if what == "list":
        selection = RecordSelection(tenant, owner=owner, ceiling="secret")
        _list(context, "tasks", selection, as_json=as_json, states=() if state is None else (state,))
        return
    if text is None:
        raise usage(f"usage: memstream task {what} {'TEXT' if what == 'add' else 'TASK_ID'} …")
    given = text
    args: Contract
    if what == "add" and due is None and condition is None:
        raise usage("task add needs due_at or condition: give --due TIME, or --condition WORDS")
    if what == "add":
        args = options.checked(lambda: prospective.TaskAdd(content=given, due_at=due, condition=condition))
    else:
        args = options.checked(lambda: prospective.TaskRef(task_id=given, reason=reason))
    tell(_sent(context, f"tasks.{what}", args, EditTarget(tenant, owner=owner)), as_json=as_json)


# ------------------------------------------------------------------------------------------------ procedures
@click.command()
@click.argument("what", type=click.Choice(["define", "remove", "activate", "deactivate", "list"]))
@click.argument("name", required=False)
@options.owner_options
@click.option("--when", "trigger", help="Situation in which the procedure applies (define).")
@click.option("--step", "steps", multiple=True, help="A step; repeat it for each step, in order (define).")
@click.option("--session", type=options.GIVEN_ID, help="The session that uses it (activate, deactivate).")
@options.reason
@options.as_json
@pass_context
def procedure(
    context: CommandContext,
    what: str,
    name: str | None,
    tenant: str,
    user: str | None,
    scope: str | None,
    owner_id: str | None,
    trigger: str | None,
    steps: tuple[str, ...],
    session: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Manage procedures: `procedure define NAME --when … --step …`, `remove NAME`, `activate NAME`, `list`.

    An active procedure is part of its session's context. Defining an existing name creates the next version.
    """
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    if owner is None:
        raise usage("the owner of the procedure is missing: give --user, or --scope and --id")
    if what == "list":
        _list(context, "procedures", RecordSelection(tenant, owner=owner, ceiling="secret"), as_json=as_json)
        return
    if name is None:
        raise usage(f"usage: memstream procedure {what} NAME …")
    target = EditTarget(tenant, owner=owner)
    given: dict[str, object] = {"name": name}
    arguments: type[Contract] = procedures.ProcedureRemove
    match what:
        case "define":
            given |= {"trigger": trigger, "steps": steps, "reason": reason}
            arguments = procedures.ProcedureDefine
        case "remove":
            given |= {"reason": reason}
        case _:
            if session is None:
                raise usage(f"procedure {what} needs --user and --session: the session that uses the procedure")
            given |= {"owner": owner}
            arguments = procedures.ProcedureActivate
            target = EditTarget(tenant, session=_session(_user_of(user), session))
    args = options.checked(lambda: arguments.model_validate(given))
    tell(_sent(context, f"procedures.{what}", args, target), as_json=as_json)


# ------------------------------------------------------------------------------------------------ groups
def _members(given: tuple[str, ...]) -> tuple[Owner, ...]:
    """Parse members like `user:u1`. Raises CommandFailed (exit 2) that names an invalid member."""
    found: list[Owner] = []
    for each in given:
        scope, _, member = each.partition(":")
        if scope not in ("user", "agent") or not member:
            raise usage(f"--member {each}: write user:ID or agent:ID")
        found.append(options.checked(lambda scope=scope, member=member: Owner(scope=scope, id=member)))  # type: ignore[misc]
    return tuple(found)


@click.command()
@click.argument("what", type=click.Choice(["define", "attach", "detach", "remove", "list"]))
@click.argument("group_id", required=False, type=options.GIVEN_ID)
@options.tenant
@click.option("--description", default="", help="Purpose of the group (define).")
@click.option("--member", "members", multiple=True, help="user:ID or agent:ID; may be repeated (attach, detach).")
@click.option("--fact", "facts", multiple=True, help="Id of a fact to share; may be repeated (attach, detach).")
@click.option(
    "--procedure", "shared", multiple=True, help="Id of a procedure to share; may be repeated (attach, detach)."
)
@click.option("--of", "member", help="List only groups with this member: user:ID or agent:ID (list).")
@options.reason
@options.as_json
@pass_context
def group(
    context: CommandContext,
    what: str,
    group_id: str | None,
    tenant: str,
    description: str,
    members: tuple[str, ...],
    facts: tuple[str, ...],
    shared: tuple[str, ...],
    member: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Share memory in a group. Members read the group's own memory and the records attached to the group.

    After detach, the next read of a member no longer returns the record.
    """
    if what == "list":
        owner = _members((member,))[0] if member else None
        _list(context, "groups", RecordSelection(tenant, owner=owner, ceiling="secret"), as_json=as_json)
        return
    if group_id is None:
        raise usage(f"usage: memstream group {what} GROUP …")
    target = EditTarget(tenant, owner=Owner(scope="group", id=group_id))
    who = _members(members)

    def args() -> Contract:
        match what:
            case "define":
                return groups.GroupDefine(description=description)
            case "remove":
                return groups.GroupRemove(reason=reason)
            case _:
                return groups.GroupAttach(members=who, fact_ids=facts, procedure_ids=shared, reason=reason)

    tell(_sent(context, f"groups.{what}", options.checked(args), target), as_json=as_json)


# ------------------------------------------------------------------------------------------------ helpers
def _session(user: str, session: str) -> SessionRef:
    return SessionRef(user_id=user, session_id=session)


def _user_of(user: str | None) -> str:
    if user is None:
        raise usage("--session needs --user: a session belongs to a user")
    return user


def _sent(context: CommandContext, kind: str, args: Contract, target: EditTarget) -> EditAnswer:
    async def work() -> EditAnswer:
        async with edit_session(context.settings, context.policy, purpose=kind.partition(".")[0]) as editing:
            return await editing.send(kind, args, target)

    return run(work())


def _list(
    context: CommandContext,
    what: str,
    selection: RecordSelection,
    *,
    as_json: bool,
    states: tuple[TaskState, ...] = (),
) -> None:
    rows = run(_rows(context.settings, what, selection, states))
    if as_json:
        for row in rows:
            console.line(row)
        return
    columns = COLUMNS[what]
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    console.table(columns, cells, empty=f"tenant {selection.tenant_id} has no {what} that match", text=TEXT[what])


async def _rows(
    settings: Settings, what: str, selection: RecordSelection, states: tuple[TaskState, ...]
) -> list[dict[str, JsonValue]]:
    async with open_ports(settings, purpose=what) as ports:
        reader = RecordReader(store=ports.store)
        found: Sequence[BaseModel]
        if what == "blocks":
            found = (await reader.blocks(selection, limit=PAGE_MAX)).items
        elif what == "tasks":
            found = (await reader.tasks(selection, states=states, limit=PAGE_MAX)).items
        elif what == "groups":
            found = (await reader.groups(selection, limit=PAGE_MAX)).items
        else:
            found = (await reader.procedures(selection, limit=PAGE_MAX)).items
        return [each.model_dump(mode="json") for each in found]


def _cell(value: JsonValue) -> str:
    if isinstance(value, list):
        return "; ".join(":".join(map(str, each.values())) if isinstance(each, dict) else str(each) for each in value)
    return "" if value is None else str(value)
