"""What the software switch answers in OpenFlow 1.3, hostile bytes included."""

import asyncio
import random
import ssl
import subprocess
from contextlib import suppress

import pytest

from support.softswitch.switches import DAQLOOM

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
pytest.importorskip("pyof", reason="the Python package python-openflow is not installed")

from pyof.foundation.basic_types import BinaryData
from pyof.v0x04.asynchronous.error_msg import (
    BadActionCode,
    BadInstructionCode,
    BadMatchCode,
    BadRequestCode,
    FlowModFailedCode,
    MeterModFailedCode,
)
from pyof.v0x04.asynchronous.flow_removed import FlowRemovedReason
from pyof.v0x04.common.action import ActionOutput, ActionPopVLAN, ActionSetQueue
from pyof.v0x04.common.flow_instructions import (
    InstructionGotoTable,
    InstructionMeter,
)
from pyof.v0x04.common.flow_match import Match
from pyof.v0x04.common.flow_match import OxmOfbMatchField as Field
from pyof.v0x04.common.header import Header, Type
from pyof.v0x04.common.port import PortNo
from pyof.v0x04.common.utils import unpack_message
from pyof.v0x04.controller2switch.barrier_request import BarrierRequest
from pyof.v0x04.controller2switch.common import ControllerRole, MultipartType
from pyof.v0x04.controller2switch.flow_mod import FlowModCommand, FlowModFlags
from pyof.v0x04.controller2switch.group_mod import GroupMod
from pyof.v0x04.controller2switch.meter_mod import (
    MeterModCommand,
)
from pyof.v0x04.controller2switch.multipart_request import FlowStatsRequest, MultipartRequest
from pyof.v0x04.controller2switch.role_request import RoleRequest
from pyof.v0x04.symmetric.hello import Hello

from daqloom.measure import MeasureError
from daqloom.softswitch.openflow.connection import Address, address_of, controllers
from daqloom.softswitch.openflow.match import FlowMatch, Network, match_of
from daqloom.softswitch.openflow.refused import RefusedError
from daqloom.softswitch.openflow.session import HungUpError, Session
from daqloom.softswitch.openflow.table import MOST_ENTRIES
from daqloom.softswitch.status import DROPS
from support.softswitch.openflow_switch import (
    PORTS,
    Switch,
    flow,
    ip,
    meter,
    oxm,
    packed,
)


