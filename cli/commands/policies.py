"""`memstream policies show|set|remove|check`: policies of tenants (docs/reference/policies.md)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ...memory.policies import MemoryPolicy
from ...memory.tenant_policies import PolicyRefused, TenantPolicies, flat_settings, policy_of, read_policy
from ...schemas import ids
from ...schemas.cloudevents import CloudEvent, rfc3339
from ...schemas.text_files import toml_of
from ...schemas.topics import POLICIES
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..process.policy_reader import PolicyReader, PolicyState
from ..wiring.broker import opened_log, require_memory
from ..wiring.settings import Settings

SOURCE = "/memstream/cli"
FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))


@click.group()
def policies() -> None:
    """Show, check and set policies of tenants: settings that override `[memory]`, and the personas of agents."""


@policies.command("show")
@click.option("--tenant", type=options.GIVEN_ID, help="Show only the policy of this tenant. [default: all]")
@click.option("--all", "whole", is_flag=True, help="Show every setting, including settings with their default.")
@options.as_json
@pass_context
def show(context: CommandContext, tenant: str | None, whole: bool, as_json: bool) -> None:
    """Show the policies in force, and refused policies. Exit 0 even if a policy was refused.

    The output lists the deployment's settings that differ from the defaults. For each tenant it lists the settings that
    differ from the deployment's.
    """
    reader = run(_read(context))
    names = sorted(reader.states) if tenant is None else [tenant]
    if as_json:
        for name in names:
            console.line(_fields(name, reader))
        return
    deployment = context.policy
    _print("the deployment", deployment, MemoryPolicy(), whole=whole, same="every setting has its default")
    for name in names:
        state = reader.states.get(name, PolicyState())
        since = "" if state.since is None or state.in_force is None else f", since {rfc3339(state.since)}"
        same = "no policy of its own: the deployment's applies" if state.in_force is None else "as the deployment"
        _print(f"{name}{since}", reader.policies.of(name), deployment, whole=whole, same=same)
        _print_refused(state)
    if not reader.states:
        console.advice("no tenant has a policy of its own: the deployment's applies")


@policies.command("check")
@FILE
@pass_context
def check(context: CommandContext, file: Path) -> None:
    """Check FILE (JSON, or TOML with the suffix .toml) against this deployment's policy. Nothing is sent."""
    _checked(context, file)
    console.advice(f"{file}: valid")


@policies.command("set")
@options.tenant
@FILE
@pass_context
def set_policy(context: CommandContext, tenant: str, file: Path) -> None:
    """Set a tenant's policy from FILE, in place of its last policy. An invalid policy is refused (exit 2)."""
    table = _checked(context, file)
    run(_send(context.settings, tenant, json.dumps(table, ensure_ascii=False).encode()))
    console.advice(f"the policy of {tenant} is sent; each process applies it within seconds, without a restart")


@policies.command("remove")
@options.tenant
@pass_context
def remove(context: CommandContext, tenant: str) -> None:
    """Remove a tenant's policy. The deployment's policy applies again."""
    run(_send(context.settings, tenant, None))
    console.advice(f"{tenant} has no policy of its own any more")


def _checked(context: CommandContext, file: Path) -> Mapping[str, Any]:
    """Return the policy in a file. Raises CommandFailed (exit 2) that lists every problem."""
    try:
        with click.open_file(str(file), "rb") as stream:
            value = stream.read()
        table = toml_of(value) if file.suffix == ".toml" else read_policy(value)
        policy_of(table, context.policy)
    except OSError as error:
        raise usage(f"{file}: cannot be read: {error.strerror or error}") from error
    except PolicyRefused as refused:
        raise usage("\n".join(f"{file}: {problem}" for problem in refused.problems)) from refused
    except ValueError as error:
        raise usage(f"{file}: {error}") from error
    return table


async def _send(settings: Settings, tenant: str, value: bytes | None) -> None:
    event = CloudEvent(str(uuid.uuid4()), SOURCE, "memstream.policy.v1", tenant, datetime.now(UTC))
    async with opened_log(settings) as log:
        if await log.partitions(POLICIES.name) is None:
            raise usage(f"there is no topic {POLICIES.name}: run `memstream topics create`")
        await log.append(POLICIES.name, key=ids.encode(tenant).encode(), value=value, headers=event.headers())


async def _read(context: CommandContext) -> PolicyReader:
    require_memory(context.settings.broker_folder)
    async with opened_log(context.settings, make_topics=False) as log:
        reader = PolicyReader(log, TenantPolicies(context.policy))
        await reader.read_whole()
        return reader


def _fields(tenant: str, reader: PolicyReader) -> dict[str, Any]:
    state = reader.states.get(tenant, PolicyState())
    return {
        "tenant_id": tenant,
        "policy": None if state.in_force is None else dict(state.in_force),
        "since": None if state.since is None else rfc3339(state.since),
        "refused": list(state.refused),
        "refused_at": None if state.refused_at is None else rfc3339(state.refused_at),
        "in_force": flat_settings(reader.policies.of(tenant)),
    }


def _print(whose: str, policy: MemoryPolicy, base: MemoryPolicy, *, whole: bool, same: str) -> None:
    """Print the settings of a policy that differ from `base`. With `whole`, print all settings."""
    settings, usual = flat_settings(policy), flat_settings(base)
    changed = {name: value for name, value in settings.items() if name not in usual or value != usual[name]}
    console.say(console.printable(f"{whose}: {same}" if not changed else f"{whose}:"))
    for name, value in (settings if whole else changed).items():
        was = f"  (instead of {_value(usual[name])})" if name in changed and name in usual else ""
        console.say(console.printable(f"  {name} = {_value(value)}{was}"))


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _print_refused(state: PolicyState) -> None:
    if state.refused:
        at = "" if state.refused_at is None else f", at {rfc3339(state.refused_at)}"
        console.say(f"  a later policy was refused{at}:")
    for problem in state.refused:
        console.say(console.printable(f"  - {problem}"))
