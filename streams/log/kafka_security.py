"""Security of connections to Kafka: TLS, client certificates and SASL, as one value with librdkafka's names.

The settings of a process or the arguments of a client make one `KafkaSecurity`. Every Kafka client of the process uses
it (kafka_access.py). This module does not import a Kafka library.
"""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from ...schemas.errors import Fatal

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
MECHANISMS: Final[tuple[str, ...]] = get_args(SaslMechanism)
TokenCallable: TypeAlias = Callable[[], "str | Awaitable[str]"]
"""Function that returns a new token. memstream calls it for each new connection. A function that is not a coroutine
function runs in a thread."""
PREFIX: Final = "MEMSTREAM_KAFKA_"
"""Prefix of the environment variables. The rest is the field's name in capitals."""


class WrongSecurity(Fatal):
    """A combination of security settings is wrong. `problems` has (field, problem) pairs."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSecurity:
    """TLS and SASL of all connections to Kafka. The fields have librdkafka's names, with `_` for `.`.

    Files are read again for a new connection when they have changed, so credentials can be rotated without a restart.
    Raises WrongSecurity for a wrong combination.
    """

    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_password_file: Path | None = None
    """File with the password, instead of `sasl_password`. A line end at its end is ignored."""
    sasl_oauthbearer_callable: str | TokenCallable | None = None
    """`package.module:function`, or the function itself."""
    ssl_ca_location: Path | None = None
    """PEM file with the trusted authorities. None: the system's authorities."""
    ssl_certificate_location: Path | None = None
    ssl_key_location: Path | None = None
    """PEM file with the key of the client certificate. None: the key is in the certificate's file."""
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_key_password_file: Path | None = None

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if not problems:
            problems = [*self._unusable()]
        if problems:
            raise WrongSecurity(problems)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> KafkaSecurity:
        """Return the security that the variables MEMSTREAM_KAFKA_… describe. Raises WrongSecurity."""
        values: dict[str, Any] = {}
        for each in fields(cls):
            value = environment.get(f"{PREFIX}{each.name.upper()}")
            if value:
                values[each.name] = Path(value) if each.name.endswith(("_file", "_location")) else value
        return cls(**values)

    # ----------------------------------------------------------------- parts
    @property
    def tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the TLS context."""
        named = (self.ssl_ca_location, self.ssl_certificate_location, self.ssl_key_location, self.ssl_key_password_file)
        return tuple(file for file in named if file is not None)

    def described(self) -> str:
        """Return protocol, mechanism and user, for logs and reports. No secret is in it."""
        user = f" as {self.sasl_username}" if self.sasl_username else ""
        return f"{self.security_protocol}{f', {self.sasl_mechanism}{user}' if self.sasl_mechanism else ''}"

    def password(self) -> str | None:
        """Return the password, read from its file if there is one. Raises OSError and ValueError."""
        return _secret(self.sasl_password, self.sasl_password_file)

    def token_callable(self) -> TokenCallable | None:
        """Return the function that returns tokens. Raises ValueError if it does not exist."""
        given = self.sasl_oauthbearer_callable
        return _function(given) if isinstance(given, str) else given

    def tls_context(self) -> ssl.SSLContext | None:
        """Read the files and return a new TLS context; None without TLS. Raises OSError and ValueError."""
        if not self.tls:
            return None
        context = ssl.create_default_context(cafile=self.ssl_ca_location)
        if self.ssl_certificate_location is not None:
            key_password = _secret(self.ssl_key_password, self.ssl_key_password_file)
            # Without a password, OpenSSL would ask for it on the terminal.
            context.load_cert_chain(
                self.ssl_certificate_location, self.ssl_key_location, password=lambda: key_password or ""
            )
        return context

    # ----------------------------------------------------------------- checks
    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield the problems of the combination, without reading a file."""
        protocol = self.security_protocol
        if protocol not in get_args(SecurityProtocol):
            yield "security_protocol", f"expected {', '.join(get_args(SecurityProtocol))}"
            return
        if self.sasl_mechanism is not None and self.sasl_mechanism not in MECHANISMS:
            yield "sasl_mechanism", f"expected {', '.join(MECHANISMS)}"
            return
        yield from self._sasl_problems() if self.sasl else self._needless("sasl_", "SASL_SSL or SASL_PLAINTEXT")
        if not self.tls:
            yield from self._needless("ssl_", "SSL or SASL_SSL")
        if self.sasl_password is not None and self.sasl_password_file is not None:
            yield "sasl_password_file", "sasl.password is also set: set only one of the two"
        if self.ssl_key_password is not None and self.ssl_key_password_file is not None:
            yield "ssl_key_password_file", "ssl.key.password is also set: set only one of the two"
        for name in ("ssl_key_location", "ssl_key_password", "ssl_key_password_file"):
            if self.tls and self.ssl_certificate_location is None and getattr(self, name) is not None:
                yield name, "needs a client certificate: set ssl.certificate.location, too"

    def _needless(self, prefix: str, protocols: str) -> Iterator[tuple[str, str]]:
        for each in fields(self):
            if each.name.startswith(prefix) and getattr(self, each.name) is not None:
                yield each.name, f"has no effect with {self.security_protocol}: set security.protocol to {protocols}"

    def _sasl_problems(self) -> Iterator[tuple[str, str]]:
        mechanism = self.sasl_mechanism
        if mechanism is None:
            yield "sasl_mechanism", f"{self.security_protocol} needs a mechanism: {', '.join(MECHANISMS)}"
        elif mechanism == "OAUTHBEARER":
            if self.sasl_oauthbearer_callable is None:
                yield (
                    "sasl_oauthbearer_callable",
                    "OAUTHBEARER needs a function: package.module:function",
                )
            for name in ("sasl_username", "sasl_password", "sasl_password_file"):
                if getattr(self, name) is not None:
                    yield name, "OAUTHBEARER does not use it: remove it"
        else:
            if self.sasl_username is None:
                yield "sasl_username", f"{mechanism} needs a user name"
            if self.sasl_password is None and self.sasl_password_file is None:
                yield "sasl_password", f"{mechanism} needs a password: set it, or sasl.password.file"
            if self.sasl_oauthbearer_callable is not None:
                yield "sasl_oauthbearer_callable", f"{mechanism} does not use it: remove it"

    def _unusable(self) -> Iterator[tuple[str, str]]:
        """Yield the problems of the files and of the function."""
        if self.tls:
            try:
                ssl.create_default_context(cafile=self.ssl_ca_location)
            except OSError as error:  # includes ssl.SSLError
                yield "ssl_ca_location", f"expected a PEM file with certificates: {error.strerror or error}"
                return
            try:
                self.tls_context()
            except (OSError, ValueError) as error:
                why = "the key does not match, or its password is wrong" if isinstance(error, ssl.SSLError) else error
                yield "ssl_certificate_location", f"certificate and key cannot be read: {why}"
        try:
            self.password()
        except (OSError, ValueError) as error:
            yield "sasl_password_file", str(error)
        try:
            self.token_callable()
        except ValueError as error:
            yield "sasl_oauthbearer_callable", str(error)


def _secret(value: str | None, file: Path | None) -> str | None:
    """Return a secret, read from its file if one is given. Raises OSError, and ValueError for an empty file."""
    if file is None:
        return value
    try:
        text = file.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text") from None
    if not text:
        raise ValueError(f"{file} is empty")
    return text


def _function(name: str) -> TokenCallable:
    module_name, _, function_name = name.partition(":")
    try:
        found = getattr(import_module(module_name), function_name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{name!r} cannot be imported: {error}") from error
    except AttributeError as error:
        raise ValueError(f"{name!r}: {module_name} has no {function_name}") from error
    if not callable(found):
        raise ValueError(f"{name!r} is not a function")
    try:
        inspect.signature(found).bind()
    except TypeError:
        raise ValueError(f"{name!r} needs arguments, but memstream passes none") from None
    function: TokenCallable = found
    return function


PLAINTEXT: Final = KafkaSecurity()
