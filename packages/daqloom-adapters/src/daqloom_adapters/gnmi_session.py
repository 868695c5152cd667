"""Session with a device by gNMI: reads and sets values below paths."""

import json
import os
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

# Log level of gRPC, which is read at import; the errors that it raises contain the same text.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from pydantic import AfterValidator, Field
from pygnmi.spec.v080 import gnmi_pb2 as gnmi

from daqloom.base.words import printable
from daqloom.device.adapter import AdapterError, AdapterOptions, FileName
from daqloom.device.credentials import Credentials
from daqloom.scenario.files import read_text
from daqloom_adapters.address import address_identity

LARGEST_FILE_BYTES = 1 << 20
MOST_ANSWER_BYTES = 16 << 20
ENCODINGS = ("JSON_IETF", "JSON", "PROTO")
"""Supported encodings of values, in order of preference."""
Elements = Sequence[str | tuple[str, str, str]]
"""Elements of a path: a name, or a name with the name and value of its key."""
Found = list[tuple[tuple[str, ...], Any]]
"""Found values: names from the root of the path, and a text, number or JSON value."""

_HOST = re.compile(r"[A-Za-z0-9._:*-]{1,253}")


def _address(address: str) -> str:
    if int(address.rpartition(":")[2]) > 65535:
        raise ValueError("has no port; expected one up to 65535")
    return address


