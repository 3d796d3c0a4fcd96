"""Translation of a Qdrant engine's errors into errors of the ports."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
from pydantic import ValidationError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from ...schemas.errors import DeploymentFault, Fatal, Transient
from .engine import NO_ROOM, EngineRefused

COMPONENT = "store"
AWAY_REMEDY = "Check that Qdrant runs and that MEMSTREAM_QDRANT names it, with https:// if it has TLS."
KEY_REMEDY = "Set QDRANT_API_KEY to a key of this Qdrant that may read and write."
ROOM_REMEDY = "Free some space on that disk; nothing is lost, it goes on by itself."
SCHEME_REMEDY = "Write http:// in MEMSTREAM_QDRANT if this Qdrant has no TLS."
TRUST_REMEDY = (
    "Set MEMSTREAM_QDRANT_CA to a PEM file with the certificate of the authority that signed Qdrant's, "
    "or with Qdrant's own if nobody signed it."
)
NAME_REMEDY = "Name Qdrant in MEMSTREAM_QDRANT as its certificate does."
TIME_REMEDY = "Renew Qdrant's certificate, or set this machine's clock."
REMEDIES: Final = {
    9: TIME_REMEDY,  # not yet valid
    10: TIME_REMEDY,  # expired
    62: NAME_REMEDY,  # another host name
    64: NAME_REMEDY,  # another IP address
}
"""Remedy for a rejected certificate by OpenSSL's code (`X509_V_ERR_…`). For any other code: `TRUST_REMEDY`."""


class ForeignAnswer(Exception):
    """An answer does not have Qdrant's format."""


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Translate the errors of an engine's call. `doing` describes the operation in the message.

    Outage, time-out, overload and denied access become `Transient`; a refused request becomes `Fatal`.
    """
    try:
        yield
    except ResourceExhaustedResponse as error:
        raise Transient(
            COMPONENT, f"{doing}: Qdrant asks to slow down: {error}", retry_after=float(error.retry_after_s)
        ) from error
    except ResponseHandlingException as error:
        if isinstance(error.source, ValidationError):
            raise foreign_answer(doing, "its format is unknown") from error
        said = f"{doing}: Qdrant does not answer: {_said(error.source)}"
        raise Transient(COMPONENT, said, remedy=_remedy_of(error.source)) from error
    except (json.JSONDecodeError, UnicodeDecodeError, QdrantException, ForeignAnswer) as error:
        # The client does not translate these errors: a proxy's page instead of an answer, or a date in Retry-After.
        raise foreign_answer(doing, _said(error)) from error
    except UnexpectedResponse as error:
        raise _for_status(error.status_code or 500, f"{doing}: {error}") from error
    except EngineRefused as error:
        raise _for_status(error.status, f"{doing}: {error}") from error


def foreign_answer(doing: str, said: str) -> Transient:
    """Return the error for an answer from a server that is not Qdrant."""
    return Transient(COMPONENT, f"{doing}: the answer is not Qdrant's: {said}", remedy=AWAY_REMEDY)


def _for_status(status: int, message: str) -> Transient | Fatal:
    if status in (401, 403):
        return Transient(COMPONENT, f"{message} (Qdrant refuses the key)", remedy=KEY_REMEDY)
    if status == NO_ROOM:
        return Transient(COMPONENT, message, remedy=ROOM_REMEDY)
    if status in (408, 429) or status >= 500:
        return Transient(COMPONENT, message, remedy=AWAY_REMEDY)
    if status == 404:
        return DeploymentFault(
            f"{message}. A collection that this process uses no longer exists: start a worker with an empty "
            "Qdrant, or fill `facts` again with `memstream rebuild facts`."
        )
    return Fatal(message)


def _remedy_of(error: object) -> str:
    """Return the remedy for a connection error."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        return REMEDIES.get(cause.verify_code if isinstance(cause, ssl.SSLCertVerificationError) else 0, TRUST_REMEDY)
    return SCHEME_REMEDY if isinstance(error, aiohttp.ClientSSLError) else AWAY_REMEDY


def _said(error: object) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
