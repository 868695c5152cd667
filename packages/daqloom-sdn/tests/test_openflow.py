"""Tests of the software switch's answers to OpenFlow 1.3 controllers, including refusals."""

import random

import pytest

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
from daqloom.results.errors import MeasureError
from daqloom.softswitch.status import DROPS
from daqloom_sdn.openflow.address import Address, address_of, context_of
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.match import FlowMatch, match_of
from daqloom_sdn.openflow.messages import MATCH, MULTIPART_REQUEST, Removal, Role
from daqloom_sdn.openflow.session import HungUpError, Session
from daqloom_sdn.openflow.table import MOST_ENTRIES
from support.openflow_switch import (
    CONTROLLER,
    FLOWS,
    HELLO,
    MAKE,
    OF,
    PORTS,
    Switch,
    flow,
    ip,
    meter,
    output,
    packed,
    receive,
    unpacked,
)

MAC = "02:00:00:00:00:01"
EVERY = 0xFFFF_FFFF


def test_entries_are_added_replaced_changed_and_deleted():
    switch = Switch()
    add = [
        flow(*ip(f"10.0.0.{host}"), priority=host, cookie=host, actions=[output(2)])
        for host in range(4)
    ]
    assert switch.answers(*add) == []
    assert [(f.priority, f.cookie) for f in switch.statistics(FLOWS)] == [(n, n) for n in range(4)]
    assert switch.answers(flow(*ip("10.0.0.3"), priority=3, cookie=8)) == []  # in its place
    assert [(f.cookie, len(f.instructions)) for f in switch.statistics(FLOWS)][3] == (8, 0)
    # A change applies to all entries that it covers; a cookie mask limits it to those with the
    # cookie.
    modify = {"command": OF.OFPFC_MODIFY, "actions": [output(1)]}
    switch.answers(flow(*ip("10.0.0.0", "255.255.255.254"), **modify))
    switch.answers(flow(cookie=8, cookie_mask=0xFF, **modify))
    outputs = [
        [a.port for i in f.instructions for a in i.actions] for f in switch.statistics(FLOWS)
    ]
    assert outputs == [[1], [1], [2], [1]]
    strict = {"command": OF.OFPFC_DELETE_STRICT}
    switch.answers(flow(*ip("10.0.0.2"), priority=9, **strict))  # of another priority
    assert len(switch.table) == 4
    switch.answers(flow(*ip("10.0.0.2"), priority=2, **strict))
    assert len(switch.table) == 3
    delete = {"command": OF.OFPFC_DELETE}
    switch.answers(flow(out_port=2, **delete))  # none has it any more
    assert len(switch.table) == 3
    switch.answers(flow(table_id=255, **delete))
    assert len(switch.table) == 0
    for number in range(4):  # all places are free again
        switch.answers(flow(*ip(f"10.0.1.{number}")))
    assert {entry.index for entry in switch.table.entries()} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (flow(actions=[output(4)]), Error.OFPBAC_BAD_OUT_PORT),
        (flow(actions=[output(OF.OFPP_CONTROLLER)]), Error.OFPBAC_BAD_OUT_PORT),
        (flow(actions=[output(1), output(2)]), Error.OFPBAC_TOO_MANY),
        (flow(actions=[MAKE.OFPActionPopVlan(), output(1)]), Error.OFPBAC_BAD_TYPE),
        (flow(actions=[MAKE.OFPActionSetQueue(3), output(2)]), Error.OFPBAC_BAD_QUEUE),
        (flow(actions=[MAKE.OFPActionSetQueue(1), output(1)]), Error.OFPBAC_BAD_QUEUE),
        (flow(instructions=[MAKE.OFPInstructionGotoTable(1)]), Error.OFPBIC_BAD_TABLE_ID),
        (flow(instructions=[MAKE.OFPInstructionMeter(5)]), Error.OFPMMFC_INVALID_METER),
        (flow(table_id=1), Error.OFPFMFC_BAD_TABLE_ID),
        (flow(flags=32), Error.OFPFMFC_BAD_FLAGS),
        (flow(buffer_id=3), Error.OFPBRC_BUFFER_UNKNOWN),
        (flow(*ip()[1:]), Error.OFPBMC_BAD_PREREQ),
        (flow(*ip(), *ip()), Error.OFPBMC_DUP_FIELD),
        (flow(*ip("10.0.0.1", "255.255.255.0")), Error.OFPBMC_BAD_WILDCARDS),
        (flow(*ip("10.0.0.0", "255.0.255.0")), Error.OFPBMC_BAD_NW_ADDR_MASK),
        (flow(("eth_src", MAC)), Error.OFPBMC_BAD_FIELD),
        # The address has only 5 bytes, so that a byte of it is read as padding.
        (
            packed(flow(("eth_dst", MAC)))
            .replace(b"\x06\6", b"\x06\5", 1)
            .replace(b"\0\x0e", b"\0\x0d"),
            Error.OFPBMC_BAD_LEN,
        ),
        (flow(("eth_dst", (MAC, "00:00:00:00:00:00"))), Error.OFPBMC_BAD_MASK),
        (flow(("in_port", 4)), Error.OFPBMC_BAD_VALUE),
        (flow(("vlan_vid", 5)), Error.OFPBMC_BAD_VALUE),
        (meter(0), Error.OFPMMFC_INVALID_METER),
        (meter(5000), Error.OFPMMFC_OUT_OF_METERS),
        (meter(command=OF.OFPMC_MODIFY), Error.OFPMMFC_UNKNOWN_METER),
        (meter(flags=3), Error.OFPMMFC_BAD_FLAGS),
        (meter(rates=()), Error.OFPMMFC_BAD_BAND),
        (meter(rates=(1, 2)), Error.OFPMMFC_OUT_OF_BANDS),
        (meter(rates=(0,)), Error.OFPMMFC_BAD_RATE),
    ],
)
def test_unsupported_requests_are_refused_with_errors_of_the_protocol(message, code):
    switch = Switch()
    assert switch.refusal(message) == code
    assert len(switch.table) == 0
    assert switch.engine.steps == 0


