"""Exceptions of the client. The client raises only these, except ToolCallError in tools.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..schemas.errors import AccessRefused, Poison, StageError, Transient


class ClientError(Exception):
    """Base class of the client's exceptions."""


class InvalidTurn(ClientError):
    """The turn is invalid; the message names the field. The client sent nothing."""


class TooLarge(InvalidTurn):
    """The turn is larger than the contract or the broker allows. No part of it was stored."""


class Unavailable(ClientError):
    """The broker or the server did not answer in time. A turn may have arrived. Send it again with the same
    `turn_id`: memory counts it once."""


class TurnRefused(ClientError):
    """Memory refused a turn that was sent: it is a dead letter. The message has the reason."""


class Misconfigured(ClientError):
    """An address, a topic, a credential or an installation is wrong. A retry does not help."""


class NotFound(Misconfigured):
    """The server has no such record for this caller."""


class PositionLost(ClientError):
    """The log no longer has the records after the position: retention deleted them, or the topic was recreated. Start
    with STATE."""


class Refused(ClientError):
    """The server refuses the request. `problem` has its problem details (RFC 9457)."""

    def __init__(self, detail: str, *, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = problem


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the log's errors to the client's errors."""
    try:
        yield
    except Poison as error:
        raise (TooLarge if error.reason == "oversized" else InvalidTurn)(str(error)) from error
    except AccessRefused as error:
        raise Misconfigured(f"{error} ({error.remedy})") from error
    except Transient as error:
        raise Unavailable(f"{error}{f' ({error.remedy})' if error.remedy else ''}") from error
    except StageError as error:
        raise Misconfigured(f"{error}{f' ({error.remedy})' if error.remedy else ''}") from error
