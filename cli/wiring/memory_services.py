"""Services that HTTP and MCP share: recall, contexts, records, commands, over one log and one store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...adapters.ports import Embedder, Reranker, VectorStore
from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.tenant_policies import TenantPolicies
from ...recall.context import ContextService
from ...recall.export.exporter import MemoryExporter
from ...recall.llm_reranker import LlmReranker
from ...recall.model_choice import ModelChoice
from ...recall.profile import ProfileReader
from ...recall.provenance import FactTracer
from ...recall.recall_events import PublishingRecall, RecallPublisher
from ...recall.record_reader import RecordReader
from ...recall.search import compares_meanings
from ...recall.service import RecallPort, RecallService, TierFilter
from ...recall.shared import SharedRecall
from ...recall.tenant_recall import TenantRecall
from ...recall.turn_trace import TurnTracer
from ...recall.verbatim import VerbatimReader
from ...streams.log.port import Log
from ...streams.senders.commands import CommandPort, CommandSender
from ...tools.editor import MemoryEditor, ProtectedCommands
from ...tools.importing.importer import MemoryImporter
from ...tools.tool_reads import ToolReads
from ...tools.tool_writes import ToolWrites
from ...tools.toolbox import ToolBox
from .secret_detectors import new_secret_filter
from .stages import utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryServices:
    """Services that read and edit memory in this process."""

    recall: RecallPort
    contexts: ContextService
    record_reader: RecordReader
    profiles: ProfileReader
    fact_tracer: FactTracer
    turn_tracer: TurnTracer
    verbatim_reader: VerbatimReader
    exporter: MemoryExporter
    importer: MemoryImporter
    commands: CommandPort
    editor: MemoryEditor
    tools: ToolBox
    secrets: SecretFilter


def memory_services(
    *,
    log: Log,
    store: VectorStore,
    embedder: Embedder,
    reranker: Reranker | None,
    policies: TenantPolicies,
    publisher: RecallPublisher,
    source: str,
    selector: LlmReranker | None = None,
) -> MemoryServices:
    """Build the services.

    Args:
        source: part of `ce_source` of the records that the services send.
        selector: model that selects the answers of the tool `recall`. With None, the answers are ranked.
    """
    tiers = policies.deployment.tiers

    def service(policy: MemoryPolicy) -> RecallPort:
        return RecallService(
            store=store, embedder=embedder, policy=policy.recall, reranker=reranker, locale=policy.conflict.locale
        )

    def choice(policy: MemoryPolicy) -> RecallPort:
        assert selector is not None
        return ModelChoice(
            store=store,
            embedder=embedder,
            ranked=service(policy),
            selector=selector,
            policy=policy.recall,
            locale=policy.conflict.locale,
        )

    def shared(make: Callable[[MemoryPolicy], RecallPort]) -> SharedRecall:
        return SharedRecall(inner=TierFilter(TenantRecall(policies=policies, make=make), tiers), groups=reading)

    reading = RecordReader(store=store)
    profiles = ProfileReader(store=store, policies=policies)
    kept = shared(service)
    published = PublishingRecall(inner=kept, publisher=publisher)
    chosen = None if selector is None else PublishingRecall(inner=shared(choice), publisher=publisher)
    verbatim = VerbatimReader(store=store, log=log, policies=policies)
    secrets = new_secret_filter(policies.deployment)
    sender = CommandSender(log, source)
    commands = ProtectedCommands(sender, secrets)
    editor = MemoryEditor(commands=sender, now=utc_now, secrets=secrets)
    return MemoryServices(
        recall=published,
        contexts=ContextService(
            recall=kept,
            digests=reading if tiers.digest else None,
            held=reading,
            store=store,
            meanings=compares_meanings(embedder),
            profiles=profiles,
            policies=policies,
            publisher=publisher,
        ),
        record_reader=reading,
        profiles=profiles,
        fact_tracer=FactTracer(store=store, log=log),
        turn_tracer=TurnTracer(store=store, log=log, deployment=policies.deployment),
        verbatim_reader=verbatim,
        exporter=MemoryExporter(
            store=store, log=log, embedder=embedder.identity.name, may_show=verbatim.may_be_shown, now=utc_now
        ),
        importer=MemoryImporter(log=log, store=store, commands=sender, now=utc_now, secrets=secrets),
        commands=commands,
        editor=editor,
        tools=ToolBox(
            reads=ToolReads(
                recall=published,
                records=reading,
                profiles=profiles,
                verbatim=verbatim,
                now=utc_now,
                policies=policies,
                choice=chosen,
            ),
            writes=ToolWrites(editor=editor, commands=commands, records=reading, now=utc_now),
            policies=policies,
        ),
        secrets=secrets,
    )
