"""Admission to a run control: secrets are proved and never sent, and silent calls block no
others."""

import asyncio
import contextlib
import hashlib
import hmac
import secrets

import grpc
import pytest

from daqloom.control.calls import service
from daqloom.control.calls.admission import NONCE_KEY, PROOF_KEY, Caller, Greetings
from daqloom.control.calls.certificates import make_certificates
from daqloom.control.calls.connection import GREET, JOIN, STEER, read_certificates
from daqloom.control.calls.registry import publish
from daqloom.control.protocol.messages import Configure, read_order
from daqloom.control.protocol.states import Refusal
from daqloom.control.status import Request, Status, steer
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import FAKE, HUNG_S
from support.measure.played_units import Player, admission, credentials, hello, waiting

pytestmark = pytest.mark.process

SECRET, OTHER = bytes(range(16)), bytes(16)
NO_TIME_S = 1e-3
NEVER_S = 1000.0


def greetings():
    return Greetings({JOIN: SECRET, STEER: OTHER})


def test_both_sides_prove_the_secret_by_hmac_over_both_nonces():
    control, caller = greetings(), Caller(JOIN, SECRET)
    ours = dict(caller.greeting)[NONCE_KEY]
    answer = control.greet(caller.greeting)
    text = JOIN.encode() + b"\0" + ours + answer[:32]  # after the side's name
    assert answer[32:] == hmac.new(SECRET, b"run control\0" + text, hashlib.sha256).digest()
    shown = dict(caller.admission(answer))
    assert shown[NONCE_KEY] == answer[:32]
    assert shown[PROOF_KEY] == hmac.new(SECRET, b"caller\0" + text, hashlib.sha256).digest()
    assert control.admits(JOIN, shown.items())


def test_intercepted_proofs_are_not_admitted():
    control, caller = greetings(), Caller(JOIN, SECRET)
    shown = caller.admission(control.greet(caller.greeting))
    assert not control.admits(STEER, shown), "of another call"
    answer = control.greet(caller.greeting)
    assert not control.admits(JOIN, shown), "of another greeting"
    shown = caller.admission(answer)
    assert control.admits(JOIN, shown)
    assert not control.admits(JOIN, shown), "once more"
    nonce = control.greet(caller.greeting)[:32]
    assert not control.admits(JOIN, [(NONCE_KEY, nonce)]), "without a proof"
    answer = control.greet(caller.greeting)
    reflected = {NONCE_KEY: answer[:32], PROOF_KEY: answer[32:]}
    assert not control.admits(JOIN, reflected.items())


def test_a_control_without_the_secret_gets_no_proof():
    caller = Caller(JOIN, SECRET)
    answer = greetings().greet(caller.greeting)
    other = Greetings({JOIN: OTHER}).greet(caller.greeting)
    for wrong in (other, answer[:-1], answer + b"\0", b""):
        assert caller.admission(wrong) is None
    assert Caller(JOIN, SECRET).admission(answer) is None, "an answer to another nonce"


@pytest.mark.parametrize(
    "greeting",
    [
        {},
        {"call": JOIN},
        {"call": JOIN, NONCE_KEY: bytes(31)},
        {"call": JOIN, NONCE_KEY: "0" * 32},
        {"call": GREET, NONCE_KEY: bytes(32)},
        {NONCE_KEY: bytes(32)},
    ],
)
def test_a_malformed_greeting_is_not_answered(greeting):
    assert greetings().greet(greeting.items()) is None


def test_greetings_without_a_call_are_forgotten_oldest_first(monkeypatch):
    monkeypatch.setattr("daqloom.control.calls.admission.MOST_GREETED", 3)
    control, callers = greetings(), [Caller(JOIN, SECRET) for _ in range(4)]
    shown = [caller.admission(control.greet(caller.greeting)) for caller in callers]
    assert [control.admits(JOIN, each) for each in shown] == [False, True, True, True]


class Impostor(grpc.GenericRpcHandler):
    """Listener at the address of a former run control."""

    def __init__(self):
        self.received = []

    def service(self, details):
        self.received.append((details.method, dict(details.invocation_metadata)))

        async def greet(requests, context):
            async for body in requests:
                self.received.append(body)
            return secrets.token_bytes(64)

        return grpc.stream_unary_rpc_method_handler(greet)


