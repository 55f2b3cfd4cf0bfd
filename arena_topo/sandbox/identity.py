"""Who the sandbox is and who may use it: certificate, tokens, kubeconfigs."""

import base64
import datetime as dt
import ipaddress
import json
import os
import secrets
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from arena_topo.sandbox.api.requests import ADMIN, READER, User
from arena_topo.sandbox.home import Home

CONTEXT = "arena-topo-sandbox"
_DAYS = (
    3650  # a sandbox keeps its certificate, and with it every kubeconfig, for as long as its folder exists
)
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; it appears whole, since others wait for it."""
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)


def ensure_identity(home: Home) -> None:
    """Create certificate, key and tokens where they are missing."""
    if not home.certificate.exists() or not home.key.exists():
        _create_certificate(home)
    if not home.tokens.exists():
        tokens = {"admin": secrets.token_urlsafe(32), "reader": secrets.token_urlsafe(32)}
        _write_private(home.tokens, json.dumps(tokens).encode())


def _create_certificate(home: Home) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CONTEXT)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    # It is its own authority, so it must be able to sign certificates, too.
    usage = {usage: usage in {"digital_signature", "key_cert_sign"} for usage in _USAGES}
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .sign(key, hashes.SHA256())
    )
    form, encoding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    _write_private(home.key, key.private_bytes(encoding, form, serialization.NoEncryption()))
    home.certificate.write_bytes(certificate.public_bytes(encoding))


def users(home: Home) -> dict[str, User]:
    """Return the users by their tokens."""
    tokens = json.loads(home.tokens.read_text("utf-8"))
    return {tokens["admin"]: ADMIN, tokens["reader"]: READER}


def write_kubeconfigs(home: Home, port: int) -> None:
    """Write the reader's and then the administrator's kubeconfig; the user's own is never touched."""
    tokens = json.loads(home.tokens.read_text("utf-8"))
    authority = base64.b64encode(home.certificate.read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
    # Whoever starts a sandbox waits for the administrator's, so it comes last.
    for path, role in ((home.reader_kubeconfig, "reader"), (home.kubeconfig, "admin")):
        user = f"{CONTEXT}-{role}"
        context = {"cluster": CONTEXT, "user": user, "namespace": "default"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "contexts": [{"name": CONTEXT, "context": context}],
            "users": [{"name": user, "user": {"token": tokens[role]}}],
        }
        _write_private(path, json.dumps(content, indent=2).encode() + b"\n")
