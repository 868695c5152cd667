"""Strangers to a run: refused and counted, without harm to the run."""

import asyncio
import contextlib
import os

import grpc
import pytest

from daqloom.control.calls.certificates import make_certificates
from daqloom.control.calls.connection import JOIN, STEER, read_certificates
from daqloom.control.control import Control
from daqloom.control.protocol.messages import (
    LARGEST_REPORT_BYTES,
    Answer,
    Configure,
    Heartbeat,
    Pulse,
    read_order,
)
from daqloom.control.protocol.states import Goal, Refusal, ReportRefusal, Standing, State
from daqloom.control.status import Request, Status, steer
from daqloom.machine.launch import Local
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import FAKE, HUNG_S, plan, running
from support.measure.played_units import Player, admission, credentials, hello, waiting

pytestmark = pytest.mark.process

NOT_OURS = bytes(32)
DENIED = (grpc.StatusCode.UNAUTHENTICATED, Refusal.TOKEN)
INVALID = grpc.StatusCode.INVALID_ARGUMENT


async def still_serves(control):
    """A unit of the run can join and is available."""
    async with Player(control) as unit:
        order = await unit.joins()
        await unit.sends(Answer(order=order.order, state=State.NOT_READY).encode())
        await control.until(lambda: control.run.units[0].standing is Standing.AVAILABLE)
    await control.until(lambda: control.run.units[0].standing is Standing.ABSENT)


