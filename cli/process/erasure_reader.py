"""Reader of memory.erasures: the markers of erased users that are in force in this process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import structlog
from pydantic import ValidationError

from ...memory.erasures import ErasedUsers
from ...schemas.base import explain
from ...schemas.erasures import USER_PREFIX, ErasureMarker
from ...schemas.errors import LaterVersion, StageError
from ...schemas.topics import ERASURES, Topic
from ...streams.log.port import Record
from .followed_topic import FollowedTopic

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ErasureReader(FollowedTopic):
    """Reader that keeps `erased` equal to the topic. It is the only writer of `erased`.

    Raises LaterVersion for a marker that this version cannot read.
    """

    topic: ClassVar[Topic] = ERASURES
    pause: ClassVar[float] = 1.0
    erased: ErasedUsers = field(default_factory=ErasedUsers)

    def _take(self, record: Record) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        if not key.startswith(USER_PREFIX) or not record.value:
            return
        try:
            marker = ErasureMarker.read(record.value)
        except ValidationError as error:
            raise LaterVersion(
                f"memory.erasures has a marker that this version cannot read ({explain(error)}). Start the version "
                "that wrote it"
            ) from None
        if self.erased.set(key.removeprefix(USER_PREFIX), marker):
            log.info("user_erased", erasure_id=marker.erasure_id, state=marker.state)

    def _not_read(self, error: StageError) -> None:
        log.warning("erasures_not_read", why=str(error), remedy="none: the known markers stay in force")
