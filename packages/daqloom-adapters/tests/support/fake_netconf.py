"""Test server that acts as a Junos switch with NETCONF over SSH. It has a candidate and an active
configuration, set line by line, and can misbehave."""

import copy
import re
import socket
import threading
from typing import Any

import paramiko
from lxml import etree

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
CAPABILITIES = [
    BASE,
    *(
        f"urn:ietf:params:netconf:capability:{name}:1.0"
        for name in ("candidate", "confirmed-commit", "validate")
    ),
]
BASE_11 = "urn:ietf:params:netconf:base:1.1"
LISTS = ("buffer-partition", "schedulers")
END = b"]]>]]>"
LONGEST_WAIT_S = 30.0
TICK_S = 0.02
Tree = dict[str, Any]


class _EndedError(Exception):
    """Signal to end a session."""


class FakeNetconf:
    """Junos switch for tests. `misbehave` has the fault of a request by name, or of "connect" or
    "hello": "hang", "close", "ignore" (answers ok without effect), or raw XML as the answer."""

    user, password = "daq", "s3cret-of-daq"

    def __init__(self, running: Tree, ports: list[str]) -> None:
        self.running, self.candidate = running, copy.deepcopy(running)
        self.inherited: Tree = {}
        self.ports = ports
        self.serial = "VF3715350414"
        self.misbehave: dict[str, str] = {}
        self.capabilities = [*CAPABILITIES, BASE_11]
        self.requests: list[str] = []
        self.loaded: list[str] = []
        self.before_confirm: Tree | None = None
        self.confirm_minutes = 0
        self.locked_by: object = None
        self.user_keys: list[paramiko.PKey] = []
        self.host_key = paramiko.ECDSAKey.generate()
        self._ending = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def known_host(self) -> str:
        """Line on this switch in a file of known hosts."""
        key = self.host_key
        return f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n"

    def commit(self, request: Any) -> None:
        """Make the candidate configuration active."""
        self.before_confirm = None
        if request.find("{*}confirmed") is not None:
            self.before_confirm = self.running
            self.confirm_minutes = int(request.findtext("{*}confirm-timeout"))
        self.running = copy.deepcopy(self.candidate)

    def expire(self) -> None:
        """Undo an unconfirmed commit, as at the end of the time for its confirmation."""
        if self.before_confirm is not None:
            self.running, self.before_confirm = self.before_confirm, None
            self.candidate = copy.deepcopy(self.running)

    def close(self) -> None:
        self._ending.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for transport in self._transports:
            transport.close()
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while not self._ending.is_set():
            try:
                wire, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(wire,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, wire: socket.socket) -> None:
        with wire:
            if self._misbehaves("connect", wire.sendall):
                return
            transport = paramiko.Transport(wire)
            self._transports.append(transport)
            transport.add_server_key(self.host_key)
            door = _Door(self)
            try:
                transport.start_server(server=door)
                _Session(self, door.channel(transport)).run()
            except (paramiko.SSHException, EOFError, OSError, _EndedError):
                pass
            finally:
                transport.close()

    def _misbehaves(self, name: str, send: Any) -> bool:
        """Apply the fault for the step `name`, if any; return whether there is one."""
        fault = self.misbehave.get(name, "ignore")
        if fault == "hang":
            self._ending.wait()
        if fault not in ("hang", "close", "ignore"):
            send(fault.encode())
        return fault != "ignore"


class _Door(paramiko.ServerInterface):
    """SSH server that accepts the switch's users and the subsystem "netconf"."""

    def __init__(self, switch: FakeNetconf) -> None:
        self.switch, self.requested = switch, threading.Event()

    def channel(self, transport: paramiko.Transport) -> paramiko.Channel:
        """Return the channel on which a client has requested NETCONF."""
        while not self.requested.wait(TICK_S):
            if not transport.is_active():
                raise _EndedError
        channel = transport.accept(LONGEST_WAIT_S)
        assert channel is not None
        return channel

    def get_allowed_auths(self, username: str) -> str:
        return "password,publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        right = username == self.switch.user and key in self.switch.user_keys
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_auth_password(self, username: str, password: str) -> int:
        right = (username, password) == (self.switch.user, self.switch.password)
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        if name == "netconf":
            self.requested.set()
        return name == "netconf"


