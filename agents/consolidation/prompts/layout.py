"""Shared prompt functions: prompt names, and lists of records under headings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ....memory.language.text import one_line
from ....memory.trust.rendered_text import safe_name, safe_statement


def prompt_name(version: str, rules: str) -> str:
    """Return a prompt's name for `cause.prompt`: its version and a hash of its rules."""
    return f"{version}:sha256{hashlib.sha256(rules.encode()).hexdigest()[:16]}"


def list_by_subject(title: str, items: Iterable[tuple[str, str, str]]) -> str:
    """Format records as `[id] content` lines with a heading per subject. `items` are (id, subject, content)."""
    by_subject: dict[str, list[str]] = {}
    for name, subject, content in items:
        by_subject.setdefault(safe_name(one_line(subject)), []).append(f"[{name}] {safe_statement(content)}")
    if not by_subject:
        return f"{title}: none"
    blocks = ["\n".join((f"## {subject}", *lines)) for subject, lines in by_subject.items()]
    return "\n".join((f"{title}:", *blocks))
