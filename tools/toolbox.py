"""The tools: one implementation for HTTP, MCP, function calling and adapters.

The arguments of a call are validated first. Then tool_reads.py or tool_writes.py executes the call. A write waits for
its result, so that the next read returns the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ..memory.tenant_policies import TenantPolicies
from ..schemas.base import Contract, explain
from ..schemas.tools import TOOLS, TOOLS_BY_NAME, ToolAccepted, ToolSpec
from .editor import EditRefused
from .tool_call import Call, WriteWaits
from .tool_port import ToolError, ToolIdentity
from .tool_reads import ToolReads
from .tool_writes import ToolWrites

PATIENCE: Final = 10.0
"""Seconds that a write waits for its result, unless the caller sets another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBox:
    """`ToolPort` that reads and edits memory. The policy of a tenant may list the tools that are offered (its pack)."""

    reads: ToolReads
    writes: ToolWrites
    policies: TenantPolicies

    async def offered(self, identity: ToolIdentity) -> Sequence[ToolSpec]:
        return [spec for spec in TOOLS if self._may(spec, identity)]

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        identity: ToolIdentity,
        key: str | None = None,
        patience: float | None = None,
    ) -> Contract:
        spec = TOOLS_BY_NAME.get(name)
        if spec is None or not self._may(spec, identity):
            offered = ", ".join(each.name for each in await self.offered(identity))
            raise ToolError(f"there is no tool {name[:64]!r} here; there are {offered}")
        given = {each: value for each, value in arguments.items() if value is not None}
        try:
            args = spec.args.model_validate(given)
        except ValidationError as error:
            raise ToolError(f"{name}: {explain(error)}") from None
        call = Call(identity=identity, key=key, patience=PATIENCE if patience is None else patience)
        try:
            return await self._run(name)(args, call)
        except WriteWaits as accepted:
            return ToolAccepted(accepted=accepted.command_id)
        except EditRefused as refused:
            raise ToolError(str(refused), code=refused.code) from None
        except ValueError as error:
            raise ToolError(str(error)) from None

    def _may(self, spec: ToolSpec, identity: ToolIdentity) -> bool:
        """Return whether the caller may call the tool. The pack of the tenant, the credential, and the guard of the
        tool decide."""
        pack = self.policies.of(identity.tenant_id).tools.pack
        named = [each for each in (pack or None, identity.tools) if each is not None]
        offered = all(spec.name in each for each in named) if named else spec.by_default
        allowed = (spec.effect == "read" or identity.may_write) and (spec.guard != "admin" or identity.admin)
        return offered and allowed

    def _run(self, name: str) -> Callable[[Any, Call], Awaitable[Contract]]:
        reads, writes = self.reads, self.writes
        runs: Mapping[str, Callable[[Any, Call], Awaitable[Contract]]] = {
            "memory_add": writes.add,
            "memory_update": writes.update,
            "memory_delete": writes.delete,
            "memory_merge": writes.merge,
            "memory_search": reads.search_memory,
            "memory_reflect": writes.reflect,
            "rehydrate_memory": reads.rehydrate,
            "block_append": writes.append_to_block,
            "block_replace": writes.replace_in_block,
            "block_rethink": writes.rethink_block,
            "fact_remember": writes.remember_fact,
            "fact_search": reads.search_facts,
            "profile": reads.read_profile,
            "fact_supersede": writes.supersede_fact,
            "fact_forget": writes.forget_fact,
            "recall_episodes": reads.recall_episodes,
            "conversation_search": reads.search_conversations,
            "procedure_list": reads.list_procedures,
            "procedure_activate": writes.activate_procedure,
            "recall": reads.recall_all,
        }
        return runs[name]
