"""What a chat service imports.

from memstream.client import STATE, connect

async with connect("kafka://localhost:9092") as memory:
    await memory.produce({"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1",
                          "messages": [{"role": "user", "content": "I joined Stripe."}]})
    async for update in memory.updates(after=stored_position or STATE, tenant_id="acme"):
        ...                      # update.fact, update.event; then store update.position
"""

from .errors import ClientError, InvalidTurn, Misconfigured, PositionLost, TooLarge, Unavailable
from .memory import Memory, connect
from .updates import BEGINNING, NOW, STATE, Update

__all__ = [
    "BEGINNING",
    "NOW",
    "STATE",
    "ClientError",
    "InvalidTurn",
    "Memory",
    "Misconfigured",
    "PositionLost",
    "TooLarge",
    "Unavailable",
    "Update",
    "connect",
]
