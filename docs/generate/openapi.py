"""OpenAPI document of the HTTP interface: api/openapi.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from memstream.api.app import Services, create_app
from memstream.api.credentials import Credentials
from memstream.api.openapi import document

FILE = Path(__file__).resolve().parents[2] / "api" / "openapi.json"


def bare_app() -> FastAPI:
    """Return the application without services, for its OpenAPI document."""
    nothing: Any = None
    services = Services(
        sender=nothing,
        commands=nothing,
        followers=nothing,
        turn_followers=nothing,
        recall=nothing,
        contexts=nothing,
        record_reader=nothing,
        profiles=nothing,
        fact_tracer=nothing,
        recall_reports=nothing,
        turn_tracer=nothing,
        stage_lags=nothing,
        oldest_unread=nothing,
        verbatim_reader=nothing,
        exporter=nothing,
        importer=nothing,
        audit_reader=nothing,
        letter_reader=nothing,
        letter_redrives=nothing,
        secrets=nothing,
        erasures=nothing,
        editor=nothing,
        tools=nothing,
        readiness=nothing,
        registry=CollectorRegistry(),
    )
    return create_app(services, credentials=Credentials(()))


def text(app: FastAPI) -> str:
    return json.dumps(document(app), indent=2, ensure_ascii=False) + "\n"


def differences(file: Path = FILE) -> list[str]:
    """Return the file's name if its text differs from the code."""
    there = file.read_text(encoding="utf-8") if file.is_file() else None
    return [] if there == text(bare_app()) else [f"{file.name}: differs from the code"]


def write(file: Path = FILE) -> None:
    file.write_text(text(bare_app()), encoding="utf-8")
