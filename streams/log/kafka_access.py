"""Access of aiokafka's clients to the brokers: credentials that are read for each new connection, and refusals.

aiokafka fixes the password and the TLS context of a client when the client is created, and hides why a connection
failed: it logs the error and reports "not ready". Here the one function that opens aiokafka's connections
(`aiokafka.client.create_conn`) reads the present credentials first, and remembers why the last connection was refused.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from aiokafka import client as aiokafka_client
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from ...schemas.errors import AccessRefused
from .kafka_client import back_off_metadata, spread_group_errors
from .kafka_security import PLAINTEXT, PREFIX, KafkaSecurity

PAUSE_FIRST: Final = 0.5
PAUSE_MAX: Final = 10.0
"""Seconds between two attempts of a client whose credentials were refused, doubled each time. Without the pause a
client would try ten times per second, and a broker could lock the user."""
REFUSED_MAX: Final = 60.0
"""Seconds of refusals without an accepted connection after which `given_up` is called."""
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of a rejected certificate (`X509_V_ERR_…`)."""
_create_conn = aiokafka_client.create_conn


class KafkaAccess(AbstractTokenProvider):
    """Servers and security of the Kafka clients of one component, and the reason why a broker refuses them.

    Clients in several threads may share one object: each attribute is replaced in one step.
    """

    def __init__(self, servers: Sequence[str], security: KafkaSecurity = PLAINTEXT) -> None:
        self.servers = list(servers)
        self.security = security
        self.refusal: AccessRefused | None = None
        """The refusal of the last connection; None if the last connection was accepted, or no broker was reached."""
        self.given_up: Callable[[AccessRefused], object] = lambda _: None
        """Called with each refusal after REFUSED_MAX seconds without an accepted connection."""
        self._refused_since: float | None = None
        self._pause = 0.0
        self._context: tuple[object, ssl.SSLContext | None] | None = None
        """The TLS context, with the state of its files."""

    def prepare(self, client: Any) -> None:
        """Make an `AIOKafkaClient` use this access. Called before the client starts."""
        aiokafka_client.create_conn = _open
        security = self.security
        client._security_protocol = security.security_protocol
        client._sasl_mechanism = security.sasl_mechanism
        client._sasl_oauth_token_provider = self
        back_off_metadata(client)
        spread_group_errors(client)

    @property
    def away_remedy(self) -> str:
        """Remedy while no broker answers."""
        return (
            "is Kafka up, MEMSTREAM_BROKER right, and is its port a listener with "
            f"{PREFIX}SECURITY_PROTOCOL={self.security.security_protocol}?"
        )

    async def open(self, host: str, port: int, options: dict[str, Any]) -> Any:
        """Open a connection with the present credentials. Raises aiokafka's errors."""
        if self._pause:
            await asyncio.sleep(self._pause)
        try:
            credentials = self._credentials()
            connection = _Connection(host, port, **options | credentials)
            await connection.connect()
        except (KafkaError, OSError, ValueError, KeyError) as error:
            self._failed(f"{host}:{port}", error)
            if isinstance(error, KafkaError | OSError):
                raise
            raise AuthenticationFailedError(str(self.refusal)) from error  # aiokafka handles only its own errors
        self.refusal, self._refused_since, self._pause = None, None, 0.0
        return connection

    async def token(self) -> str:
        """Return a new token (aiokafka's `AbstractTokenProvider`). Raises AuthenticationFailedError."""
        function = self.security.token_callable()
        assert function is not None  # KafkaSecurity requires it with OAUTHBEARER
        try:
            made = function() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function)
            token = await made if inspect.isawaitable(made) else made
        except Exception as error:
            # not the message: it may contain a secret of the identity provider
            raise TokenFailed(f"the token function raised {type(error).__name__}") from error
        if not isinstance(token, str) or not token:
            raise TokenFailed(f"the token function returned {type(token).__name__}, not a token")
        return token

    def _credentials(self) -> dict[str, Any]:
        security = self.security
        found: dict[str, Any] = {}
        if security.tls:
            found["ssl_context"] = self._tls_context()
        if security.sasl_username is not None:
            found |= {"sasl_plain_username": security.sasl_username, "sasl_plain_password": security.password()}
        return found

    def _tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of the present files."""
        state = tuple(map(_state, self.security.files))
        if self._context is None or self._context[0] != state:
            self._context = (state, self.security.tls_context())
        return self._context[1]

    def _failed(self, server: str, error: BaseException) -> None:
        refusal = access_refusal(error, server=server, security=self.security)
        self.refusal = refusal
        if refusal is None:
            return
        now = time.monotonic()
        self._pause = min(PAUSE_MAX, 2 * self._pause or PAUSE_FIRST)
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since > REFUSED_MAX:
            self.given_up(refusal)


class _Connection(AIOKafkaConnection):
    """A connection that notices a rejected token.

    With OAUTHBEARER the broker answers a rejected token with a message, not with an error code. aiokafka ignores this
    message (`conn.py:762`) and uses the connection, and every later request fails.
    """

    def authenticator_oauth(self) -> OAuthAuthenticator:
        return _CheckedToken(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


class _CheckedToken(OAuthAuthenticator):
    async def step(self, payload: bytes | None) -> Any:
        if self._token_sent and payload:
            raise AuthenticationFailedError(f"the token is rejected: {payload.decode(errors='replace')[:500]}")
        return await super().step(payload)


class TokenFailed(AuthenticationFailedError):
    """The operator's function returned no token."""