def test_other_messages_are_refused():
    switch = Switch()
    group = MAKE.OFPGroupMod(CONTROLLER, OF.OFPGC_ADD, OF.OFPGT_ALL, 1, [])
    assert switch.refusal(group) == Error.OFPGMFC_OUT_OF_GROUPS
    packet = MAKE.OFPPacketOut(CONTROLLER, OF.OFP_NO_BUFFER, 1, [output(1)], b"")
    assert switch.refusal(packet) == Error.OFPBRC_BAD_TYPE
    groups = MAKE.OFPGroupDescStatsRequest(CONTROLLER)
    assert switch.refusal(groups) == Error.OFPBRC_BAD_MULTIPART
    role = MAKE.OFPRoleRequest(CONTROLLER, 7, 0)
    assert switch.refusal(role) == Error.OFPRRFC_BAD_ROLE
    assert switch.refusal(flow(command=9)) == Error.OFPFMFC_BAD_COMMAND
    assert switch.refusal(meter(command=9)) == Error.OFPMMFC_BAD_COMMAND


def test_a_full_table_and_overlapping_entries_are_refused():
    switch = Switch()
    switch.engine.refuses = True
    assert switch.refusal(flow(*ip())) == Error.OFPFMFC_TABLE_FULL
    assert len(switch.table) == 0
    switch.engine.refuses = False
    switch.table._free.clear()
    assert switch.refusal(flow(*ip())) == Error.OFPFMFC_TABLE_FULL
    assert MOST_ENTRIES > 1000
    switch = Switch()
    switch.answers(flow(*ip("10.0.0.0", "255.255.255.0"), priority=1))
    check = {"flags": OF.OFPFF_CHECK_OVERLAP}
    overlap = Error.OFPFMFC_OVERLAP
    assert switch.refusal(flow(*ip("10.0.0.5"), priority=1, **check)) == overlap
    assert switch.refusal(flow(("eth_dst", MAC), priority=1, **check)) == overlap
    assert switch.answers(flow(*ip("10.0.1.5"), priority=1, **check)) == []
    assert switch.answers(flow(*ip("10.0.0.5"), priority=2, **check)) == []


