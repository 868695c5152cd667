"""Run control whose units a test plays itself."""

import asyncio
import contextlib
import os

import grpc

from daqloom.base.version import installed_version
from daqloom.control.calls.admission import PROOF_KEY, Caller
from daqloom.control.calls.connection import GREET, JOIN, read_certificates
from daqloom.control.control import Control
from daqloom.control.protocol.messages import Configure, Hello, read_order
from daqloom.machine.launch import ByHand
from support.measure.controlled_runs import HUNG_S, plan


@contextlib.asynccontextmanager
async def waiting(folder, units=1, **changes):
    rules = plan(folder, units, launches=False, fault_timeout_s=HUNG_S, heartbeat_s=0.5)
    async with asyncio.timeout(HUNG_S):
        async with Control(rules, ByHand(), folder=folder, **changes) as control:
            yield control
            for peer in control._peers.values():
                peer.orders.put_nowait(None)


def hello(unit=0, version=None):
    return Hello(
        unit=unit, host="here", pid=os.getpid(), version=version or installed_version()
    ).encode()


async def admission(channel, call, secret):
    """Metadata that admits a call with `secret`."""
    caller = Caller(call, secret)
    return caller.admission(await channel.unary_unary(GREET)(b"", metadata=caller.greeting))


class Player:
    """A unit's end of a connection; `proof` replaces its own."""

    def __init__(self, control, proof=None):
        self.channel = grpc.aio.insecure_channel(
            control.address,
            [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)],
        )
        self.token, self.proof = control.token, proof

    async def __aenter__(self):
        admitted = dict(await admission(self.channel, JOIN, self.token))
        if self.proof is not None:
            admitted[PROOF_KEY] = self.proof
        self.call = self.channel.stream_stream(JOIN)(metadata=tuple(admitted.items()))
        return self

    async def __aexit__(self, *_):
        await self.channel.close()

    async def sends(self, body):
        with contextlib.suppress(grpc.aio.AioRpcError):  # refused before the end
            await self.call.write(body)

    async def refused(self):
        """Status code and reason of the end of the connection."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await self.call.read() is not grpc.aio.EOF:
                pass
        return await self.call.code(), await self.call.details()

    async def joins(self, unit=0):
        await self.sends(hello(unit))
        order = read_order(await self.call.read())
        assert isinstance(order, Configure)
        return order


def credentials(folder, who):
    given = read_certificates(folder, who)
    return grpc.ssl_channel_credentials(given.authority, given.key, given.certificate)
