"""What a caller can do something about; everything that leaves memstream.client is one of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..schemas.errors import Poison, StageError, Transient


class ClientError(Exception):
    """Base of what the client raises."""


class InvalidTurn(ClientError):
    """The turn breaks the contract, the message says where. Nothing was sent."""


class TooLarge(InvalidTurn):
    """The turn is larger than the contract or the broker allows. Nothing was kept of it."""


class Unavailable(ClientError):
    """The broker or the server did not answer in time. A turn may have arrived all the same: send it again with the
    same turn_id, then it counts once."""


class Misconfigured(ClientError):
    """An address, a topic or a credential is wrong: trying again helps nobody."""


class NotFound(Misconfigured):
    """The server has no such record, for who asks."""


class PositionLost(ClientError):
    """The log does not hold what follows the position any more (retention, or the topic was made anew). Begin with
    STATE."""


class Refused(ClientError):
    """The server refuses what was asked. `problem` is its answer (RFC 9457)."""

    def __init__(self, told: str, *, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(told)
        self.status = status
        self.problem = problem


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the log as the client's."""
    try:
        yield
    except Poison as error:
        raise (TooLarge if error.reason == "oversized" else InvalidTurn)(str(error)) from error
    except Transient as error:
        raise Unavailable(f"{error}{f' ({error.remedy})' if error.remedy else ''}") from error
    except StageError as error:
        raise Misconfigured(str(error)) from error
