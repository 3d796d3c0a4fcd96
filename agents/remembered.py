"""Seen ids, packed."""

from __future__ import annotations

from .observer.rows import Remembered

__all__ = ["Remembered"]
