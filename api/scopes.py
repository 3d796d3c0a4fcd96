"""Scopes of a credential."""

from __future__ import annotations

from typing import Literal, get_args

Scope = Literal[
    "turns:write",
    "memory:read",
    "memory:read-secret",
    "memory:write",
    "memory:review",
    "memory:speak-for-user",
    "memory:admin",
    "memory:audit",
    "memory:erase",
]
SCOPES: tuple[Scope, ...] = get_args(Scope)