async def _open(host: str, port: int, **options: Any) -> Any:
    """Open a connection of aiokafka; replaces `aiokafka.client.create_conn`."""
    access = options.get("sasl_oauth_token_provider")
    if isinstance(access, KafkaAccess):
        return await access.open(host, port, options)
    return await _create_conn(host, port, **options)


def _state(file: Path) -> object:
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


# --------------------------------------------------------------------------- refusals
def access_refusal(error: BaseException, *, server: str, security: KafkaSecurity) -> AccessRefused | None:
    """Return the refusal that an error of a new connection means; None if no broker answered."""
    said = _said(error, server=server, security=security)
    if said is None:
        return None
    refusal = AccessRefused("broker", said[0], remedy=said[1])
    refusal.__cause__ = error
    return refusal


def _said(error: BaseException, *, server: str, security: KafkaSecurity) -> tuple[str, str] | None:
    """Return what happened, and the remedy."""
    cause = error.__cause__ if isinstance(error, KafkaConnectionError) and error.__cause__ is not None else error
    user = f" the user {security.sasl_username}" if security.sasl_username else " this client"
    match cause:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {server} is rejected: {cause.verify_message}", _trust_remedy(cause.verify_code)
        case ssl.SSLError() if _is_alert(cause):
            return (
                f"{server} rejects the client certificate: {cause.reason}",
                f"set {PREFIX}SSL_CERTIFICATE_LOCATION and {PREFIX}SSL_KEY_LOCATION to a certificate that this broker "
                "trusts and that has not expired",
            )
        case ssl.SSLError():
            return (
                f"{server} does not speak TLS: {cause.reason or cause}",
                f"is it the port of the listener for {PREFIX}SECURITY_PROTOCOL={security.security_protocol}?",
            )
        case TokenFailed():
            remedy = f"call the function of {PREFIX}SASL_OAUTHBEARER_CALLABLE yourself to see its error"
            return f"no token for {server}: {_message(cause)}", remedy
        case UnsupportedSaslMechanismError() | IllegalSaslStateError():
            return (
                f"{server} does not accept {security.described()}: {_message(cause)}",
                f"set {PREFIX}SASL_MECHANISM and {PREFIX}SECURITY_PROTOCOL as the broker's listener has them",
            )
        case SaslAuthenticationFailed() | AuthenticationFailedError():
            return f"{server} refuses{user}: {_message(cause)}", _credentials_remedy(security)
        case OSError() if cause.filename is not None:
            return f"{cause.filename} cannot be read: {cause.strerror}", "give this process access to the file"
        case ValueError() | KeyError():
            return f"the credentials for {server} are not usable: {_message(cause)}", _credentials_remedy(security)
    return None


def _message(error: BaseException) -> str:
    if error.args and isinstance(error.args[0], str):
        return error.args[0]
    return str(getattr(error, "description", type(error).__name__))


def _is_alert(error: ssl.SSLError) -> bool:
    return "ALERT" in (error.reason or "")


def _trust_remedy(code: int) -> str:
    if code in (_EXPIRED, _NOT_YET_VALID):
        return "renew the certificate of the broker, or set this machine's clock"
    if code in (_OTHER_NAME, _OTHER_ADDRESS):
        return "name the broker in MEMSTREAM_BROKER, and in its advertised.listeners, as its certificate does"
    return f"set {PREFIX}SSL_CA_LOCATION to a PEM file with the authority that signed the broker's certificate"


def _credentials_remedy(security: KafkaSecurity) -> str:
    if security.sasl_mechanism == "OAUTHBEARER":
        return f"check the token of {PREFIX}SASL_OAUTHBEARER_CALLABLE: issuer, audience, scope, expiry"
    where = "_FILE" if security.sasl_password_file is not None else ""
    return f"check {PREFIX}SASL_USERNAME and {PREFIX}SASL_PASSWORD{where}, and that the broker has this user for " + (
        security.sasl_mechanism or "its mechanism"
    )


# --------------------------------------------------------------------------- rights
ACLS: Final = "memstream topics acls"
_ERRORS: Final = {
    "topic": TopicAuthorizationFailedError,
    "group": GroupAuthorizationFailedError,
    "cluster": ClusterAuthorizationFailedError,
}


def missing_right(error: BaseException | None) -> AccessRefused | None:
    """Return the refusal that an authorization error means, or None for another error."""
    for resource, kind in _ERRORS.items():
        if isinstance(error, kind):
            return denied("", resource, _named(error))
    return None


def denied(operation: str, resource: str, name: str) -> AccessRefused:
    """Return the refusal for a right that this client's user lacks on a resource."""
    right = f"the operation {operation} on the" if operation else "access to the"
    refusal = AccessRefused(
        "broker",
        f"the broker denies {right} {resource} {name}".rstrip(),
        remedy=f"give the user of this process its rights: `{ACLS}` prints them",
    )
    refusal.__cause__ = _ERRORS[resource](name)
    return refusal


def _named(error: BaseException) -> str:
    """Return the names of the resources in an authorization error."""
    given = error.args[0] if error.args else ""
    names = given if isinstance(given, set | frozenset | list | tuple) else (given,)
    # some errors have a sentence instead of a name; the caller then names the resource
    return ", ".join(sorted(name for name in map(str, names) if " " not in name))
