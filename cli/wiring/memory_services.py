"""The services over a log and a store that HTTP and MCP share: recall, contexts, records, commands."""

from __future__ import annotations

from dataclasses import dataclass

from ...adapters.ports import Embedder, Reranker, VectorStore
from ...memory.policies import MemoryPolicy
from ...memory.tenant_policies import TenantPolicies
from ...recall.context import ContextService
from ...recall.provenance import FactTracer
from ...recall.recall_events import PublishingRecall, RecallPublisher
from ...recall.record_reader import RecordReader
from ...recall.service import RecallPort, RecallService, TierFilter
from ...recall.shared import SharedRecall
from ...recall.tenant_recall import TenantRecall
from ...recall.verbatim import VerbatimReader
from ...streams.engine.commands import CommandPort, CommandSender
from ...streams.log.port import Log
from ...tools.editor import MemoryEditor
from ...tools.tool_reads import ToolReads
from ...tools.tool_writes import ToolWrites
from ...tools.toolbox import ToolBox
from .stages import utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryServices:
    """What reads and edits memory in this process."""

    recall: RecallPort
    contexts: ContextService
    record_reader: RecordReader
    fact_tracer: FactTracer
    verbatim_reader: VerbatimReader
    commands: CommandPort
    editor: MemoryEditor
    tools: ToolBox


def memory_services(
    *,
    log: Log,
    store: VectorStore,
    embedder: Embedder,
    reranker: Reranker | None,
    policies: TenantPolicies,
    publisher: RecallPublisher,
    source: str,
) -> MemoryServices:
    """Build the services. `source` becomes part of `ce_source` of what they send."""
    tiers = policies.deployment.tiers

    def service(policy: MemoryPolicy) -> RecallPort:
        return RecallService(
            store=store, embedder=embedder, policy=policy.recall, reranker=reranker, locale=policy.conflict.locale
        )

    reading = RecordReader(store=store)
    kept = SharedRecall(inner=TierFilter(TenantRecall(policies=policies, make=service), tiers), groups=reading)
    published = PublishingRecall(inner=kept, publisher=publisher)
    verbatim = VerbatimReader(store=store, log=log, policies=policies)
    commands = CommandSender(log, source)
    editor = MemoryEditor(commands=commands, now=utc_now)
    return MemoryServices(
        recall=published,
        contexts=ContextService(
            recall=kept,
            digests=reading if tiers.digest else None,
            held=reading,
            policies=policies,
            publisher=publisher,
        ),
        record_reader=reading,
        fact_tracer=FactTracer(store=store, log=log),
        verbatim_reader=verbatim,
        commands=commands,
        editor=editor,
        tools=ToolBox(
            reads=ToolReads(recall=published, records=reading, verbatim=verbatim, now=utc_now, policies=policies),
            writes=ToolWrites(editor=editor, commands=commands, records=reading, now=utc_now),
            policies=policies,
        ),
    )
