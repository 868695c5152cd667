"""Certificates of a run: an authority, one for the run control and its operators, one for units."""

import datetime
import ipaddress
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID as Usage
from cryptography.x509.oid import NameOID

from daqloom.base.output import OutputError, write_private
from daqloom.base.words import reason_of
from daqloom.control.calls.connection import CONTROL, UNIT, Certificates
from daqloom.results.errors import MeasureError

LIFETIME_DAYS = 825
AUTHORITY = "daqloom authority"
LOCAL = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def make_certificates(folder: Path, hosts: Sequence[str] = (), days: int = LIFETIME_DAYS) -> None:
    """Write ca.pem, control.pem and unit.pem with their keys, which only their owner may read.

    `hosts` are names and addresses of the run control; the name of this machine and loopback are
    added. The key of the authority is not kept: no certificates can be added. Raises MeasureError
    for an invalid host or a folder that already has certificates."""
    if present := [name for name in ("ca.pem", "control.pem") if (folder / name).exists()]:
        raise MeasureError(f"{folder} already has a {present[0]}; give another folder")
    here = socket.gethostname()
    own = (here, *LOCAL) if _HOST.fullmatch(here) else LOCAL
    names = [_name(host) for host in dict.fromkeys([*hosts, *own])]
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
        write_private(folder / file, content)


def reachable_host(shown: Certificates, here: str) -> str:
    """Return the name under which others reach the holder of a certificate: `here` if the
    certificate is for it, else its first name or address beyond loopback. Raises MeasureError."""
    try:
        extensions = x509.load_pem_x509_certificate(shown.certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise MeasureError(
            f"{shown.folder} has a certificate of the run control without names of its machine "
            f"({error}); make certificates with `daqloom control certificates`"
        ) from None
    hosts = [str(name.value) for name in names]
    others = [here] if here in hosts else [host for host in hosts if host not in LOCAL]
    if not others:
        raise MeasureError(
            f"the certificates in {shown.folder} are for {', '.join(hosts[:5])}, under which no "
            f"other machine reaches this one; make certificates with --host {here}"
        )
    return others[0]


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not _HOST.fullmatch(host):
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
