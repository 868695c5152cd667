"""SNMP agent on a loopback port, with the protocol of pysnmp and objects in a dictionary."""

import asyncio
import socket
import threading
from bisect import bisect_right
from contextlib import contextmanager

from pysnmp.carrier.asyncio.dgram.udp import DOMAIN_NAME, UdpAsyncioTransport
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.entity.rfc3413 import cmdrsp, context
from pysnmp.hlapi.v3arch.asyncio import USM_AUTH_HMAC96_SHA, USM_PRIV_CFB128_AES
from pysnmp.proto.rfc1902 import Counter32, Counter64, ObjectName, OctetString
from pysnmp.proto.rfc1905 import endOfMibView, noSuchInstance
from pysnmp.smi import error as smi_error
from pysnmp.smi.instrum import AbstractMibInstrumController

COMMUNITY = "secret-community"
USER, PASSWORD, PRIVACY = "daq", "secret-password", "secret-privacy"

IF_X_ENTRY = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1)
IF_OUT_DISCARDS = (1, 3, 6, 1, 2, 1, 2, 2, 1, 19)
NAME, OCTETS, UNICAST, MULTICAST, BROADCAST = 1, 10, 11, 12, 13


class Objects(AbstractMibInstrumController):
    """Values of the agent's objects, by OID."""

    def __init__(self):
        self.values = {}
        self.refuse = False
        self.stuck = False
        """Whether a walk returns the same object again and again."""

    def interface(self, index, name, *, sent=0, more=(0, 0), octets=0, dropped=0):
        """Set the name and the counters of an interface."""
        for column, value in (
            (NAME, OctetString(name)),
            (OCTETS, Counter64(octets)),
            (UNICAST, Counter64(sent)),
            (MULTICAST, Counter64(more[0])),
            (BROADCAST, Counter64(more[1])),
        ):
            self.values[(*IF_X_ENTRY, column, index)] = value
        self.values[(*IF_OUT_DISCARDS, index)] = Counter32(dropped)

    def read_variables(self, *pairs, **_):
        if self.refuse:
            raise smi_error.NoAccessError(idx=0)
        return [(oid, self.values.get(tuple(oid), noSuchInstance)) for oid, _ in pairs]

    def read_next_variables(self, *pairs, **_):
        if self.refuse:
            raise smi_error.NoAccessError(idx=0)
        oids = sorted(self.values)
        found = []
        for oid, _value in pairs:
            place = bisect_right(oids, tuple(oid))
            place -= self.stuck and tuple(oid) in self.values
            found.append(
                (ObjectName(oids[place]), self.values[oids[place]])
                if place < len(oids)
                else (oid, endOfMibView)
            )
        return found


@contextmanager
def agent():
    """Yield the address of an agent and its `Objects`."""
    objects = Objects()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{server.getsockname()[1]}"
    started, loops = threading.Event(), []

    async def serve():
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        engine = SnmpEngine()
        config.add_transport(
            engine, DOMAIN_NAME, UdpAsyncioTransport().open_server_mode(sock=server)
        )
        config.add_v1_system(engine, "area", COMMUNITY)
        config.add_vacm_user(engine, 2, "area", "noAuthNoPriv", (1, 3, 6))
        keys = (USM_AUTH_HMAC96_SHA, PASSWORD, USM_PRIV_CFB128_AES)
        config.add_v3_user(engine, USER, *keys, PASSWORD)
        config.add_v3_user(engine, f"{USER}2", *keys, PRIVACY)
        for name in (USER, f"{USER}2"):
            config.add_vacm_user(engine, 3, name, "authPriv", (1, 3, 6))
        of_agent = context.SnmpContext(engine)
        of_agent.unregister_context_name(b"")
        of_agent.register_context_name(b"", objects)
        cmdrsp.GetCommandResponder(engine, of_agent)
        cmdrsp.BulkCommandResponder(engine, of_agent)
        started.set()
        await stop.wait()
        engine.close_dispatcher()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    started.wait()
    try:
        yield address, objects
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def answering(reply):
    """Yield the address of a server that answers a datagram with `reply(datagram)`, if not None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        own = server.getsockname()

        def serve():
            while True:
                request, client = server.recvfrom(65535)
                if not request:
                    return
                answer = reply(request)
                if answer is not None:
                    server.sendto(answer, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield "{}:{}".format(*own)
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"", own)
            thread.join()
