"""Tests of OpenFlow's structures: round trips, hostile bytes, and the constants of os-ken."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Choice, Layout, Rest, Several
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.session import HungUpError
from support.openflow_switch import (
    CONTROLLER,
    FLOWS,
    HELLO,
    MAKE,
    OF,
    Switch,
    flow,
    ip,
    meter,
    output,
    packed,
    unpacked,
)

LAYOUTS = {name: each for name, each in vars(messages).items() if isinstance(each, Layout)}
CHOSEN = {"length", "type", "version"}
"""Fields that the layout or the encoder sets."""
BITS = {"B": 8, "H": 16, "I": 32, "Q": 64}


def numbers(kind: str):
    if kind.endswith("s"):
        size = int(kind[:-1])
        return st.binary(min_size=size, max_size=size)
    return st.integers(0, 2 ** BITS[kind] - 1)


def values(part):
    """Return a strategy for records of `part`; types and versions have their defaults."""
    match part:
        case Rest():
            return st.binary(max_size=20)
        case Several():
            return st.lists(values(part.item), max_size=min(part.most, 3)).map(tuple)
        case Choice():
            return st.one_of(*map(values, part.layouts.values()))
    head = {name: numbers(kind) for name, kind in part.head.items()}
    parts = {name: values(each) for name, each in part.parts.items()}
    return st.builds(part, **{n: head[n] for n in head if n not in CHOSEN}, **parts)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_each_structure_is_read_as_it_was_written(layout):
    @given(values(layout))
    def check(record):
        data = layout.write(record)
        assert layout.decode(data) == record
        for other in (data[:-1], data + b"\0"):  # malformed, but where bytes fill a structure
            with suppress(RefusedError):
                assert layout.write(layout.decode(other)) == other

    check()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_arbitrary_bytes_are_read_or_refused(layout):
    @given(st.binary(max_size=200))
    def check(data):
        with suppress(RefusedError):
            layout.write(layout.decode(data))

    check()


MESSAGES = [
    packed(flow(*ip(), actions=[MAKE.OFPActionSetQueue(1), output(2)])),
    packed(meter()),
    packed(MAKE.OFPMeterConfigStatsRequest(CONTROLLER)),
    packed(MAKE.OFPRoleRequest(CONTROLLER, OF.OFPCR_ROLE_MASTER, 5)),
    packed(MAKE.OFPSetConfig(CONTROLLER, 0, 128)),
    FLOWS,
    HELLO,
]


@st.composite
def damaged(draw) -> bytes:
    """Draw bytes of a controller: a message with some bytes changed, and more bytes after it."""
    message = bytearray(draw(st.sampled_from(MESSAGES)))
    places = st.integers(0, len(message) - 1)
    for place, byte in draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=5)):
        message[place] = byte
    if draw(st.booleans()):
        message[2:4] = len(message).to_bytes(2)
    return bytes(message) + draw(st.binary(max_size=70))


@settings(max_examples=500)
@given(st.lists(damaged() | st.binary(max_size=100), max_size=4))
def test_hostile_bytes_end_the_conversation_or_are_refused(pieces):
    switch = Switch()
    with suppress(HungUpError):
        for each in pieces:
            switch.receive(each)
    for each in switch.sent:
        assert unpacked(each).msg_len == len(each)


def distinct(layout: Layout) -> dict[str, int | bytes]:
    """Return a different value for each field of a structure."""
    names = [name for name in layout.head if name not in CHOSEN]
    kinds = [layout.head[name] for name in names]
    return {
        name: bytes([65 + at]) * int(kind[:-1]) if kind.endswith("s") else at + 1
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }


BODIES = {
    OF.OFPMP_DESC: messages.DESCRIPTION,
    OF.OFPMP_FLOW: messages.FLOW_STATS,
    OF.OFPMP_AGGREGATE: messages.AGGREGATE,
    OF.OFPMP_TABLE: messages.TABLE_STATS,
    OF.OFPMP_PORT_STATS: messages.PORT_STATS,
    OF.OFPMP_QUEUE: messages.QUEUE_STATS,
    OF.OFPMP_METER: messages.METER_STATS,
    OF.OFPMP_METER_CONFIG: messages.METER_CONFIG,
    OF.OFPMP_METER_FEATURES: messages.METER_FEATURES,
    OF.OFPMP_TABLE_FEATURES: messages.TABLE_FEATURES,
    OF.OFPMP_PORT_DESC: messages.PORT,
}


@pytest.mark.parametrize("kind", BODIES)
def test_os_ken_reads_each_body_as_it_was_written(kind):
    values = distinct(BODIES[kind])
    body = BODIES[kind].write(BODIES[kind](**values))
    reply = messages.MULTIPART_REPLY(multipart_type=kind, body=body)
    read = unpacked(messages.MULTIPART_REPLY.write(reply)).body
    [part] = read if isinstance(read, list) else [read]
    if kind == OF.OFPMP_PORT_DESC:
        values["hw_addr"] = ":".join(f"{byte:02x}" for byte in values["hw_addr"])
    assert {name: getattr(part, name) for name in values} == values


@pytest.mark.parametrize(
    "layout",
    [
        *(messages.FEATURES_REPLY, messages.GET_CONFIG_REPLY, messages.ROLE_REPLY),
        *(messages.FLOW_REMOVED, messages.PORT_STATUS, messages.ECHO_REPLY),
    ],
)
def test_os_ken_reads_each_message_as_it_was_written(layout):
    values = distinct(layout)
    read = unpacked(layout.write(layout(**values)))
    assert read.msg_type == layout.type
    assert {name: getattr(read, name) for name in values if name != "reserved"} == {
        name: value for name, value in values.items() if name != "reserved"
    }


@pytest.mark.parametrize(
    ("message", "layout"),
    [
        (MAKE.OFPSetConfig(CONTROLLER, 1, 2), None),
        (MAKE.OFPRoleRequest(CONTROLLER, 1, 2), None),
        (MAKE.OFPMeterMod(CONTROLLER, 1, 2, 3), None),
        (MAKE.OFPFlowMod(CONTROLLER, *range(1, 12)), None),
        (MAKE.OFPFlowStatsRequest(CONTROLLER, 0, *range(1, 6)), messages.FLOW_REQUEST),
        (MAKE.OFPPortStatsRequest(CONTROLLER, 0, 1), messages.PORT_REQUEST),
        (MAKE.OFPQueueStatsRequest(CONTROLLER, 0, 1, 2), messages.QUEUE_REQUEST),
        (MAKE.OFPMeterStatsRequest(CONTROLLER, 0, 1), messages.METER_REQUEST),
    ],
)
def test_each_request_of_os_ken_is_read_as_it_was_written(message, layout):
    data = packed(message)
    read = messages.REQUESTS[data[1]].decode(data)
    if layout is not None:
        read = layout.decode(read.body)
    names = read.layout.head.keys() - CHOSEN - {"xid"}
    assert {name: getattr(read, name) for name in names} == {
        name: getattr(message, name) for name in names
    }


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (messages.PortNo, "OFPP_"),
        (messages.PortState, "OFPPS_"),
        (messages.Capability, "OFPC_"),
        (messages.FlowCommand, "OFPFC_"),
        (messages.FlowFlag, "OFPFF_"),
        (messages.Removal, "OFPRR_"),
        (messages.MeterCommand, "OFPMC_"),
        (messages.MeterFlag, "OFPMF_"),
        (messages.Role, "OFPCR_ROLE_"),
        (messages.Property, "OFPTFPT_"),
    ],
)
def test_numbers_are_those_of_os_ken(names, prefix):
    assert {each.name: each.value for each in names} == {
        each.name: getattr(OF, prefix + each.name) for each in names
    }


def test_errors_are_those_of_os_ken():
    types = {getattr(OF, name): name for name in dir(OF) if name.startswith("OFPET_")}
    for error in Error:
        kind, code = error.value
        assert getattr(OF, error.name) == code
        # The prefix OFPBRC_ has the initials of BAD_REQUEST (of OFPET_BAD_REQUEST) and C for code.
        words = types[kind].split("_")[1:]
        assert error.name.split("_")[0][3:-1] == "".join(word[0] for word in words), error
