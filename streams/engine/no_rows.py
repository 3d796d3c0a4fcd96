"""`Rows` (decision.py) for a stage without a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class NoRows:
    """The empty table of a stage without a table."""

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        return None

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        if rows:
            raise AssertionError("this stage has no table")

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        return None

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        return ()
