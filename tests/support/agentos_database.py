"""Databases with the tables of AgentOS."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

TABLES: Final = {
    "memory_traces": "id, type, scope, content, embedding, strength, created_at, tags, emotions, metadata, deleted",
    "knowledge_nodes": "id, type, label, properties, embedding, confidence, source, created_at",
    "documents": "id, path, format, title, content_hash, chunk_count, metadata, ingested_at",
    "document_images": "id, document_id, data, mime_type",
}
"""Tables of a database of AgentOS, without `brain_id`, which its first version does not have."""


def agentos_database(path: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]], *statements: str) -> Path:
    """Write a database as AgentOS does: lists and objects are texts with JSON."""
    with closing(sqlite3.connect(path)) as db:
        for table, columns in TABLES.items():
            db.execute(f"CREATE TABLE {table} (brain_id TEXT, {columns})")
        db.execute("CREATE VIRTUAL TABLE memory_traces_fts USING fts5(content, tags, content='memory_traces')")
        for table, each in ((table, each) for table, of_table in rows.items() for each in of_table):
            values = [json.dumps(value) if isinstance(value, list | dict) else value for value in each.values()]
            db.execute(f"INSERT INTO {table} ({', '.join(each)}) VALUES ({', '.join('?' * len(values))})", values)
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path