@pytest.mark.parametrize(
    ("proof", "message", "code", "why"),
    [
        (NOT_OURS, hello(), *DENIED),
        (b"", hello(), *DENIED),
        (b"xyz", hello(), *DENIED),
        (None, hello(7), INVALID, Refusal.UNKNOWN_UNIT),
        (None, hello(version="another"), INVALID, Refusal.VERSION),
        (None, b"\x00\xff garbage", INVALID, Refusal.MALFORMED),
        (None, b"[" * 100_000, INVALID, Refusal.MALFORMED),
        (None, Answer(order=1, state=State.READY).encode(), INVALID, Refusal.MALFORMED),
        (None, b" " * (LARGEST_REPORT_BYTES + 1), INVALID, Refusal.OVERSIZED),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_stranger_is_refused_and_counted(tmp_path, proof, message, code, why):
    async with waiting(tmp_path) as control:
        async with Player(control, proof) as stranger:
            await stranger.sends(message)
            assert (await stranger.refused())[0] is code
        assert control.refused == {why: 1}
        assert control.status().counts[f"refused.{why}"] == 1
        await still_serves(control)


async def test_a_message_beyond_grpcs_limit_ends_only_the_connection(tmp_path):
    async with waiting(tmp_path) as control:
        async with Player(control) as stranger:
            await stranger.sends(b" " * (32 << 20))
            assert (await stranger.refused())[0] is not grpc.StatusCode.OK
        await still_serves(control)


async def test_a_second_process_for_a_unit_is_refused_and_the_first_stays(tmp_path):
    async with waiting(tmp_path) as control, Player(control) as first:
        order = await first.joins()
        async with Player(control) as second:
            await second.sends(hello())
            code, _ = await second.refused()
            assert code is grpc.StatusCode.ALREADY_EXISTS
        async with Player(control) as one_too_many:
            await one_too_many.sends(hello(None))
            await one_too_many.refused()
        assert control.refused == {Refusal.OCCUPIED: 1, Refusal.UNKNOWN_UNIT: 1}
        await first.sends(Answer(order=order.order, state=State.NOT_READY).encode())
        await control.until(lambda: control.run.units[0].standing is Standing.AVAILABLE)


async def test_reports_of_other_epochs_and_unrequested_answers_are_counted(tmp_path):
    async with waiting(tmp_path) as control, Player(control) as unit:
        order = await unit.joins()
        await unit.sends(Answer(order=order.order, state=State.NOT_READY).encode())
        await unit.sends(Heartbeat(pulse=Pulse(epoch=9, state=State.RUNNING)).encode())
        await unit.sends(Answer(order=10**6, state=State.RUNNING).encode())
        await control.until(lambda: sum(control.refused.values()) == 2)
        assert control.refused == {ReportRefusal.EPOCH: 1, ReportRefusal.UNASKED: 1}
        assert control.run.units[0].standing is Standing.AVAILABLE


async def test_garbage_on_the_port_does_no_harm(tmp_path):
    async with waiting(tmp_path) as control:
        host, port = control.address.split(":")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(65536), b"PRI * HTTP/2.0\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            with contextlib.suppress(OSError):
                writer.write(garbage)
                await writer.drain()
                writer.write_eof()
                await reader.read()
            writer.close()
        await still_serves(control)


async def test_a_method_that_does_not_exist_is_counted(tmp_path):
    async with waiting(tmp_path) as control:
        async with grpc.aio.insecure_channel(control.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError, match="UNIMPLEMENTED"):
                await channel.unary_unary("/daqloom.Run/Shutdown")(b"")
        assert control.refused == {Refusal.METHOD: 1}


async def test_a_unit_cannot_steer_and_an_operator_can(tmp_path):
    async with waiting(tmp_path) as control:
        request = Request(command="start").encode()
        async with grpc.aio.insecure_channel(control.address) as channel:
            steer = channel.unary_unary(STEER)
            with pytest.raises(grpc.aio.AioRpcError, match="UNAUTHENTICATED"):
                await steer(request, metadata=await admission(channel, JOIN, control.token))
            assert control.run.goal is Goal.IDLE

            async def ours():
                return await admission(channel, STEER, control.steering)

            status = Status.model_validate_json(await steer(request, metadata=await ours()))
            assert status.goal is Goal.RUNNING
            for wrong in (b"{}", b'{"command": "reset"}', b'{"command": "start", "unit": 0}'):
                with pytest.raises(grpc.aio.AioRpcError, match="INVALID_ARGUMENT"):
                    await steer(wrong, metadata=await ours())
        assert control.refused == {Refusal.TOKEN: 1, Refusal.MALFORMED: 3}


def two_folders(folder):
    """Folders with certificates of two authorities."""
    folders = folder / "ours", folder / "others"
    for each in folders:
        make_certificates(each)
    return folders


async def test_only_holders_of_certificates_are_admitted(tmp_path):
    ours, others = two_folders(tmp_path)
    shown = read_certificates(ours, "control")
    async with waiting(tmp_path, bind="0.0.0.0", certificates=shown) as control:
        address = f"localhost:{control.address.rpartition(':')[2]}"
        status = Request(command="status").encode()

        async def steers(channel):
            async with channel:
                return await channel.unary_unary(STEER)(status, timeout=HUNG_S)

        def secure(credentials):
            return grpc.aio.secure_channel(address, credentials)

        authority = (ours / "ca.pem").read_bytes()
        for stranger in (
            grpc.aio.insecure_channel(address),
            secure(grpc.ssl_channel_credentials(authority)),  # without a certificate
            secure(credentials(others, "control")),
        ):
            with pytest.raises(grpc.aio.AioRpcError):
                await steers(stranger)
        assert not control.refused, "TLS refuses them"
        with pytest.raises(grpc.aio.AioRpcError, match="UNAUTHENTICATED"):
            await steers(secure(credentials(ours, "unit")))
        assert control.refused == {Refusal.TOKEN: 1}
        assert await steers(secure(credentials(ours, "control")))

        async with secure(credentials(ours, "unit")) as channel:
            for knows_token in (False, True):
                shown = await admission(channel, JOIN, control.token) if knows_token else ()
                call = channel.stream_stream(JOIN)(metadata=shown)
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await call.write(hello())
                    assert isinstance(read_order(await call.read()), Configure) is knows_token
                assert bool(control.run.units[0].session) is knows_token
        assert control.refused == {Refusal.TOKEN: 2}


async def test_units_with_certificates_join_and_those_with_others_do_not(tmp_path):
    ours, others = two_folders(tmp_path)
    launcher = Local(FAKE, ("--certificates", str(ours)))
    shown = read_certificates(ours, "control")
    async with asyncio.timeout(HUNG_S):
        async with Control(
            plan(tmp_path, 2), launcher, folder=tmp_path, certificates=shown
        ) as control:
            control.want(Goal.RUNNING)
            await running(control, {0, 1})
            for folder in (others, None):
                given = ("--certificates", str(folder)) if folder else ()
                stranger = await asyncio.create_subprocess_exec(
                    *(*FAKE, "--control", control.address, "--patience", "1", *given),
                    stdin=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                _, errors = await stranger.communicate(control.token.hex().encode() + b"\n")
                assert stranger.returncode == 1
                assert b"has not answered" in errors
            request = Request(command="status")
            with pytest.raises(MeasureError, match="does not answer"):
                await asyncio.to_thread(steer, request, control.address, others)
            status = await asyncio.to_thread(steer, request, control.address, ours)
            assert [unit.member for unit in status.units] == [True, True]
            assert control.run.members == {0, 1}