def test_entries_are_added_replaced_changed_and_deleted():
    switch = Switch()
    add = [
        flow(*ip(f"10.0.0.{host}"), priority=host, cookie=host, actions=[ActionOutput(2)])
        for host in range(4)
    ]
    assert switch.say(*add) == []
    assert [(f.priority.value, f.cookie.value) for f in switch.flows()] == [
        (n, n) for n in range(4)
    ]
    assert switch.say(flow(*ip("10.0.0.3"), priority=3, cookie=8)) == []  # in its place
    assert [(f.cookie.value, len(f.instructions)) for f in switch.flows()][3] == (8, 0)
    # A change reaches all that it covers, those with its cookie only if it asks for one.
    modify = {"command": FlowModCommand.OFPFC_MODIFY, "actions": [ActionOutput(1)]}
    switch.say(flow(*ip("10.0.0.0", "255.255.255.254"), **modify))
    switch.say(flow(cookie=8, cookie_mask=0xFF, **modify))
    outputs = [[a.port.value for i in f.instructions for a in i.actions] for f in switch.flows()]
    assert outputs == [[1], [1], [2], [1]]
    strict = {"command": FlowModCommand.OFPFC_DELETE_STRICT}
    switch.say(flow(*ip("10.0.0.2"), priority=9, **strict))  # of another priority
    assert len(switch.table) == 4
    switch.say(flow(*ip("10.0.0.2"), priority=2, **strict))
    assert len(switch.table) == 3
    delete = {"command": FlowModCommand.OFPFC_DELETE}
    switch.say(flow(out_port=2, **delete))  # none has it any more
    assert len(switch.table) == 3
    switch.say(flow(table_id=255, **delete))
    assert len(switch.table) == 0
    for number in range(4):  # all places are free again
        switch.say(flow(*ip(f"10.0.1.{number}")))
    assert {entry.index for entry in switch.table.entries()} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (flow(actions=[ActionOutput(4)]), BadActionCode.OFPBAC_BAD_OUT_PORT),
        (flow(actions=[ActionOutput(PortNo.OFPP_CONTROLLER)]), BadActionCode.OFPBAC_BAD_OUT_PORT),
        (flow(actions=[ActionOutput(1), ActionOutput(2)]), BadActionCode.OFPBAC_TOO_MANY),
        (flow(actions=[ActionPopVLAN(), ActionOutput(1)]), BadActionCode.OFPBAC_BAD_TYPE),
        (flow(actions=[ActionSetQueue(3), ActionOutput(2)]), BadActionCode.OFPBAC_BAD_QUEUE),
        (flow(actions=[ActionSetQueue(1), ActionOutput(1)]), BadActionCode.OFPBAC_BAD_QUEUE),
        (flow(instructions=[InstructionGotoTable(1)]), BadInstructionCode.OFPBIC_BAD_TABLE_ID),
        (flow(instructions=[InstructionMeter(5)]), MeterModFailedCode.OFPMMFC_INVALID_METER),
        (flow(table_id=1), FlowModFailedCode.OFPFMFC_BAD_TABLE_ID),
        (flow(flags=32), FlowModFailedCode.OFPFMFC_BAD_FLAGS),
        (flow(buffer_id=3), BadRequestCode.OFPBRC_BUFFER_UNKNOWN),
        (flow(*ip()[1:]), BadMatchCode.OFPBMC_BAD_PREREQ),
        (flow(*ip(), *ip()), BadMatchCode.OFPBMC_DUP_FIELD),
        (flow(*ip("10.0.0.1", "255.255.255.0")), BadMatchCode.OFPBMC_BAD_WILDCARDS),
        (flow(*ip("10.0.0.0", "255.0.255.0")), BadMatchCode.OFPBMC_BAD_NW_ADDR_MASK),
        (flow(oxm(Field.OFPXMT_OFB_ETH_SRC, bytes(6))), BadMatchCode.OFPBMC_BAD_FIELD),
        (flow(oxm(Field.OFPXMT_OFB_ETH_DST, bytes(5))), BadMatchCode.OFPBMC_BAD_LEN),
        (flow(oxm(Field.OFPXMT_OFB_ETH_DST, bytes(6), bytes(6))), BadMatchCode.OFPBMC_BAD_MASK),
        (flow(oxm(Field.OFPXMT_OFB_IN_PORT, b"\0\0\0\4")), BadMatchCode.OFPBMC_BAD_VALUE),
        (flow(oxm(Field.OFPXMT_OFB_VLAN_VID, b"\0\5")), BadMatchCode.OFPBMC_BAD_VALUE),
        (meter(0), MeterModFailedCode.OFPMMFC_INVALID_METER),
        (meter(5000), MeterModFailedCode.OFPMMFC_OUT_OF_METERS),
        (meter(command=MeterModCommand.OFPMC_MODIFY), MeterModFailedCode.OFPMMFC_UNKNOWN_METER),
        (meter(flags=3), MeterModFailedCode.OFPMMFC_BAD_FLAGS),
        (meter(rates=()), MeterModFailedCode.OFPMMFC_BAD_BAND),
        (meter(rates=(1, 2)), MeterModFailedCode.OFPMMFC_OUT_OF_BANDS),
        (meter(rates=(0,)), MeterModFailedCode.OFPMMFC_BAD_RATE),
    ],
)
def test_what_it_cannot_do_is_refused_by_the_protocols_own_error(message, code):
    switch = Switch()
    assert switch.refusal(message) == code
    assert len(switch.table) == 0
    assert switch.engine.steps == 0


