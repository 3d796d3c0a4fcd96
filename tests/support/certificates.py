"""A certificate authority for tests of TLS."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = "127.0.0.1"
YEAR = timedelta(days=365)
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memstream tests")])


class Authority:
    """An authority whose certificate is in `file`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = self._signed("ca", self._key, NAME, address=LOOPBACK, until=_in_a_year(), ca=True)

    def own_context(self) -> ssl.SSLContext:
        """Return the context of a server with the authority's own certificate."""
        return self._context("ca")

    def certificate(self, name: str, *, address: str = LOOPBACK, until: datetime | None = None) -> Path:
        """Write `<name>.pem` and `<name>.key` of a server or client, and return the first."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        key = ec.generate_private_key(ec.SECP256R1())
        return self._signed(name, key, subject, address=address, until=until or _in_a_year(), ca=False)

    def server_context(self, *, address: str = LOOPBACK, until: datetime | None = None) -> ssl.SSLContext:
        """Return the context of a server with a certificate of this authority, two years long."""
        self.certificate("server", address=address, until=until)
        return self._context("server")

    def _context(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        return context

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        subject: x509.Name,
        *,
        address: str,
        until: datetime,
        ca: bool,
    ) -> Path:
        """Write `<name>.pem` and `<name>.key`, and return the first."""
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(NAME)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(until - 2 * YEAR)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        file.with_suffix(".key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file


def _in_a_year() -> datetime:
    return datetime.now(UTC) + YEAR
