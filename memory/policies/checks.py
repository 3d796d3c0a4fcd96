"""Checks of policy values. They raise ValueError with the name of the setting and its allowed values."""

from __future__ import annotations

import math
from typing import Any, get_args


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def unit(name: str, value: float) -> None:
    require(0.0 <= value <= 1.0, f"{name} must be between 0 and 1, not {value}")


def between(name: str, value: int, least: int, most: int) -> None:
    require(least <= value <= most, f"{name} must be {least} to {most}, not {value}")


def at_least(name: str, value: float, least: float) -> None:
    require(least <= value < math.inf, f"{name} must be {least:g} or more, not {value}")


def above_zero(name: str, value: float) -> None:
    require(0 < value < math.inf, f"{name} must be above 0, not {value}")


def one_of(name: str, value: object, known: Any) -> None:
    """Require one of the values of the Literal `known`."""
    values = get_args(known)
    require(value in values, f"{name} must be one of {', '.join(values)}, not {value!r}")
