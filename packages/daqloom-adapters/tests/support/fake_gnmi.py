"""Test server that acts as a device with gNMI over TLS: SONiC databases and OpenConfig counters."""

import copy
import datetime
import fnmatch
import ipaddress
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pygnmi.spec.v080 import gnmi_pb2 as gnmi

from daqloom.device.credentials import Credentials

USER, PASSWORD, TOKEN = "daq", "correct horse", "t0ken-of-tor1"
CREDENTIALS = Credentials(user=USER, password=PASSWORD)
LEAFREFS = (
    ("BUFFER_QUEUE", "profile", "BUFFER_PROFILE"),
    ("BUFFER_PROFILE", "pool", "BUFFER_POOL"),
    ("QUEUE", "wred_profile", "WRED_PROFILE"),
)


class RefusedError(Exception):
    """Refusal of a request, with a gRPC status and a reason."""


@cache
def certificate(common_name="tor1.daq", address="127.0.0.1", days=2):
    """Return a self-signed certificate and its key, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(common_name)]
    if address:
        names.append(x509.IPAddress(ipaddress.ip_address(address)))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        made.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def trusted(folder):
    """Write the certificate of the device into `folder` and return the file's name."""
    (folder / "ca.pem").write_bytes(certificate()[0])
    return str(folder / "ca.pem")


class FakeGnmi:
    """gNMI device, which serves inside a `with` block. `databases` are by name, table, key and
    field; `interfaces` are OpenConfig counters by port. `fault` makes it misbehave: "silent",
    "closes", "closes-on-get", "no-protobuf", "no-json", or "ignores" (changes have no effect)."""

    def __init__(self, databases=None, interfaces=None, *, served=None, client_ca=None):
        self.databases, self.interfaces = databases or {}, interfaces or {}
        self.fault, self.leafwise, self.refuses = "", False, ""
        self.encodings = ["JSON", "JSON_IETF"]
        self.sets = []
        self._over = threading.Event()
        self._served, self._client_ca = served or certificate(), client_ca

    def __enter__(self):
        self._pool = ThreadPoolExecutor(8)
        self._server = grpc.server(self._pool)
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                self._handler(getattr(self, f"_{name.lower()}")),
                request_deserializer=getattr(gnmi, f"{kind}Request").FromString,
                response_serializer=_serialized,
            )
            for name, kind in (("Capabilities", "Capability"), ("Get", "Get"), ("Set", "Set"))
        }
        handlers = grpc.method_handlers_generic_handler("gnmi.gNMI", methods)
        self._server.add_generic_rpc_handlers((handlers,))
        pem, key = self._served
        credentials = grpc.ssl_server_credentials(
            [(key, pem)], self._client_ca, self._client_ca is not None
        )
        self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._server.stop(None).wait()
        self._pool.shutdown()

    @property
    def config(self):
        return self.databases["CONFIG_DB"]

    def _handler(self, answer):
        def handle(request, context):
            if self.fault == "silent":
                self._over.wait()
            if self.fault == "closes" or (self.fault == "closes-on-get" and answer == self._get):
                self._server.stop(None)
                self._over.wait()
            given = dict(context.invocation_metadata())
            user = given.get("username"), given.get("password")
            if user != (USER, PASSWORD) and given.get("access_token") != TOKEN:
                reason = f"no such user: {user}, {given.get('access_token')}"
                context.abort(grpc.StatusCode.UNAUTHENTICATED, reason)
            if self.fault == "no-protobuf":
                return b"\xff\xff\xff no message"
            try:
                return answer(request)
            except RefusedError as refused:
                context.abort(*refused.args)

        return handle

    def _capabilities(self, request):
        names = [gnmi.Encoding.Value(name) for name in self.encodings]
        return gnmi.CapabilityResponse(supported_encodings=names, gNMI_version="0.8.0")

    def _get(self, request):
        assert gnmi.Encoding.Name(request.encoding) in self.encodings
        notices = []
        for path in request.path:
            names = [each.name for each in path.elem]
            target = request.prefix.target
            if path.origin == "sonic-db":
                found = [(names, self._rows(names[0], names[2:]))]
            elif target:
                found = [(names, self._rows(target, names))]
            else:
                found = self._counters(path)
            update = [gnmi.Update(path=_path(at), val=self._typed(value)) for at, value in found]
            notices.append(gnmi.Notification(update=update, prefix=request.prefix))
        return gnmi.GetResponse(notification=notices)

    def _typed(self, value):
        if self.fault == "no-json":
            return gnmi.TypedValue(json_ietf_val=b"{" * 10)
        if isinstance(value, int):
            return gnmi.TypedValue(uint_val=value)
        return gnmi.TypedValue(json_ietf_val=json.dumps(value).encode())

    def _rows(self, database, names):
        table, *keys = names
        found = self.databases.get(database, {}).get(table)
        if not found or (keys and keys[0] not in found):
            raise RefusedError(grpc.StatusCode.NOT_FOUND, f"Failed to find {database} {names}")
        return found[keys[0]] if keys else found

    def _counters(self, path):
        root, interface, *below = path.elem
        assert (root.name, interface.name) == ("interfaces", "interface")
        ports = fnmatch.filter(self.interfaces, interface.key["name"])
        at = ["interfaces", "interface", "state"]
        if [each.name for each in below] == ["state", "name"]:
            return [([*at, "name"], port) for port in ports]
        assert [each.name for each in below] == ["state", "counters"]
        [port] = ports or [None]
        counted = self.interfaces.get(port)
        if counted is None:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "no such interface")
        if self.leafwise:
            return [([*at, "counters", name], value) for name, value in counted.items()]
        counters = {f"openconfig-interfaces:{name}": str(value) for name, value in counted.items()}
        return [([*at, "counters"], counters)]

    def _set(self, request):
        self.sets.append(request)
        if self.refuses:
            raise RefusedError(grpc.StatusCode.ABORTED, self.refuses)
        steps = [("remove", path, None) for path in request.delete]
        steps += [("replace", each.path, each.val) for each in request.replace]
        steps += [("add", each.path, each.val) for each in request.update]
        patched = copy.deepcopy(self.config)
        for how, path, value in steps:
            assert path.origin == "sonic-db"
            database, host, *names = [each.name for each in path.elem]
            assert (database, host) == ("CONFIG_DB", "localhost")
            assert all("/" not in name for name in names)
            _patch(patched, how, names, value and json.loads(value.json_ietf_val))
        _validate(patched)
        if self.fault != "ignores":
            self.databases["CONFIG_DB"] = patched
        return gnmi.SetResponse(timestamp=1)