@contextlib.asynccontextmanager
async def an_impostor():
    server, impostor = grpc.aio.server(), Impostor()
    server.add_generic_rpc_handlers((impostor,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}", impostor
    finally:
        await server.stop(grace=0)


def expect_a_greeting_alone(impostor):
    received = impostor.received
    assert [each[0] for each in received if isinstance(each, tuple)] == [GREET]
    assert not any(text in repr(received) for text in (SECRET.hex(), repr(SECRET)[2:-1]))


async def test_a_unit_sends_its_token_nowhere_and_does_not_obey_an_impostor():
    async with asyncio.timeout(HUNG_S), an_impostor() as (address, impostor):
        unit = await asyncio.create_subprocess_exec(
            *(*FAKE, "--control", address),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await unit.communicate(SECRET.hex().encode() + b"\n")
        assert unit.returncode == 1
        assert f"the run control at {address} has another token".encode() in errors
        expect_a_greeting_alone(impostor)


async def test_an_operator_sends_the_secret_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    async with asyncio.timeout(HUNG_S), an_impostor() as (address, impostor):
        with (
            publish(address, SECRET, OTHER),
            pytest.raises(MeasureError, match=f"{address} has another token"),
        ):
            await asyncio.to_thread(steer, Request(command="exit"), address)
        expect_a_greeting_alone(impostor)


# ---- places -------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def channels(make, count):
    """Separate connections, as a server limits the calls of each."""
    async with contextlib.AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        yield [await stack.enter_async_context(make(options)) for _ in range(count)]


async def expect_served(control, channel, *, certificate=False):
    """An operator has the status of the run, and a unit gets its orders."""
    shown = () if certificate else await admission(channel, STEER, control.steering)
    call = channel.unary_unary(STEER)
    answer = await call(Request(command="status").encode(), metadata=shown, timeout=HUNG_S)
    assert Status.model_validate_json(answer).run == "test"
    shown = await admission(channel, JOIN, control.token)
    joining = channel.stream_stream(JOIN)(metadata=shown)
    await joining.write(hello())
    assert isinstance(read_order(await joining.read()), Configure)
    joining.cancel()


def silent_steers(channel, count, shown=()):
    return [channel.stream_unary(STEER)(metadata=shown) for _ in range(count)]


async def test_calls_of_strangers_that_are_headers_alone_are_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "FIRST_MESSAGE_S", NEVER_S)
    async with waiting(tmp_path) as control:

        def insecure(options):
            return grpc.aio.insecure_channel(control.address, options)

        async with channels(insecure, 21) as (ours, *theirs):
            calls = [call for each in theirs for call in silent_steers(each, 10)]
            codes = [await call.code() for call in calls]
            assert codes == [grpc.StatusCode.UNAUTHENTICATED] * 200
            assert control.refused == {Refusal.TOKEN: 200}
            await expect_served(control, ours)


async def test_silent_units_and_operators_block_no_others(tmp_path, monkeypatch):
    """Although they are admitted, without any timeout."""
    monkeypatch.setattr(service, "FIRST_MESSAGE_S", NEVER_S)
    ours = tmp_path / "certificates"
    make_certificates(ours)
    shown = read_certificates(ours, "control")
    async with waiting(tmp_path, bind="0.0.0.0", certificates=shown) as control:
        address = f"localhost:{control.address.rpartition(':')[2]}"

        def secure(who):
            return lambda options: grpc.aio.secure_channel(address, credentials(ours, who), options)

        async with (
            channels(secure("unit"), 9) as units,
            channels(secure("control"), 21) as (operator, *operators),
        ):
            joins = []
            for unit in units:
                for _ in range(10):
                    admitted = await admission(unit, JOIN, control.token)
                    joins.append(unit.stream_stream(JOIN)(metadata=admitted))
            steers = [call for each in operators for call in silent_steers(each, 10)]
            # The last calls of each kind wait; the others have been refused.
            refused = (90 - service.MOST_SILENT) + (200 - service.MOST_SILENT)
            while control.refused[Refusal.SILENT] < refused:
                await asyncio.sleep(0)
            await expect_served(control, operator, certificate=True)
            for call in joins + steers:
                call.cancel()


@pytest.mark.parametrize("method", [JOIN, STEER])
async def test_a_silent_admitted_call_is_refused(tmp_path, monkeypatch, method):
    async with waiting(tmp_path) as control:
        secret = control.token if method == JOIN else control.steering
        async with grpc.aio.insecure_channel(control.address) as channel:
            admitted = await admission(channel, method, secret)
            # Later than the connection, which the server would close after the same time.
            monkeypatch.setattr(service, "FIRST_MESSAGE_S", NO_TIME_S)
            call = channel.stream_stream(method)(metadata=admitted)
            assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert control.refused == {Refusal.SILENT: 1}


async def test_a_silent_connection_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "FIRST_MESSAGE_S", 0.1)
    async with waiting(tmp_path) as control:
        host, port = control.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        while await reader.read(4096):  # ends with the connection
            pass
        writer.close()


async def test_a_well_behaved_unit_stays(tmp_path):
    """The time limit of a first message does not end a call."""
    async with waiting(tmp_path) as control, Player(control) as unit:
        await unit.joins()
        assert not any(control._service._silent.values())
