"""Certificates of a run: an authority, one for the run control and its operators, one for units."""

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID as Usage
from cryptography.x509.oid import NameOID

from daqloom.base.output import OutputError, written_whole
from daqloom.base.words import reason_of
from daqloom.control.calls.connection import CONTROL, UNIT
from daqloom.results.errors import MeasureError

LIFETIME_DAYS = 825
AUTHORITY = "daqloom authority"
LOCAL = ("localhost", "127.0.0.1", "::1")


def make_certificates(folder: Path, hosts: Sequence[str] = (), days: int = LIFETIME_DAYS) -> None:
    """Write ca.pem, control.pem and unit.pem with their keys, which only their owner may read.

    `hosts` are names and addresses of the run control; this machine's own are added. The key of the
    authority is not kept: no certificates can be added. Raises MeasureError for an invalid host or
    a folder that already has certificates."""
    if present := [name for name in ("ca.pem", "control.pem") if (folder / name).exists()]:
        raise MeasureError(f"{folder} already has a {present[0]}; give another folder")
    names = [_name(host) for host in dict.fromkeys([*hosts, *LOCAL])]
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(AUTHORITY, authority_key, None, authority_key, [], days)
    files = {"ca.pem": authority.public_bytes(Encoding.PEM)}
    for file, common_name, sans in (("control", CONTROL, names), ("unit", UNIT, [])):
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(common_name, key, authority, authority_key, sans, days)
        files |= {
            f"{file}.pem": made.public_bytes(Encoding.PEM),
            f"{file}.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {reason_of(error)}") from None
    for file, content in files.items():
        with written_whole(folder / file) as scratch:
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as opened:
                opened.write(content)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", host):
            raise MeasureError(f'"{host[:80]}" is not the name or address of a host') from None
        return x509.DNSName(host)


def _certificate(
    common_name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: Sequence[x509.GeneralName],
    days: int,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    authority = issuer is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(authority, 0 if authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=not authority,
                key_cert_sign=authority,
                crl_sign=authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if not authority:
        # The run control is a server and, for operators, a client; a unit is a client.
        uses = [Usage.CLIENT_AUTH] + ([Usage.SERVER_AUTH] if common_name == CONTROL else [])
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())
