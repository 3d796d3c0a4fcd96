"""Generator of api/openapi.json: `python -m memstream.api.generate [--check]` writes or compares the document."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from .app import Services, create_app
from .credentials import Credentials
from .openapi import document

FILE = Path(__file__).resolve().parent / "openapi.json"


def bare_app() -> FastAPI:
    """Return the application without services, for its OpenAPI document."""
    nothing: Any = None
    services = Services(
        sender=nothing,
        commands=nothing,
        followers=nothing,
        recall=nothing,
        contexts=nothing,
        record_reader=nothing,
        fact_tracer=nothing,
        verbatim_reader=nothing,
        editor=nothing,
        tools=nothing,
        readiness=nothing,
        registry=CollectorRegistry(),
    )
    return create_app(services, credentials=Credentials(()))


def text(app: FastAPI) -> str:
    return json.dumps(document(app), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python -m memstream.api.generate [--check]", file=sys.stderr)
        return 2
    expected = text(bare_app())
    if arguments == ["--check"]:
        if not FILE.is_file() or FILE.read_text(encoding="utf-8") != expected:
            print(f"{FILE.name}: differs from the code\nmend: python -m memstream.api.generate", file=sys.stderr)
            return 1
        return 0
    FILE.write_text(expected, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
