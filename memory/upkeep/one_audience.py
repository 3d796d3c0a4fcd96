"""What one prompt may show together: a model that read something secret may repeat it in what is not secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ...schemas.turns import Sensitivity, up_to

T = TypeVar("T")
READABLE: Final = frozenset(up_to("internal"))
"""Sensitivities of what a model may repeat where every ordinary reader reads it."""


def of_one_audience(records: Sequence[T], sensitivity: Callable[[T], Sensitivity]) -> tuple[T, ...]:
    """Return those of the records that the readers of the first one may read too: all that are not secret, or all that
    are. The others wait for a prompt of their own."""
    return tuple(each for each in records if _is_readable(sensitivity(each)) == _is_readable(sensitivity(records[0])))


def _is_readable(sensitivity: Sensitivity) -> bool:
    return sensitivity in READABLE