def test_covering_and_overlapping_agree_with_all_frames():
    # With few possible frames, a match covers another if it matches all frames of the other.
    rng = random.Random(5)
    addresses = range(8)

    ones = (1 << 128) - 1

    def drawn():
        fields = {
            ("ingress", rng.choice((None, 0, 1)), EVERY),
            ("to_port", rng.choice((None, 1, 2)), 0xFFFF),
        }
        if prefix := rng.choice((None, 126, 127, 128)):
            mask = ones >> 128 - prefix << 128 - prefix
            fields.add(("to", rng.choice(addresses) & mask, mask))
        return FlowMatch(frozenset(field for field in fields if field[1] is not None))

    def frames_of(match):
        return {
            (ingress, address, port)
            for ingress in (0, 1, 2)
            for address in addresses
            for port in (1, 2, 3)
            if all(
                ({"ingress": ingress, "to": address, "to_port": port}[key] ^ value) & mask == 0
                for key, value, mask in match.fields
            )
        }

    for _ in range(500):
        one, other = drawn(), drawn()
        assert one.overlaps(other) == bool(frames_of(one) & frames_of(other))
        assert one.covers(other) == (frames_of(one) >= frames_of(other))


def test_entries_end_after_their_timeout_and_controllers_are_notified():
    switch = Switch()
    removal = {"flags": OF.OFPFF_SEND_FLOW_REM}
    switch.answers(
        flow(*ip("10.0.0.1"), cookie=1, hard_timeout=10, **removal),
        flow(*ip("10.0.0.2"), cookie=2, idle_timeout=4, **removal),
        flow(*ip("10.0.0.3"), cookie=3, idle_timeout=4),
        flow(*ip("10.0.0.4")),
    )
    used = next(
        e.index for e in switch.table.entries() if e.message.idle_timeout and e.message.flags
    )
    gone = []
    for second in range(1, 12):
        switch.now_s = float(second)
        switch.engine.packets[used] = min(second, 3)  # in use until 3 s
        switch.sent.clear()
        removed = switch.table.expire()
        list(switch.datapath.notify_removed(removed))
        gone += [(second, each.entry.message.cookie, each.reason) for each in removed]
        notices = [unpacked(each) for each in switch.sent]
        assert len(notices) == sum(bool(each.entry.message.flags) for each in removed)
        for message in notices:
            assert message.duration_sec == second
    idle, hard = Removal.IDLE_TIMEOUT, Removal.HARD_TIMEOUT
    assert gone == [(4, 3, idle), (7, 2, idle), (10, 1, hard)]
    assert len(switch.table) == 1


def test_controllers_are_notified_of_links_that_come_and_go():
    switch = Switch()
    switch.sent.clear()
    switch.datapath.notify_links()
    assert switch.sent == []  # nothing has changed
    switch.engine.links_up = [True, False, True]
    switch.datapath.notify_links()
    notices = [unpacked(each) for each in switch.sent]
    assert [(message.reason, message.desc.port_no) for message in notices] == [(2, 2), (2, 3)]
    switch.datapath.notify_links()
    assert len(switch.sent) == 2


def test_a_meter_that_is_deleted_takes_its_entries_and_several_cores_have_none():
    switch = Switch()
    metered = {"instructions": [MAKE.OFPInstructionMeter(1)]}
    assert switch.answers(meter(), meter(2), flow(*ip(), **metered), flow()) == []
    assert switch.refusal(meter()) == Error.OFPMMFC_METER_EXISTS
    switch.answers(meter(command=OF.OFPMC_DELETE))
    assert (len(switch.table), list(switch.table.meters.by_number)) == (1, [2])
    switch.answers(meter(0xFFFFFFFF, command=OF.OFPMC_DELETE))
    assert switch.table.meters.by_number == {}
    switch = Switch(0, 1)
    assert switch.refusal(meter()) == Error.OFPMMFC_OUT_OF_METERS
    assert switch.table.meters.by_number == {}
    assert switch.engine.steps == 0


