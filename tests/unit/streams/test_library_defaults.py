"""Every setting of Faust and aiokafka that docs/design/library-defaults.md lists has the value of that page."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import RequestTimedOutError
from aiokafka.producer.sender import SendProduceReqHandler

from memstream.streams.faust.app import AppSettings, create_app

PAGE = Path(__file__).resolve().parents[3] / "docs/design/library-defaults.md"
ROW = re.compile(r"^\| (\w+) \| (\w+) \| (\S+) \|", re.MULTILINE)
ROWS = [row for row in ROW.findall(PAGE.read_text()) if row[0] != "object"]


@pytest.fixture
async def objects(tmp_path: Path) -> dict[str, Any]:
    """The objects of one worker by their name on the page. Nothing is connected."""
    app = create_app(name="memory-test", broker="kafka://127.0.0.1:1", datadir=tmp_path, settings=AppSettings())
    consumer = app.consumer._thread._create_worker_consumer(app.transport)
    producer = app.producer._new_producer()
    return {
        "faust": app.conf,
        "consumer": consumer,
        "client": consumer._client,
        "producer": producer,
        "sender": producer._sender,
        "accumulator": producer._message_accumulator,
        "txn": producer._txn_manager,
    }


def text_of(value: object) -> str:
    return str(getattr(value, "value", value))


def test_the_page_has_rows() -> None:
    assert len(ROWS) == PAGE.read_text().count("\n| ") - 1 > 30


@pytest.mark.parametrize(("where", "name", "value"), ROWS, ids=[f"{where}.{name}" for where, name, _ in ROWS])
async def test_a_setting_is_as_the_page_says(objects: dict[str, Any], where: str, name: str, value: str) -> None:
    assert text_of(getattr(objects[where], name)) == value


async def test_the_producer_is_idempotent(objects: dict[str, Any]) -> None:
    assert objects["txn"] is not None
    assert objects["txn"].transactional_id is None
    expired = SimpleNamespace(expired=lambda: True)
    handler = SimpleNamespace(_sender=objects["sender"])
    assert SendProduceReqHandler._can_retry(cast(Any, handler), RequestTimedOutError(), expired)


async def test_for_aiokafka_a_fetch_is_always_under_way(objects: dict[str, Any]) -> None:
    """A spare fetches nothing, and must stay in its group."""
    objects["consumer"]._subscription._last_fetch_ended -= 1e6
    assert objects["consumer"]._subscription.fetcher_idle_time == 0
