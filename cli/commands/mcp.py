"""`memstream mcp`: memory of one user as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import click
from anyio import AsyncFile
from mcp.server.stdio import stdio_server

from ... import __version__
from ...memory.policies import MemoryPolicy
from ...schemas.tools import TOOLS_BY_NAME
from ...schemas.turns import SENSITIVITIES
from ...tools.mcp_resources import UserResources
from ...tools.mcp_server import MemoryServer, RequestContext, session_of_meta
from ...tools.tool_port import ToolIdentity
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import logs
from ..process.account import account
from ..process.line_reader import lines
from ..process.signals import until_stopped
from ..wiring.memory_services import memory_services
from ..wiring.server import ServerParts, recall_publisher, server_parts
from ..wiring.settings import Settings
from ..wiring.stages import utc_now

SOURCE = "mcp"


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, help="The session of the agent; a request may name another in _meta.")
@click.option("--agent", type=options.GIVEN_ID, help="The agent, for memory of the scope agent.")
@click.option("--tools", "tool_names", help="Offer only these tools: names with commas between.")
@click.option("--ceiling", type=click.Choice(SENSITIVITIES), default="internal", show_default=True)
@pass_context
def mcp(
    context: CommandContext,
    tenant: str,
    user: str,
    session: str | None,
    agent: str | None,
    tool_names: str | None,
    ceiling: str,
) -> None:
    """Serve the memory of one user to an agent, by the Model Context Protocol.

    A host such as Claude Desktop starts this command. Standard output carries the protocol alone; messages go to
    stderr. In a folder it runs the stages itself, or joins the process that holds the folder. It ends with its input,
    or on SIGTERM; what was accepted until then is in the log.
    """
    identity = ToolIdentity(
        tenant_id=tenant,
        user_id=user,
        caller=f"cli:{account()}",
        session_id=session,
        agent_id=agent,
        ceiling=next(each for each in SENSITIVITIES if each == ceiling),
        tools=_named(tool_names),
        admin=True,
    )
    try:
        logs.open_audit(context.settings.audit_log)
    except OSError as error:
        raise usage(f"MEMSTREAM_AUDIT_LOG={context.settings.audit_log}: {error.strerror or error}") from error
    raise SystemExit(run(_serve(context.settings, context.policy, identity)))


def _named(given: str | None) -> frozenset[str] | None:
    """Return the named tools. CommandFailed (exit 2): one is unknown."""
    if given is None:
        return None
    names = frozenset(each.strip() for each in given.split(",") if each.strip())
    unknown = sorted(names - TOOLS_BY_NAME.keys())
    if unknown or not names:
        what = f"there is no tool {unknown[0]}" if unknown else "no tool is named"
        raise usage(f"--tools: {what}; there are {', '.join(TOOLS_BY_NAME)}")
    return names


async def _serve(settings: Settings, policy: MemoryPolicy, identity: ToolIdentity) -> int:
    async def serving(running: asyncio.Event, stopping: asyncio.Event) -> int:
        async with server_parts(settings, policy, with_stages=False) as parts, recall_publisher(parts, policy) as told:
            memory = memory_services(
                log=parts.log,
                store=parts.store,
                embedder=parts.embedder,
                reranker=parts.reranker,
                policies=parts.policies,
                publisher=told,
                source=SOURCE,
                selector=parts.selector,
            )

            async def identify(request: RequestContext) -> ToolIdentity:
                named = session_of_meta(request.meta)
                return identity if named is None else replace(identity, session_id=named)

            server = MemoryServer(
                tools=memory.tools,
                contexts=memory.contexts,
                resources=UserResources(memory.record_reader).all(),
                identify=identify,
                now=utc_now,
                version=__version__,
            ).server()
            running.set()
            ended = asyncio.Event()
            async with stdio_server(stdin=cast("AsyncFile[str]", _incoming(ended))) as (incoming, outgoing):
                work = asyncio.create_task(server.run(incoming, outgoing, server.create_initialization_options()))
                try:
                    return await _until_the_end(work, parts, stopping)
                finally:
                    ended.set()

    return await until_stopped(serving, name="mcp")


async def _until_the_end(work: asyncio.Task[None], parts: ServerParts, stopping: asyncio.Event) -> int:
    """Serve until the input ends, a signal comes, or a stage that runs here ends. Then drain the stages."""
    draining = asyncio.Event()
    stages = asyncio.create_task(_stages(parts, draining))
    asked = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((work, stages, asked), return_when=asyncio.FIRST_COMPLETED)
        draining.set()
        return await stages
    finally:
        for task in (work, asked, stages):
            task.cancel()
        await asyncio.wait((work, asked, stages))


async def _incoming(ended: asyncio.Event) -> AsyncIterator[str]:
    """Yield the lines of standard input, until it or the command ends. The reader of the SDK waits in a thread for the
    next line, so that a signal would end nothing."""
    read = lines(sys.stdin.buffer)
    ending = asyncio.create_task(ended.wait())
    while True:
        line = asyncio.ensure_future(anext(read, None))
        await asyncio.wait((line, ending), return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            return
        raw = line.result()
        if raw is None:
            ending.cancel()
            return
        yield raw.decode("utf-8", "replace")


async def _stages(parts: ServerParts, draining: asyncio.Event) -> int:
    if parts.stages is None:
        await draining.wait()
        return 0
    return await parts.stages.run(stopping=draining)