def test_statistics_are_those_of_the_switch():
    switch = Switch()
    ports = switch.statistics(MAKE.OFPPortStatsRequest(CONTROLLER))
    assert [port.port_no for port in ports] == [1, 2, 3]
    assert {port.rx_packets for port in ports} == {7}
    assert {port.rx_dropped for port in ports} == {7 + 7 + 2 * len(DROPS)}
    assert {port.tx_errors for port in ports} == {2**64 - 1}  # it does not know
    down = [port.state for port in switch.statistics(MAKE.OFPPortDescStatsRequest(CONTROLLER))]
    assert [state & 1 for state in down] == [0, 0, 1]
    queues = switch.statistics(MAKE.OFPQueueStatsRequest(CONTROLLER))
    found = [(queue.port_no, queue.queue_id) for queue in queues]
    assert found == [(1, 0), (2, 0), (3, 0), (2, 1), (2, 2)]
    assert {(q.tx_packets, q.tx_bytes, q.tx_errors) for q in queues} == {(4, 400, 4)}
    assert len(switch.statistics(MAKE.OFPQueueStatsRequest(CONTROLLER, 0, 2, 2))) == 1
    switch.answers(meter(5), flow(*ip(), instructions=[MAKE.OFPInstructionMeter(5)]), flow())
    switch.engine.packets = {0: 3, 1: 4}
    [table] = switch.statistics(MAKE.OFPTableStatsRequest(CONTROLLER, 0))
    assert (table.active_count, table.lookup_count) == (2, 6)
    assert table.matched_count == 7
    [meters] = switch.statistics(MAKE.OFPMeterStatsRequest(CONTROLLER))
    assert (meters.meter_id, meters.flow_count) == (5, 1)
    assert meters.band_stats[0].packet_band_count == 3
    [config] = switch.statistics(MAKE.OFPMeterConfigStatsRequest(CONTROLLER))
    assert (config.meter_id, config.bands[0].rate) == (5, 10)
    [features] = switch.statistics(MAKE.OFPMeterFeaturesStatsRequest(CONTROLLER))
    assert (features.max_meter, features.band_types) == (1024, 1 << OF.OFPMBT_DROP)
    match = MAKE.OFPMatch(_ordered_fields=list(ip()[:1]))
    entries = (0, OF.OFPTT_ALL, OF.OFPP_ANY, OF.OFPG_ANY, 0, 0)
    request = MAKE.OFPAggregateStatsRequest(CONTROLLER, *entries, match)
    [total] = switch.statistics(request)
    assert (total.flow_count, total.byte_count) == (1, 3 * 64)


def test_the_features_list_supported_matches_and_actions():
    switch = Switch()
    [table] = switch.statistics(MAKE.OFPTableFeaturesStatsRequest(CONTROLLER))
    listed = {each.type: each for each in table.properties}
    assert [action.type for action in listed[OF.OFPTFPT_APPLY_ACTIONS].action_ids] == [0, 21]
    instructions = listed[OF.OFPTFPT_INSTRUCTIONS].instruction_ids
    assert sorted(each.type for each in instructions) == [3, 4, 5, 6]
    fields = {each.type for each in listed[OF.OFPTFPT_MATCH].oxm_ids}
    assert fields >= {"in_port", "eth_dst", "eth_type", "vlan_vid", "ipv6_dst", "udp_dst"}
    change = MAKE.OFPTableFeaturesStatsRequest(CONTROLLER, 0, [table])
    assert switch.refusal(change) == Error.OFPBRC_EPERM