def test_other_messages_are_refused():
    switch = Switch()
    [answer] = switch.say(GroupMod(xid=3, command=0, group_type=0, group_id=1))
    assert (answer.error_type, answer.code) == (6, 3)  # no groups
    packet_out = Header(Type.OFPT_PACKET_OUT, xid=4, length=8)
    switch.sent.clear()
    switch.session.receive(packet_out.pack())
    assert unpack_message(switch.sent[0]).error_type == 1
    assert switch.refusal(MultipartRequest(9, MultipartType.OFPMP_GROUP)) == (
        BadRequestCode.OFPBRC_BAD_MULTIPART
    )


def test_a_full_table_says_so():
    switch = Switch()
    switch.engine.refuses = True
    assert switch.refusal(flow(*ip())) == FlowModFailedCode.OFPFMFC_TABLE_FULL
    assert len(switch.table) == 0
    switch.engine.refuses = False
    switch.table._free.clear()
    assert switch.refusal(flow(*ip())) == FlowModFailedCode.OFPFMFC_TABLE_FULL
    assert MOST_ENTRIES > 1000


def test_entries_that_overlap_are_refused_if_asked():
    switch = Switch()
    switch.say(flow(*ip("10.0.0.0", "255.255.255.0"), priority=1))
    check = {"flags": FlowModFlags.OFPFF_CHECK_OVERLAP}
    overlap = FlowModFailedCode.OFPFMFC_OVERLAP
    assert switch.refusal(flow(*ip("10.0.0.5"), priority=1, **check)) == overlap
    destination = oxm(Field.OFPXMT_OFB_ETH_DST, bytes(6))
    assert switch.refusal(flow(destination, priority=1, **check)) == overlap
    assert switch.say(flow(*ip("10.0.1.5"), priority=1, **check)) == []
    assert switch.say(flow(*ip("10.0.0.5"), priority=2, **check)) == []


def test_covering_and_overlapping_are_what_frames_say():
    # Of all frames of a small world: a match covers another if none is matched by the other alone.
    rng = random.Random(5)
    addresses = range(8)

    def drawn():
        prefix = rng.choice((None, 126, 127, 128))
        shift = 128 - (prefix or 128)
        network = (
            None if prefix is None else Network(rng.choice(addresses) >> shift << shift, prefix)
        )
        return FlowMatch(
            ingress=rng.choice((None, 0, 1)), to=network, to_port=rng.choice((None, 1, 2))
        )

    def frames_of(match):
        return {
            (ingress, address, port)
            for ingress in (0, 1, 2)
            for address in addresses
            for port in (1, 2, 3)
            if match.ingress in (None, ingress)
            and match.to_port in (None, port)
            and (
                match.to is None
                or address >> 128 - match.to.prefix == match.to.address >> 128 - match.to.prefix
            )
        }

    for _ in range(500):
        one, other = drawn(), drawn()
        assert one.overlaps(other) == bool(frames_of(one) & frames_of(other))
        assert one.covers(other) == (frames_of(one) >= frames_of(other))


def test_entries_end_after_their_time_and_are_told_of():
    switch = Switch()
    removal = {"flags": FlowModFlags.OFPFF_SEND_FLOW_REM}
    switch.say(
        flow(*ip("10.0.0.1"), hard_timeout=10, **removal),
        flow(*ip("10.0.0.2"), idle_timeout=4, **removal),
        flow(*ip("10.0.0.3"), idle_timeout=4),
        flow(*ip("10.0.0.4")),
    )
    used = next(e.index for e in switch.table.entries() if e.idle_timeout_s and e.flags)
    gone = []
    for second in range(1, 12):
        switch.now_s = float(second)
        switch.engine.packets[used] = min(second, 3)  # in use until 3 s
        switch.sent.clear()
        removed = switch.table.expire()
        list(switch.datapath.notify_removed(removed))
        gone += [(second, each.entry.match.to.address & 255, each.reason) for each in removed]
        told = [unpack_message(each) for each in switch.sent]
        assert len(told) == sum(bool(each.entry.flags) for each in removed)
        for message in told:
            assert message.duration_sec.value == second
    idle, hard = FlowRemovedReason.OFPRR_IDLE_TIMEOUT, FlowRemovedReason.OFPRR_HARD_TIMEOUT
    assert gone == [(4, 3, idle), (7, 2, idle), (10, 1, hard)]
    assert len(switch.table) == 1


