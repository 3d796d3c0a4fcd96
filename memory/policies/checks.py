"""What policies are held to when they are made. Raises ValueError with the name of the number."""

from __future__ import annotations

import math


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def unit(name: str, value: float) -> None:
    require(math.isfinite(value) and 0.0 <= value <= 1.0, f"{name} must lie between 0 and 1, not {value}")
