"""Translation of a Qdrant engine's errors into those that may leave an adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from ...schemas.errors import DeploymentFault, Fatal, Transient
from .engine import EngineRefused

COMPONENT = "store"
AWAY_REMEDY = "Check that Qdrant runs and that MEMSTREAM_QDRANT names it."
KEY_REMEDY = "Set QDRANT_API_KEY to a key of this Qdrant that may read and write."


class ForeignAnswer(Exception):
    """A server's answer has another form than Qdrant's."""


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Translate the errors of an engine's call. `doing` says in the message what was tried.

    Outage, time-out, overload and refused access become `Transient`; a refused request becomes `Fatal`.
    """
    try:
        yield
    except ResourceExhaustedResponse as error:
        raise Transient(
            COMPONENT, f"{doing}: Qdrant asks to slow down: {error}", retry_after=float(error.retry_after_s)
        ) from error
    except ResponseHandlingException as error:
        if isinstance(error.source, ValidationError):
            raise foreign_answer(doing, "an answer of another form") from error
        raise Transient(
            COMPONENT, f"{doing}: Qdrant does not answer: {_said(error.source)}", remedy=AWAY_REMEDY
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError, QdrantException, ForeignAnswer) as error:
        # A proxy's page instead of an answer, or a Retry-After that is a date. The client does not translate these.
        raise foreign_answer(doing, _said(error)) from error
    except UnexpectedResponse as error:
        raise _for_status(error.status_code or 500, f"{doing}: {error}") from error
    except EngineRefused as error:
        raise _for_status(error.status, f"{doing}: {error}") from error


def foreign_answer(doing: str, said: str) -> Transient:
    """Report that something other than a Qdrant answers."""
    return Transient(COMPONENT, f"{doing}: the answer is not Qdrant's: {said}", remedy=AWAY_REMEDY)


def _for_status(status: int, message: str) -> Transient | Fatal:
    if status in (401, 403):
        return Transient(COMPONENT, f"{message} (Qdrant refuses the key)", remedy=KEY_REMEDY)
    if status in (408, 429) or status >= 500:
        return Transient(COMPONENT, message, remedy=AWAY_REMEDY)
    if status == 404:
        return DeploymentFault(
            f"{message}. A collection that this process uses does not exist any more: start a worker with an empty "
            "Qdrant, or fill `facts` again with `memstream rebuild facts`."
        )
    return Fatal(message)


def _said(error: object) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