class GnmiOptions(AdapterOptions):
    """Options of an adapter that uses gNMI, always over TLS."""

    address: Annotated[
        str,
        Field(max_length=270, pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$"),
        AfterValidator(_address),
    ]
    """Address and port, such as "tor1:8080"."""
    ca: FileName = ""
    """File (PEM) of the authority of the device's certificate, or that certificate itself; empty:
    the public authorities."""
    verify: bool = True
    """Whether the device's certificate is checked; false: any certificate is accepted, so another
    machine can impersonate the device."""
    server_name: Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9._:-]*$")] = ""
    """Name in the device's certificate, if it differs from the address."""
    certificate: FileName = ""
    """File (PEM) of the user's certificate, for a device that requires one; its key is `key_file`
    of the credentials."""

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Host and port of the device, from the address."""
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)


class Session:
    """Session with one device; `open` connects, `close` disconnects."""

    def __init__(self, options: GnmiOptions, credentials: Credentials | None) -> None:
        self._options, self._credentials = options, credentials or Credentials()

    def open(self, ask: Callable[[], object]) -> None:
        """Connect, and call `ask` for a first request. If either fails, closes the connection and
        raises AdapterError."""
        self._metadata = _metadata(self._credentials)
        self._channel = self._connection()
        call = self._channel.unary_unary
        self._methods: dict[str, tuple[Any, Any]] = {
            name: (call(f"/gnmi.gNMI/{name}"), getattr(gnmi, f"{kind}Response"))
            for name, kind in (("Capabilities", "Capability"), ("Get", "Get"), ("Set", "Set"))
        }
        try:
            able = self._ask("Capabilities", gnmi.CapabilityRequest())
            offered = set(able.supported_encodings)
            known = [gnmi.Encoding.Value(name) for name in ENCODINGS]
            self._encoding = next((each for each in known if each in offered), None)
            if self._encoding is None:
                raise self.error(
                    f"offers none of the encodings {', '.join(ENCODINGS)}; one of them is needed"
                )
            ask()
        except BaseException:
            self._channel.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def get(self, path: Elements, *, origin: str = "", target: str = "") -> Found:
        """Return the values below a path; empty if the path does not exist."""
        request = gnmi.GetRequest(
            prefix=gnmi.Path(target=target) if target else None,
            path=[path_of(path, origin)],
            encoding=self._encoding,
        )
        try:
            answer = self._ask("Get", request)
        except _NotFoundError:
            return []
        return [
            (_names(notice.prefix) + _names(update.path), self._value(update.val))
            for notice in answer.notification
            for update in notice.update
        ]

    def set(self, request: Any) -> None:
        """Apply a `SetRequest`, either completely or not at all."""
        self._ask("Set", request)

    def address_identity(self) -> str:
        """Return the address as the identity of a device without serial number or MAC address."""
        return address_identity(*self._options.host_and_port, self._options.timeout)

    def error(self, what: str) -> AdapterError:
        """Return an error about the device, with `what` in one line and without secrets."""
        return AdapterError(f"{self._options.address} {self._clean(what, 900)}")

    def _ask(self, name: str, request: Any) -> Any:
        method, kind = self._methods[name]
        try:
            return kind.FromString(
                method(
                    request.SerializeToString(),
                    timeout=self._options.timeout,
                    metadata=self._metadata,
                )
            )
        except grpc.RpcError as error:
            raise self._refusal(name, error) from None
        except DecodeError:
            raise self.error(f"invalid gNMI answer to {name}; expected gNMI 0.7 or newer") from None

    def _refusal(self, name: str, error: Any) -> AdapterError:
        reason = self._clean(error.details() or "no reason given", 400)
        match error.code():
            case grpc.StatusCode.NOT_FOUND:
                return _NotFoundError(f"{self._options.address} does not have it: {reason}")
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return self.error(
                    f"has not answered {name} within {self._options.timeout:g} s; expected a "
                    "server of gNMI there"
                )
            case grpc.StatusCode.UNAVAILABLE:
                return self.error(
                    f"cannot be reached, or has closed the connection ({reason}); expected a "
                    "device with gNMI over TLS and a certificate that ca, verify and server_name "
                    "accept"
                )
            case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
                return self.error(
                    f'refuses {name} to the user "{self._credentials.user}" ({reason}); expected '
                    "credentials of a user with that right"
                )
        return self.error(f"refuses {name}: {reason}")

    def _clean(self, text: str, most: int) -> str:
        shown = self._credentials.without_secrets(text)
        return printable(" ".join(shown.split()))[:most]

    def _value(self, value: Any) -> Any:
        kind = value.WhichOneof("value")
        found: Any = getattr(value, kind) if kind else None
        if kind not in ("json_val", "json_ietf_val"):
            return found
        try:
            return json.loads(found)
        except (ValueError, RecursionError):
            raise self.error("invalid JSON in the answer; expected that of RFC 7951") from None

    def _connection(self) -> grpc.Channel:
        options: list[tuple[str, Any]] = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", MOST_ANSWER_BYTES),
        ]
        authority, name = None, self._options.server_name
        if not self._options.verify:
            authority, name = self._shown_certificate()
        elif self._options.ca:
            authority = _pem("ca", self._options.ca)
            _certificates("ca", self._options.ca, authority)
        if name:
            options.append(("grpc.ssl_target_name_override", name))
        credentials = grpc.ssl_channel_credentials(authority, *self._own_certificate())
        return grpc.secure_channel(f"dns:///{self._options.address}", credentials, options)

    def _own_certificate(self) -> tuple[bytes | None, bytes | None]:
        """Return the user's key and certificate after a check, because gRPC aborts the process if
        they do not match."""
        file, key_file = self._options.certificate, self._credentials.key_file
        if not file:
            return None, None
        if not key_file:
            raise AdapterError(
                "certificate: its key is not given; expected key_file of credentials"
            )
        chain, key = _pem("certificate", file), _pem("key_file", key_file)
        own = _certificates("certificate", file, chain)[0]
        try:
            public = load_pem_private_key(key, None).public_key()
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise AdapterError(
                f"key_file: {key_file} is no private key; expected one as PEM without a password"
            ) from None
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if public.public_bytes(*form) != own.public_key().public_bytes(*form):
            raise AdapterError(f"key_file: {key_file} is not the key of the certificate {file}")
        return key, chain

    def _shown_certificate(self) -> tuple[bytes, str]:
        """Return the certificate that the device presents (PEM), and a name in it."""
        try:
            pem = ssl.get_server_certificate(
                self._options.host_and_port, timeout=self._options.timeout
            ).encode()
            found = list(_names_in(x509.load_pem_x509_certificate(pem)))
        except (
            OSError,
            OverflowError,
            ValueError,
            x509.DuplicateExtension,
            x509.UnsupportedGeneralNameType,
        ) as error:
            raise self.error(f"shows no certificate ({error}); expected gNMI with TLS") from None
        names = [name for name in found if _HOST.fullmatch(name)]
        return pem, names[0].replace("*", "any") if names else ""


class _NotFoundError(AdapterError):
    """The requested path does not exist on the device."""


def path_of(path: Elements, origin: str = "") -> Any:
    """Return a path of gNMI."""
    elements = [(each, "", "") if isinstance(each, str) else each for each in path]
    return gnmi.Path(
        origin=origin,
        elem=[
            gnmi.PathElem(name=name, key={key: value} if key else {})
            for name, key, value in elements
        ],
    )


def _names(path: Any) -> tuple[str, ...]:
    return tuple(each.name for each in path.elem)


def _pem(key: str, file: str) -> bytes:
    try:
        return read_text(Path(file), LARGEST_FILE_BYTES).encode()
    except ValueError as error:
        raise AdapterError(f"{key}: {error}") from None


def _certificates(key: str, file: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise AdapterError(f"{key}: {file} is no certificate; expected one as PEM") from None


def _names_in(certificate: x509.Certificate) -> Iterator[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        yield from found.get_values_for_type(x509.DNSName)
        yield from map(str, found.get_values_for_type(x509.IPAddress))
    except x509.ExtensionNotFound:
        pass
    for each in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME):
        yield str(each.value)


def _metadata(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    """Return credentials as metadata; SONiC expects a token as `access_token`, others as bearer."""
    found = []
    if credentials.user:
        found += [("username", credentials.user), ("password", credentials.password)]
    if credentials.token:
        found += [
            ("authorization", f"Bearer {credentials.token}"),
            ("access_token", credentials.token),
        ]
    if not all(value.isascii() and value.isprintable() for _, value in found):
        raise AdapterError(
            "credentials: user, password or token has a character that gNMI cannot carry; expected "
            "printable ASCII"
        )
    return tuple(found)
