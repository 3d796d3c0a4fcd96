"""`/v1/erasures`: who may erase whom, and what is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.api.credentials import Credentials
from memstream.schemas.erasures import ErasureReceipt
from memstream.tools.erasure.runs import ErasureState
from tests.support.api_server import app_over, called, entry

AT = datetime(2026, 11, 27, tzinfo=UTC)
RECEIPT = ErasureReceipt(
    erasure_id="e2",
    tenant_id="acme",
    user_hash="a" * 64,
    began_at=AT,
    ended_at=AT,
    rounds=1,
    places=(),
    texts=0,
    logs=(),
)
TOKENS = Credentials(
    [
        entry("eraser", scopes=["memory:erase"]),
        entry("rival", scopes=["memory:erase"], tenants=["rival"]),
        entry("of-u1", scopes=["memory:erase"], users=["u1"]),
        entry("admin", scopes=["memory:read", "memory:write", "memory:admin"]),
    ]
)


class Erasures:
    def __init__(self) -> None:
        self.begun: list[tuple[str, str, str]] = []

    async def begin(self, tenant_id: str, user_id: str, *, issued_by: str) -> ErasureState:
        self.begun.append((tenant_id, user_id, issued_by))
        return ErasureState(erasure_id="e1", tenant_id=tenant_id, state="open")

    async def state(self, erasure_id: str) -> ErasureState | None:
        known = {
            "e1": ErasureState(erasure_id="e1", tenant_id="acme", state="open", why="the observer is away"),
            "e2": ErasureState(erasure_id="e2", tenant_id="acme", state="closed", receipt=RECEIPT),
        }
        return known.get(erasure_id)


async def post(erasures: Erasures, body: dict[str, Any], token: str) -> Any:
    async with called(app_over(erasures=erasures, credentials=TOKENS), token=token) as api:
        return await api.post("/v1/erasures", json=body)


async def get(erasure_id: str, token: str) -> Any:
    async with called(app_over(erasures=Erasures(), credentials=TOKENS), token=token) as api:
        return await api.get(f"/v1/erasures/{erasure_id}")


async def test_an_erasure_is_accepted_when_its_marker_is_durable() -> None:
    erasures = Erasures()
    answer = await post(erasures, {"user_id": "ana"}, "eraser")
    assert (answer.status_code, answer.json()["erasure_id"], answer.json()["state"]) == (202, "e1", "open")
    assert erasures.begun == [("acme", "ana", "eraser")]


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        ("admin", {"user_id": "ana"}, 403),
        ("of-u1", {"user_id": "ana"}, 403),
        ("of-u1", {"user_id": "u1"}, 202),
        ("rival", {"tenant_id": "acme", "user_id": "ana"}, 403),
        ("eraser", {}, 422),
        ("eraser", {"user_id": ""}, 422),
        ("eraser", {"user_id": "ana", "everything": True}, 422),
    ],
)
async def test_who_may_erase_whom(token: str, body: dict[str, Any], status: int) -> None:
    erasures = Erasures()
    assert (await post(erasures, body, token)).status_code == status
    assert bool(erasures.begun) is (status == 202)


async def test_the_state_of_an_erasure_is_shown_to_its_tenant() -> None:
    answer = await get("e2", "eraser")
    assert (answer.status_code, answer.json()["receipt"]["user_hash"]) == (200, "a" * 64)
    assert (await get("e1", "eraser")).json()["why"] == "the observer is away"
    assert [
        (await get(each, token)).status_code for each, token in (("e2", "rival"), ("e3", "eraser"), ("e2", "admin"))
    ] == [
        404,
        404,
        403,
    ]
