"""Secrets and personal data in a text: detectors find them; `protect` masks, labels or drops them
(docs/design/secrets.md)."""

from __future__ import annotations

from .detector import BuiltInDetector
from .findings import Finding, SecretDetector
from .protection import Protected, protect

__all__ = ["BuiltInDetector", "Finding", "Protected", "SecretDetector", "protect"]