def test_controllers_are_told_of_links_that_come_and_go():
    switch = Switch()
    switch.sent.clear()
    switch.datapath.look_at_links()
    assert switch.sent == []  # nothing has changed
    switch.links = [True, False, True]
    switch.datapath.look_at_links()
    told = [unpack_message(each) for each in switch.sent]
    assert [(message.reason, message.desc.port_no.value) for message in told] == [(2, 2), (2, 3)]
    switch.datapath.look_at_links()
    assert len(switch.sent) == 2


def test_a_meter_that_is_deleted_takes_its_entries_with_it():
    switch = Switch()
    metered = {"instructions": [InstructionMeter(1)]}
    assert switch.say(meter(), meter(2), flow(*ip(), **metered), flow()) == []
    assert switch.refusal(meter()) == MeterModFailedCode.OFPMMFC_METER_EXISTS
    switch.say(meter(command=MeterModCommand.OFPMC_DELETE))
    assert (len(switch.table), list(switch.table.meters.by_number)) == (1, [2])
    switch.say(meter(0xFFFFFFFF, command=MeterModCommand.OFPMC_DELETE))
    assert switch.table.meters.by_number == {}


def ask(switch, kind, body=b""):
    """The entries of what answers a multipart request."""
    answers = switch.say(MultipartRequest(5, kind, 0, BinaryData(body)))
    return [each for answer in answers for each in answer.body]


def test_statistics_are_those_of_the_switch():
    switch = Switch()
    ports = ask(switch, MultipartType.OFPMP_PORT_STATS, b"\xff\xff\xff\xff\0\0\0\0")
    assert [port.port_no.value for port in ports] == [1, 2, 3]
    assert {port.rx_packets.value for port in ports} == {7}
    assert {port.rx_dropped.value for port in ports} == {7 + 7 + 2 * len(DROPS)}
    assert {port.tx_errors.value for port in ports} == {2**64 - 1}  # it does not know
    down = [port.state for port in ask(switch, MultipartType.OFPMP_PORT_DESC)]
    assert [state & 1 for state in down] == [0, 0, 1]
    every = b"\xff\xff\xff\xff"
    queues = ask(switch, MultipartType.OFPMP_QUEUE, every + every)
    found = [(queue.port_no.value, queue.queue_id.value) for queue in queues]
    assert found == [(1, 0), (2, 0), (3, 0), (2, 1), (2, 2)]
    assert {(q.tx_packets.value, q.tx_bytes.value, q.tx_errors.value) for q in queues} == {
        (4, 400, 4)
    }
    assert len(ask(switch, MultipartType.OFPMP_QUEUE, b"\0\0\0\2\0\0\0\2")) == 1
    switch.say(meter(5), flow(*ip(), instructions=[InstructionMeter(5)]), flow())
    switch.engine.packets = {0: 3, 1: 4}
    [table] = ask(switch, MultipartType.OFPMP_TABLE)
    assert (table.active_count.value, table.lookup_count.value) == (2, 6)
    assert table.matched_count.value == 7
    [meters] = ask(switch, MultipartType.OFPMP_METER, every + bytes(4))
    assert (meters.meter_id.value, meters.flow_count.value) == (5, 1)
    assert meters.band_stats[0].packet_band_count.value == 3
    request = FlowStatsRequest(match=Match(oxm_match_fields=list(ip()[:1])))
    [answer] = switch.say(MultipartRequest(5, MultipartType.OFPMP_AGGREGATE, 0, request))
    assert (answer.body[0].flow_count.value, answer.body[0].byte_count.value) == (1, 3 * 64)


