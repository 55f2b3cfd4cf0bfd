"""Certificates of one control plane: its authority, its servers, any client, and the service-account key."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.controlplane.components.pair import Pair

_LIFETIME = timedelta(days=2)
_SKEW = timedelta(hours=2)  # a client whose clock is behind takes them, too


class Authority:
    """A certificate authority that lives in a folder and trusts nobody but itself."""

    def __init__(self, folder: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._folder = folder
        self._key = key
        self._certificate = certificate
        self.certificate = _write(folder / "ca.crt", certificate.public_bytes(Encoding.PEM))

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make a new authority in ``folder``."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("arena-topo-test-ca")
        builder = _builder(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(True, None), True
        )
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = builder.add_extension(usage, True).sign(key, hashes.SHA256())
        _write(folder / "ca.key", _private(key))
        return cls(folder, key, certificate)

    @classmethod
    def load(cls, certificate: Path, folder: Path) -> Self:
        """Return the authority that another process made, which writes what it issues here into *folder*."""
        key = load_pem_private_key(certificate.with_suffix(".key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(folder, key, x509.load_pem_x509_certificate(certificate.read_bytes()))

    def client(self, user: str, groups: Sequence[str] = (), *, valid: timedelta = _LIFETIME) -> Pair:
        """Issue a client certificate: the API server reads the user from CN, the groups from O."""
        return self._issue(
            f"client-{user}", _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, valid=valid
        )

    def server(self, name: str, addresses: Sequence[str], hosts: Sequence[str]) -> Pair:
        """Issue a server certificate for IP ``addresses`` and DNS ``hosts``."""
        names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
        names += [x509.DNSName(host) for host in hosts]
        alternative = x509.SubjectAlternativeName(names)
        return self._issue(name, _name(name), ExtendedKeyUsageOID.SERVER_AUTH, alternative=alternative)

    def _issue(
        self,
        stem: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        *,
        alternative: x509.SubjectAlternativeName | None = None,
        valid: timedelta = _LIFETIME,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._certificate.subject, key.public_key(), valid)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), False)
        if alternative is not None:
            builder = builder.add_extension(alternative, False)
        certificate = builder.sign(self._key, hashes.SHA256())
        stem = stem.replace("/", "_").replace(":", "_")
        return Pair(
            _write(self._folder / f"{stem}.crt", certificate.public_bytes(Encoding.PEM)),
            _write(self._folder / f"{stem}.key", _private(key)),
        )


def signing_keys(folder: Path) -> Pair:
    """Make the key pair that signs service-account tokens; ``certificate`` is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Pair(_write(folder / "sa.pub", public), _write(folder / "sa.key", _private(key)))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta = _LIFETIME
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + valid) - _SKEW)
        .not_valid_after(now + valid)
    )


def _name(common: str, organisations: Sequence[str] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organisations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
