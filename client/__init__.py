"""Client library for chat services. It needs pydantic and httpx; Kafka needs `memstream[kafka]`.

from memstream.client import STATE, connect

async with connect("kafka://localhost:9092", api="http://localhost:8000", token="mst_…") as memory:
    await memory.produce({"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1",
                          "messages": [{"role": "user", "content": "I joined Stripe."}]})
    recalled = await memory.api.recall("where does she work?", tenant_id="acme", user_id="u1")
    async for update in memory.updates(after=stored_position or STATE, tenant_id="acme"):
        ...                      # update.fact, update.event; then store update.position
"""

from ..streams.log.kafka_security import KafkaSecurity
from .blocking import BlockingMemory, connect_blocking
from .edits import Accepted, Reflected, ReviewedFact
from .errors import (
    ClientError,
    InvalidTurn,
    Misconfigured,
    NotFound,
    PositionLost,
    Refused,
    TooLarge,
    TurnRefused,
    Unavailable,
)
from .http_client import Api, Context, Erasure, Recalled, SaidTurn, TurnReport, Verbatim
from .import_file import ImportRefused
from .memory import Memory, connect
from .tools import ToolCallError, Tools
from .updates import BEGINNING, NOW, STATE, Update

__all__ = [
    "BEGINNING",
    "NOW",
    "STATE",
    "Accepted",
    "Api",
    "BlockingMemory",
    "ClientError",
    "Context",
    "Erasure",
    "ImportRefused",
    "InvalidTurn",
    "KafkaSecurity",
    "Memory",
    "Misconfigured",
    "NotFound",
    "PositionLost",
    "Recalled",
    "Reflected",
    "Refused",
    "ReviewedFact",
    "SaidTurn",
    "TooLarge",
    "ToolCallError",
    "Tools",
    "TurnRefused",
    "TurnReport",
    "Unavailable",
    "Update",
    "Verbatim",
    "connect",
    "connect_blocking",
]
