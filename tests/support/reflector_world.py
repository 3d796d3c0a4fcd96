"""The reflector on the stage bench, and short builders of its records."""

from __future__ import annotations

from typing import Any

from memstream.agents.reflector.stage import Reflector
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.schemas.observations import Observation, Observed, ObservedBy
from memstream.schemas.topics import COMMANDS, OBSERVATIONS
from memstream.streams.log.port import Record

from .embedded_stage import PARTITIONS, Bench
from .record_builders import NOW, OWNER, observation, observed

MODEL = ObservedBy(model="scripted", prompt="observe/v1:sha256:1234")


def reflector(bench: Bench, policy: MemoryPolicy | None = None) -> Reflector:
    return Reflector(
        store=bench.store,
        embedder=bench.embedder,
        calls=bench.calls,
        metrics=bench.metrics,
        send_durably=bench.send_durably,
        policies=TenantPolicies(policy or MemoryPolicy()),
        partitions=PARTITIONS,
        now=bench.now,
        secrets=SecretFilter(),
        committed=bench.committed,
    )


class Talk:
    """Turns of one session, numbered."""

    def __init__(self, bench: Bench, **fields: Any) -> None:
        self.bench = bench
        self.fields = fields
        self.number = 0

    def says(self, content: str, **fields: Any) -> Observation:
        return observation(content, turn=f"t{self.number + 1}", session=self._session(), **fields)

    def turn(self, *observations: Observation, **fields: Any) -> Record:
        self.number += 1
        named = {"turn": f"t{self.number}", "number": self.number, "cause": MODEL} | self.fields | fields
        record: Observed = observed(*observations, **named)
        return self.bench.record(OBSERVATIONS.name, record.owner.key(record.tenant_id), record)

    async def tell(self, content: str, **fields: Any) -> Observation:
        """Deliver a turn with one observation to the reflector."""
        said = self.says(content, **fields)
        await self.bench.run(self.turn(said))
        return said

    def _session(self) -> str:
        get = self.fields.get
        return ids.session_key(get("tenant_id", "acme"), get("user_id", "u1"), get("session_id", "s1"))


def command(bench: Bench, *changes: dict[str, Any], command_id: str = "c1", **fields: Any) -> Record:
    defaults: dict[str, Any] = {
        "command_id": command_id,
        "kind": "facts.apply",
        "tenant_id": "acme",
        "owner": OWNER,
        "args": {"run_id": "r1", "changes": list(changes), "model": "big", "prompt": "consolidate/v1"},
        "issued_at": NOW,
    }
    made = Command(**(defaults | fields))
    return bench.record(COMMANDS.name, made.key, made)
