"""`memstream mcp`: memory of one user as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import cast

import click
import structlog
from anyio import AsyncFile
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

from ... import __version__
from ...memory.policies import MemoryPolicy
from ...schemas.tools import TOOLS_BY_NAME
from ...schemas.turns import SENSITIVITIES
from ...tools.audit_topic import AuditPublisher
from ...tools.mcp_resources import UserResources
from ...tools.mcp_server import MemoryServer, RequestContext, session_of_meta
from ...tools.tool_port import ToolIdentity
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..process.account import account
from ..process.json_rpc_lines import LineError, read_line
from ..process.line_reader import whole_lines
from ..process.signals import until_stopped
from ..wiring.command_runs import start_audit
from ..wiring.memory_services import memory_services
from ..wiring.server import ServerParts, recall_publisher, server_parts
from ..wiring.settings import Settings
from ..wiring.stages import utc_now

log = structlog.get_logger(__name__)
SOURCE = "mcp"
Send = Callable[[SessionMessage], Awaitable[None]]


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, help="The session of the agent; a request may name another in _meta.")
@click.option("--agent", type=options.GIVEN_ID, help="The agent, for memory of the scope agent.")
@click.option("--tools", "tool_names", help="Offer only these tools: names separated by commas. [default: all]")
@click.option(
    "--ceiling",
    type=click.Choice(SENSITIVITIES),
    default="internal",
    show_default=True,
    help="Highest sensitivity that the agent may read.",
)
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
    """Serve the memory of one user to an agent over the Model Context Protocol (MCP).

    A host such as Claude Desktop starts this command. Standard output carries only the protocol; messages go to
    stderr. With an embedded folder, the command runs the stages itself, or uses the process that holds the folder. It
    ends at the end of its input or on SIGTERM; everything that it accepted before is in the log.
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
    start_audit(context.settings)
    raise SystemExit(run(_serve(context.settings, context.policy, identity)))


def _named(given: str | None) -> frozenset[str] | None:
    """Return the named tools, or None for all. Raises CommandFailed (exit 2) if a name is unknown."""
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
        async with (
            server_parts(settings, policy, with_stages=False) as parts,
            recall_publisher(parts, policy) as told,
            AuditPublisher(log=parts.log).running(),
        ):
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
            answers = _Answers()
            read = cast("AsyncFile[str]", _incoming(ended, answers))
            async with stdio_server(stdin=read) as (incoming, outgoing):
                answers.begin(outgoing.send)
                work = asyncio.create_task(server.run(incoming, outgoing, server.create_initialization_options()))
                try:
                    return await _until_the_end(work, parts, stopping)
                finally:
                    ended.set()

    return await until_stopped(serving, name="mcp")


async def _until_the_end(work: asyncio.Task[None], parts: ServerParts, stopping: asyncio.Event) -> int:
    """Serve until the input ends, a signal arrives, or a stage in this process ends. Then drain the stages."""
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


class _Answers:
    """Sender of error answers to invalid lines. The SDK does not receive these lines."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._send: Send | None = None

    def begin(self, send: Send) -> None:
        """Set the function that sends answers. An answer before this call waits for the function."""
        self._send = send
        self._begun.set()

    async def send(self, error: LineError) -> None:
        await self._begun.wait()
        assert self._send is not None  # `begin` has set it
        log.warning("mcp_line_refused", code=error.code, why=error.message)
        data = ErrorData(code=error.code, message=error.message)
        await self._send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=error.id, error=data)))


async def _incoming(ended: asyncio.Event, answers: _Answers) -> AsyncIterator[str]:
    """Yield the messages on standard input until the input or the command ends. Answer an invalid line with an error.

    This reader replaces the SDK's reader, which blocks a thread until the next line arrives. With a blocked thread, a
    signal could not end the command.
    """
    read = whole_lines(sys.stdin.buffer)
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
        for each in read_line(raw):
            if isinstance(each, LineError):
                await answers.send(each)
            else:
                yield each.text


async def _stages(parts: ServerParts, draining: asyncio.Event) -> int:
    if parts.stages is None:
        await draining.wait()
        return 0
    return await parts.stages.run(stopping=draining)
