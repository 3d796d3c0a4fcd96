"""Choice of the records that one prompt may show together. A model that reads a secret record may repeat the secret, so
an answer that is not secret must not be made from secret records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ...schemas.turns import Sensitivity, up_to

T = TypeVar("T")
READABLE: Final = frozenset(up_to("internal"))
"""Sensitivities that every ordinary reader may read."""


def of_one_audience(records: Sequence[T], sensitivity: Callable[[T], Sensitivity]) -> tuple[T, ...]:
    """Return the records with the same audience as the first record: either only secret records, or only records that
    are not secret. The other records need their own prompt."""
    return tuple(each for each in records if _is_readable(sensitivity(each)) == _is_readable(sensitivity(records[0])))


def _is_readable(sensitivity: Sensitivity) -> bool:
    return sensitivity in READABLE