class _Session:
    """Conversation with a client, from hello to close-session."""

    def __init__(self, switch: FakeNetconf, channel: paramiko.Channel) -> None:
        self.switch, self.channel = switch, channel
        self.held, self.chunked = b"", False

    def run(self) -> None:
        switch = self.switch
        if switch._misbehaves("hello", self.channel.sendall):
            return
        hello = etree.Element("hello", nsmap={None: BASE})
        offered = etree.SubElement(hello, "capabilities")
        for capability in switch.capabilities:
            etree.SubElement(offered, "capability").text = capability
        etree.SubElement(hello, "session-id").text = "1"
        self._send(etree.tostring(hello))
        theirs = etree.fromstring(self._message()).xpath("//*[local-name()='capability']/text()")
        self.chunked = BASE_11 in theirs and BASE_11 in switch.capabilities
        try:
            while self._answer(etree.fromstring(self._message())):
                pass
        finally:
            if switch.locked_by is self:
                switch.locked_by, switch.candidate = None, copy.deepcopy(switch.running)

    def _answer(self, rpc: Any) -> bool:
        request = rpc[0]
        name = etree.QName(request).localname
        self.switch.requests.append(name)
        if self.switch._misbehaves(name, lambda raw: self._send(_filled(raw, rpc))):
            return self.switch.misbehave[name] not in ("hang", "close")
        ignored = self.switch.misbehave.get(name) == "ignore"
        content = "<ok/>" if ignored else self._do(name, request)
        self._send(_filled(REPLY.format(content).encode(), rpc))
        return name != "close-session"

    def _do(self, name: str, request: Any) -> str:
        switch = self.switch
        match name:
            case "lock":
                if switch.locked_by is not None:
                    return refusal("configuration database locked by: operator")
                switch.locked_by = self
            case "unlock":
                switch.locked_by = None
            case "discard-changes":
                switch.candidate = copy.deepcopy(switch.running)
            case "load-configuration":
                assert request.get("action") == "set"
                self._load("".join(request.itertext()).strip().splitlines())
                return "<load-configuration-results><ok/></load-configuration-results>"
            case "commit-configuration":
                switch.commit(request)
            case "get-configuration":
                assert request.get("database") == "committed"
                tree = merged(switch.running, switch.inherited if request.get("inherit") else {})
                return f'<configuration xmlns="{JUNOS}configuration">{xml(tree)}</configuration>'
            case "get-chassis-inventory":
                if not self.switch.serial:
                    return refusal("permission denied")
                return (
                    "<chassis-inventory><chassis><name>Chassis</name>"
                    f"<serial-number>{self.switch.serial}</serial-number>"
                    "</chassis></chassis-inventory>"
                )
            case "get-interface-information":
                interfaces = "".join(
                    f"<physical-interface><name>\n{port}\n</name></physical-interface>"
                    for port in switch.ports
                )
                space = f"{JUNOS}interface"
                return (
                    f'<interface-information xmlns="{space}">{interfaces}</interface-information>'
                )
            case "validate" | "close-session":
                pass
            case _:
                return refusal(f"syntax error: {name}")
        return "<ok/>"

    def _load(self, lines: list[str]) -> None:
        self.switch.loaded += lines
        for line in lines:
            verb, *words = line.split()
            *path, last = paired(words)
            if verb == "set":
                *path, leaf, value = paired(words)
                at = self.switch.candidate
                for step in path:
                    at = at.setdefault(step, {})
                at[leaf] = value
            else:
                delete(self.switch.candidate, [*path, last])

    def _send(self, raw: bytes) -> None:
        if self.chunked:  # in two pieces, as a server may
            parts = (raw[:7], raw[7:])
            framed = b"".join(b"\n#%d\n%s" % (len(part), part) for part in parts) + b"\n##\n"
        else:
            framed = raw + END
        self.channel.sendall(framed)

    def _message(self) -> bytes:
        end = b"\n##\n" if self.chunked else END
        while end not in self.held:
            received = self.channel.recv(1 << 16)
            if not received:
                raise _EndedError
            self.held += received
        raw, _, self.held = self.held.partition(end)
        return re.sub(rb"\n#[0-9]+\n", b"", raw) if self.chunked else raw


JUNOS = "http://xml.juniper.net/junos/21.4R0/junos-"
REPLY = f'<rpc-reply xmlns="{BASE}" message-id="ID">{{}}</rpc-reply>'


def refusal(message: str, severity: str = "error") -> str:
    """Return the XML of an error for an answer."""
    return (
        f"<rpc-error><error-type>protocol</error-type><error-tag>operation-failed</error-tag>"
        f"<error-severity>{severity}</error-severity>"
        f"<error-message>\n{message}\n</error-message></rpc-error>"
    )


def _filled(raw: bytes, rpc: Any) -> bytes:
    return raw.replace(b"ID", rpc.get("message-id").encode(), 1)


def paired(words: list[str]) -> list[str]:
    """Return the steps of a path; the name of a list and that of its entry form a single step."""
    steps: list[str] = []
    for word in words:
        if steps and steps[-1] in LISTS:
            steps[-1] += f" {word}"
        else:
            steps.append(word)
    return steps


def delete(tree: Tree, path: list[str]) -> None:
    """Delete a statement and parents that become empty, except entries of lists."""
    first, *rest = path
    if rest:
        delete(tree[first], rest)
    if not rest or (not tree[first] and first.split()[0] not in LISTS):
        del tree[first]


def merged(tree: Tree, below: Tree) -> Tree:
    """Return `tree` with the statements that it inherits from `below`."""
    found = copy.deepcopy(below)
    for name, value in tree.items():
        is_tree = isinstance(value, dict)
        found[name] = merged(value, found.get(name, {})) if is_tree else value
    return found


def xml(tree: Tree) -> str:
    """Return a configuration in the XML of Junos."""
    elements = ""
    for key, value in tree.items():
        tag, _, entry = key.partition(" ")
        named = f"<name>{entry}</name>" if entry else ""
        elements += f"<{tag}>{named}{xml(value) if isinstance(value, dict) else value}</{tag}>"
    return elements