def test_many_entries_and_pieces_of_any_size_come_in_several_messages():
    switch = Switch()
    switch.answers(
        *(flow(*ip(f"10.0.{n >> 8}.{n & 255}"), actions=[output(1)]) for n in range(1400))
    )
    answers = switch.answers(FLOWS)
    assert [answer.flags for answer in answers] == [1] * (len(answers) - 1) + [0]
    assert len(answers) > 2
    assert sum(len(answer.body) for answer in answers) == 1400
    switch = Switch()
    data = b"".join(packed(flow(*ip(f"10.0.0.{n}"))) for n in range(9))
    for at in range(0, len(data), 5):
        switch.receive(data[at : at + 5])
    assert len(switch.table) == 9


def test_a_new_master_makes_slaves_which_may_only_read():
    switch = Switch()

    def master(generation):
        return MAKE.OFPRoleRequest(CONTROLLER, OF.OFPCR_ROLE_MASTER, generation)

    [reply] = switch.answers(master(5))
    assert (reply.role, reply.generation_id) == (2, 5)
    other = Session(switch.datapath, [].append)
    receive(other, HELLO + packed(master(6)))
    assert switch.session.role == Role.SLAVE
    assert switch.refusal(flow()) == Error.OFPBRC_IS_SLAVE
    assert switch.statistics(FLOWS) == []
    assert switch.refusal(master(5)) == Error.OFPRRFC_STALE


def test_a_controller_of_another_version_is_disconnected():
    switch = Switch()
    sent: list[bytes] = []
    with pytest.raises(HungUpError):
        receive(Session(switch.datapath, sent.append), b"\x01\x00\x00\x08\0\0\0\1")
    assert unpacked(sent[-1]).type == OF.OFPET_HELLO_FAILED
    newer = b"\x06\x00\x00\x10\0\0\0\1\0\1\0\x08\0\0\0\x50"  # 1.5, which knows 1.3, too
    receive(Session(switch.datapath, sent.append), newer)
    with pytest.raises(HungUpError):
        receive(Session(switch.datapath, sent.append), packed(MAKE.OFPBarrierRequest(CONTROLLER)))


@pytest.mark.parametrize("kind", [1, 2, 4, 5, 9, 10])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_multipart_request_that_is_cut_off_is_refused(kind, size):
    cut = MULTIPART_REQUEST.write(MULTIPART_REQUEST(xid=7, multipart_type=kind, body=bytes(size)))
    assert Switch().refusal(cut) == Error.OFPBRC_BAD_LEN


def test_all_fields_reach_the_engine():
    fields = {
        "in_port": 2,
        "eth_dst": "00:01:02:03:04:05",
        "eth_type": 0x86DD,
        "vlan_vid": 5 | OF.OFPVID_PRESENT,
        "ip_proto": 6,
        "ipv6_dst": ("2001::", "ffff::"),
        "tcp_src": 1,
        "tcp_dst": 2,
    }
    data = bytearray()
    MAKE.OFPMatch(_ordered_fields=list(fields.items())).serialize(data, 0)
    match = match_of(MATCH.decode(bytes(data)), PORTS)
    engine = match.engine_match()
    assert (engine.ingress, engine.destination, engine.ethertype) == (1, 0x0102030405, 0x86DD)
    assert (engine.vlan, engine.protocol, engine.from_port, engine.to_port) == (5, 6, 1, 2)
    assert ("to", 0x2001 << 112, 0xFFFF << 112) in match.fields
    with pytest.raises(RefusedError):
        match_of(MATCH(type=0), PORTS)


def test_addresses_are_those_of_open_vswitch():
    assert address_of("tcp:10.0.0.1") == Address("tcp", "10.0.0.1", 6653)
    assert address_of("ssl:[::1]:77") == Address("ssl", "::1", 77)
    assert address_of("ptcp:") == Address("ptcp", "127.0.0.1", 6653)
    assert address_of("punix:/x/y") == Address("punix", path="/x/y")
    with pytest.raises(MeasureError, match="reachable from other machines"):
        address_of("ptcp:6653:0.0.0.0")
    with pytest.raises(MeasureError, match=r"ssl needs control\.certificates"):
        context_of("ssl", None)
