"""Who may call a run control: secrets are proved and never sent, and nobody keeps others out."""

import asyncio
import contextlib
import hashlib
import hmac
import secrets

import grpc
import pytest

from daqloom.control import service
from daqloom.control.admission import NONCE_KEY, PROOF_KEY, Caller, Greetings
from daqloom.control.certificates import make_certificates
from daqloom.control.connection import GREET, JOIN, STEER, read_certificates
from daqloom.control.messages import Configure, read_order
from daqloom.control.registry import published
from daqloom.control.states import Refused
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
    told = control.greet(caller.greeting)
    text = JOIN.encode() + b"\0" + ours + told[:32]  # the sides' names go before it
    assert told[32:] == hmac.new(SECRET, b"run control\0" + text, hashlib.sha256).digest()
    shown = dict(caller.admission(told))
    assert shown[NONCE_KEY] == told[:32]
    assert shown[PROOF_KEY] == hmac.new(SECRET, b"caller\0" + text, hashlib.sha256).digest()
    assert control.admits(JOIN, shown.items())


def test_what_was_overheard_admits_nobody():
    control, caller = greetings(), Caller(JOIN, SECRET)
    told = control.greet(caller.greeting)
    shown = caller.admission(told)
    assert not control.admits(STEER, shown), "of another call"
    told = control.greet(caller.greeting)
    assert not control.admits(JOIN, shown), "of another greeting"
    shown = caller.admission(told)
    assert control.admits(JOIN, shown)
    assert not control.admits(JOIN, shown), "once more"
    told = control.greet(caller.greeting)
    reflected = {NONCE_KEY: told[:32], PROOF_KEY: told[32:]}
    assert not control.admits(JOIN, reflected.items())


def test_a_control_without_the_secret_gets_no_proof():
    caller = Caller(JOIN, SECRET)
    told = greetings().greet(caller.greeting)
    assert caller.admission(Greetings({JOIN: OTHER}).greet(caller.greeting)) is None
    assert caller.admission(told[:-1]) is None
    assert caller.admission(told + b"\0") is None
    assert caller.admission(b"") is None
    assert Caller(JOIN, SECRET).admission(told) is None, "an answer to another nonce"


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
def test_what_is_no_greeting_is_not_answered(greeting):
    assert greetings().greet(greeting.items()) is None


def test_greetings_without_a_call_are_forgotten_oldest_first(monkeypatch):
    monkeypatch.setattr("daqloom.control.admission.MOST_GREETED", 3)
    control, callers = greetings(), [Caller(JOIN, SECRET) for _ in range(4)]
    shown = [caller.admission(control.greet(caller.greeting)) for caller in callers]
    assert [control.admits(JOIN, each) for each in shown] == [False, True, True, True]


class Impostor(grpc.GenericRpcHandler):
    """Listens where a run control was, and would have a unit say who it is and obey."""

    def __init__(self):
        self.heard = []

    def service(self, details):
        self.heard.append((details.method, dict(details.invocation_metadata)))

        async def greet(requests, context):
            async for body in requests:
                self.heard.append(body)
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


def names_secret(heard):
    return any(text in repr(heard) for text in (SECRET.hex(), repr(SECRET)[2:-1]))


async def test_a_unit_tells_its_token_to_nobody_and_obeys_nobody_else():
    async with asyncio.timeout(HUNG_S), an_impostor() as (address, impostor):
        unit = await asyncio.create_subprocess_exec(
            *(*FAKE, "--control", address),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await unit.communicate(SECRET.hex().encode() + b"\n")
        assert unit.returncode == 1
        assert f"the program that listens at {address} does not know the secret".encode() in said
        assert [each[0] for each in impostor.heard if isinstance(each, tuple)] == [GREET]
        assert not names_secret(impostor.heard)


async def test_an_operator_tells_the_secret_to_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    async with asyncio.timeout(HUNG_S), an_impostor() as (address, impostor):
        with (
            published(address, SECRET, OTHER),
            pytest.raises(MeasureError, match=f"{address} does not know the secret"),
        ):
            await asyncio.to_thread(steer, Request(command="exit"), address)
        assert [each[0] for each in impostor.heard if isinstance(each, tuple)] == [GREET]
        assert not names_secret(impostor.heard)


# ---- places -------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def channels(make, count):
    """Connections of their own, for a server limits the calls of each."""
    async with contextlib.AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        yield [await stack.enter_async_context(make(options)) for _ in range(count)]


async def serves_everybody(control, channel, *, certificate=False):
    """An operator is told how the run is, and a unit gets its orders."""
    shown = () if certificate else await admission(channel, STEER, control.steering)
    ask = channel.unary_unary(STEER)
    told = await ask(Request(command="status").encode(), metadata=shown, timeout=HUNG_S)
    assert Status.model_validate_json(told).run == "test"
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
            assert control.refused == {Refused.TOKEN: 200}
            await serves_everybody(control, ours)


async def test_units_and_operators_that_say_nothing_keep_nobody_out(tmp_path, monkeypatch):
    """Though they are admitted, and nobody's patience ends."""
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
            # Of each kind the last ones wait; the others have been refused.
            refused = (90 - service.MOST_SILENT) + (200 - service.MOST_SILENT)
            while control.refused[Refused.SILENT] < refused:
                await asyncio.sleep(0)
            await serves_everybody(control, operator, certificate=True)
            for call in joins + steers:
                call.cancel()


@pytest.mark.parametrize("method", [JOIN, STEER])
async def test_an_admitted_call_says_something_in_time_or_is_refused(tmp_path, monkeypatch, method):
    async with waiting(tmp_path) as control:
        secret = control.token if method == JOIN else control.steering
        async with grpc.aio.insecure_channel(control.address) as channel:
            admitted = await admission(channel, method, secret)
            # Not before: the server would close the idle connection too, within the same time.
            monkeypatch.setattr(service, "FIRST_MESSAGE_S", NO_TIME_S)
            call = channel.stream_stream(method)(metadata=admitted)
            assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert control.refused == {Refused.SILENT: 1}


async def test_a_connection_on_which_nothing_is_said_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "FIRST_MESSAGE_S", 0.1)
    async with waiting(tmp_path) as control:
        host, port = control.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        while await reader.read(4096):  # ends with the connection
            pass
        writer.close()


async def test_a_unit_that_plays_by_the_rules_stays(tmp_path):
    """The time that a first message may take is not that of a call."""
    async with waiting(tmp_path) as control, Player(control) as unit:
        await unit.joins()
        assert not any(control._service._silent.values())