def test_many_entries_come_in_several_messages():
    switch = Switch()
    switch.say(
        *(flow(*ip(f"10.0.{n >> 8}.{n & 255}"), actions=[ActionOutput(1)]) for n in range(1400))
    )
    request = MultipartRequest(5, MultipartType.OFPMP_FLOW, 0, FlowStatsRequest())
    answers = switch.say(request)
    assert [answer.flags.value for answer in answers] == [1] * (len(answers) - 1) + [0]
    assert len(answers) > 2
    assert sum(len(answer.body) for answer in answers) == 1400


def test_a_new_master_makes_slaves_which_may_only_read():
    switch = Switch()
    role = {"role": ControllerRole.OFPCR_ROLE_MASTER}
    [reply] = switch.say(RoleRequest(xid=1, generation_id=5, **role))
    assert (reply.role, reply.generation_id) == (2, 5)
    sent: list[bytes] = []
    other = Session(switch.datapath, sent.append)
    other.receive(Hello(xid=1).pack() + RoleRequest(xid=2, generation_id=6, **role).pack())
    assert switch.session.role == ControllerRole.OFPCR_ROLE_SLAVE
    assert switch.refusal(flow()) == BadRequestCode.OFPBRC_IS_SLAVE
    assert switch.flows() == []
    stale = switch.refusal(RoleRequest(xid=3, generation_id=5, **role))
    assert stale.name == "OFPRRFC_STALE"


def test_who_speaks_another_version_is_left():
    switch = Switch()
    sent: list[bytes] = []
    with pytest.raises(HungUpError):
        Session(switch.datapath, sent.append).receive(b"\x01\x00\x00\x08\0\0\0\1")
    assert unpack_message(sent[-1]).error_type == 0
    newer = b"\x06\x00\x00\x10\0\0\0\1\0\1\0\x08\0\0\0\x50"  # 1.5, which knows 1.3, too
    Session(switch.datapath, sent.append).receive(newer)
    with pytest.raises(HungUpError):
        Session(switch.datapath, sent.append).receive(BarrierRequest(xid=1).pack())