def _serialized(message):
    return message if isinstance(message, bytes) else message.SerializeToString()


def _path(names):
    return gnmi.Path(elem=[gnmi.PathElem(name=name) for name in names])


def _patch(tables, how, names, value):
    """Apply one operation of a JSON patch (RFC 6902) to `tables`."""
    *parents, last = names
    at = tables
    for name in parents:
        if name not in at:
            raise RefusedError(grpc.StatusCode.INTERNAL, f"member '{name}' not found in {names}")
        at = at[name]
    if how != "add" and last not in at:
        raise RefusedError(grpc.StatusCode.INTERNAL, f"can't {how} a non-existent object '{last}'")
    if how == "remove":
        del at[last]
    else:
        at[last] = value


def _validate(tables):
    """Raise RefusedError if SONiC's YANG models or configuration updater refuse `tables`."""
    for name, table in tables.items():
        if not table or not all(table.values()):
            raise RefusedError(grpc.StatusCode.INTERNAL, f"empty tables are not allowed: {name}")
    for name, field, other in LEAFREFS:
        for key, row in tables.get(name, {}).items():
            if field in row and row[field] not in tables.get(other, {}):
                raise RefusedError(
                    grpc.StatusCode.INTERNAL, f"leafref of {name}|{key}: {row[field]}"
                )
    for key, row in tables.get("BUFFER_PROFILE", {}).items():
        if "size" not in row or ("dynamic_th" in row) == ("static_th" in row):
            raise RefusedError(grpc.StatusCode.INTERNAL, f"BUFFER_PROFILE|{key} is not valid")