def test_hostile_bytes_end_the_conversation_or_are_refused():
    rng = random.Random(8)
    messages = [
        flow(*ip(), actions=[ActionSetQueue(1), ActionOutput(2)]).pack(),
        packed(meter()),
        MultipartRequest(5, MultipartType.OFPMP_FLOW, 0, FlowStatsRequest()).pack(),
        MultipartRequest(
            5, MultipartType.OFPMP_METER_CONFIG, 0, BinaryData(b"\xff\xff\xff\xff\0\0\0\0")
        ).pack(),
        RoleRequest(xid=1, role=2, generation_id=5).pack(),
        Hello(xid=1).pack(),
    ]
    for _ in range(1500):
        switch = Switch()
        message = bytearray(rng.choice(messages))
        for _ in range(rng.randrange(1, 6)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        if rng.random() < 0.5:  # as long as it says
            message[2:4] = len(message).to_bytes(2)
        with suppress(HungUpError):
            switch.session.receive(bytes(message) + bytes(rng.randrange(70)))
        for each in switch.sent:
            assert int.from_bytes(each[2:4]) == len(each)


@pytest.mark.parametrize(
    "kind",
    [
        *(MultipartType.OFPMP_FLOW, MultipartType.OFPMP_AGGREGATE, MultipartType.OFPMP_QUEUE),
        *(MultipartType.OFPMP_PORT_STATS, MultipartType.OFPMP_METER),
        MultipartType.OFPMP_METER_CONFIG,
    ],
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_request_that_is_cut_off_is_refused(kind, size):
    switch = Switch()
    message = MultipartRequest(5, kind, 0, BinaryData(b"\xff" * size) if size else b"")
    assert switch.refusal(message) == BadRequestCode.OFPBRC_BAD_LEN


def test_without_meters_none_is_added():
    switch = Switch(meters=0)
    assert switch.refusal(meter()) == MeterModFailedCode.OFPMMFC_OUT_OF_METERS
    assert switch.table.meters.by_number == {}
    assert switch.engine.steps == 0


def test_messages_come_in_pieces_of_any_size():
    switch = Switch()
    data = b"".join(flow(*ip(f"10.0.0.{n}")).pack() for n in range(9))
    for at in range(0, len(data), 5):
        switch.session.receive(data[at : at + 5])
    assert len(switch.table) == 9


def test_all_fields_reach_the_engine():
    match = match_of(
        Match(
            oxm_match_fields=[
                oxm(Field.OFPXMT_OFB_IN_PORT, b"\0\0\0\2"),
                oxm(Field.OFPXMT_OFB_ETH_DST, bytes(range(6))),
                oxm(Field.OFPXMT_OFB_ETH_TYPE, b"\x86\xdd"),
                oxm(Field.OFPXMT_OFB_VLAN_VID, b"\x10\x05"),
                oxm(Field.OFPXMT_OFB_IP_PROTO, b"\x06"),
                oxm(Field.OFPXMT_OFB_IPV6_DST, b"\x20\x01" + bytes(14), b"\xff\xff" + bytes(14)),
                oxm(Field.OFPXMT_OFB_TCP_SRC, b"\0\1"),
                oxm(Field.OFPXMT_OFB_TCP_DST, b"\0\2"),
            ]
        ),
        PORTS,
    )
    engine = match.for_engine()
    assert (engine.ingress, engine.destination, engine.ethertype) == (1, 0x0102030405, 0x86DD)
    assert (engine.vlan, engine.protocol, engine.from_port, engine.to_port) == (5, 6, 1, 2)
    assert match.to == Network(0x2001 << 112, 16)
    with pytest.raises(RefusedError):
        match_of(Match(match_type=0), PORTS)


def test_addresses_are_those_of_open_vswitch():
    assert address_of("tcp:10.0.0.1", "x") == Address("tcp", "10.0.0.1", 6653)
    assert address_of("ssl:[::1]:77", "x") == Address("ssl", "::1", 77)
    assert address_of("ptcp:", "x") == Address("ptcp", "127.0.0.1", 6653)
    assert address_of("punix:/x/y", "x") == Address("punix", path="/x/y")
    with pytest.raises(MeasureError, match="reachable from other machines"):
        address_of("ptcp:6653:0.0.0.0", "x")
    with pytest.raises(MeasureError, match="is no controller"):
        address_of("udp:10.0.0.1:6653", "x")


@pytest.mark.process
def test_a_controller_with_tls_is_one_of_the_same_authority(tmp_path):
    command = [*DAQLOOM, "control", "certificates", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0

    async def hello() -> bytes:
        """What a switch says to a controller."""
        said = asyncio.get_running_loop().create_future()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
        context.load_cert_chain(tmp_path / "control.pem", tmp_path / "control.key")
        context.verify_mode = ssl.CERT_REQUIRED

        async def came(reader, writer):
            said.set_result(await reader.read(8))
            writer.close()

        server = await asyncio.start_server(came, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        switch = Switch()
        at = [Address("ssl", "127.0.0.1", port)]
        async with server, controllers(switch.datapath, at, tmp_path):
            return await asyncio.wait_for(said, 60)

    assert asyncio.run(hello()) == b"\x04\x00\x00\x08\0\0\0\1"
    with pytest.raises(MeasureError, match="ssl needs"):
        asyncio.run(_nobody())


async def _nobody() -> None:
    async with controllers(Switch().datapath, [Address("ssl", "127.0.0.1", 1)], None):
        pass
