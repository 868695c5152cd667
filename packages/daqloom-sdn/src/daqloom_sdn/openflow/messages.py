"""Messages of OpenFlow 1.3.5 (ONF TS-023) that the switch reads and writes, as layouts."""

from enum import IntEnum, IntFlag

from daqloom_sdn.openflow.codec import Choice, Layout, Part, Rest, Several
from daqloom_sdn.openflow.errors import Error

VERSION = 4
"""Version number of OpenFlow 1.3 on the wire."""
NO_BUFFER = ALL_QUEUES = ALL_METERS = ANY_GROUP = 0xFFFF_FFFF
ALL_TABLES = 0xFF
LARGEST_METER = 0xFFFF_0000
VERSION_BITMAP = 1
"""Type of the hello element that lists versions."""


# Numbers by their names in the specification, without prefix (OFPP_, OFPPS_, OFPC_, …).
PortNo = IntEnum(
    "PortNo", {"NORMAL": 0xFFFF_FFFA, "FLOOD": 0xFFFF_FFFB, "ALL": 0xFFFF_FFFC, "ANY": 0xFFFF_FFFF}
)
PortState = IntFlag("PortState", {"LINK_DOWN": 1, "LIVE": 4})
Capability = IntFlag(
    "Capability", {"FLOW_STATS": 1, "TABLE_STATS": 2, "PORT_STATS": 4, "QUEUE_STATS": 64}
)
FlowCommand = IntEnum("FlowCommand", "ADD MODIFY MODIFY_STRICT DELETE DELETE_STRICT", start=0)
FlowFlag = IntFlag(
    "FlowFlag", "SEND_FLOW_REM CHECK_OVERLAP RESET_COUNTS NO_PKT_COUNTS NO_BYT_COUNTS"
)
Removal = IntEnum("Removal", "IDLE_TIMEOUT HARD_TIMEOUT DELETE", start=0)
MeterCommand = IntEnum("MeterCommand", "ADD MODIFY DELETE", start=0)
MeterFlag = IntFlag("MeterFlag", "KBPS PKTPS BURST STATS")
Role = IntEnum("Role", "NOCHANGE EQUAL MASTER SLAVE", start=0)
Property = IntEnum(
    "Property",
    {
        "INSTRUCTIONS": 0,
        "NEXT_TABLES": 2,
        "WRITE_ACTIONS": 4,
        "APPLY_ACTIONS": 6,
        "MATCH": 8,
        "WILDCARDS": 10,
        "WRITE_SETFIELD": 12,
        "APPLY_SETFIELD": 14,
    },
)


def _structure(kind: int, head: str = "", align: int = 1, /, **parts: Part) -> Layout:
    """Return the layout of a structure that begins with its type and length."""
    return Layout(f"type:H={kind} length:H {head}", align, **parts)


def _message(kind: int, head: str = "", /, **parts: Part) -> Layout:
    return Layout(f"version:B={VERSION} type:B={kind} length:H xid:I {head}", **parts)


def _list(item: Layout) -> Several:
    """Return a list whose length only the size of the message limits."""
    return Several(item, 1 << 16, Error.OFPBRC_BAD_LEN)


OXM = Layout("oxm_class:H=0x8000 field_and_mask:B length:B", 1, 4, value=Rest())
"""Field of a match. The last bit of `field_and_mask` is set if a mask follows the value."""
MATCH = _structure(1, "", 8, fields=Several(OXM, 64, Error.OFPBMC_DUP_FIELD))

OUTPUT = _structure(0, "port:I max_len:H 6x")
SET_QUEUE = _structure(21, "queue_id:I")
ACTION = Choice(OUTPUT, SET_QUEUE, otherwise=Error.OFPBAC_BAD_TYPE)
ACTIONS = Several(ACTION, 64, Error.OFPBAC_TOO_MANY)

WRITE_ACTIONS = _structure(3, "4x", actions=ACTIONS)
APPLY_ACTIONS = _structure(4, "4x", actions=ACTIONS)
CLEAR_ACTIONS = _structure(5, "4x")
METER = _structure(6, "meter_id:I")
INSTRUCTION = Choice(
    *(APPLY_ACTIONS, WRITE_ACTIONS, CLEAR_ACTIONS, METER),
    refused={1: Error.OFPBIC_BAD_TABLE_ID, 2: Error.OFPBIC_UNSUP_METADATA},
    otherwise=Error.OFPBIC_UNKNOWN_INST,
)
INSTRUCTIONS = Several(INSTRUCTION, 8, Error.OFPBIC_UNSUP_INST)

DROP_BAND = _structure(1, "rate:I burst_size:I 4x")
BANDS = Several(Choice(DROP_BAND, otherwise=Error.OFPMMFC_BAD_BAND), 1, Error.OFPMMFC_OUT_OF_BANDS)

PORT = Layout(
    "port_no:I 4x hw_addr:6s 2x name:16s config:I state:I curr:I advertised:I supported:I peer:I "
    "curr_speed:I max_speed:I"
)

# Requests and answers, in the order of their type numbers.
HELLO = _message(0, elements=_list(_structure(VERSION_BITMAP, "", 8, data=Rest())))
ERROR = _message(1, "error_type:H code:H", data=Rest())
ECHO_REQUEST = _message(2, data=Rest())
ECHO_REPLY = _message(3, data=Rest())
FEATURES_REQUEST = _message(5)
FEATURES_REPLY = _message(
    6, "datapath_id:Q n_buffers:I n_tables:B=1 auxiliary_id:B 2x capabilities:I reserved:I"
)
GET_CONFIG_REQUEST = _message(7)
GET_CONFIG_REPLY = _message(8, "flags:H miss_send_len:H")
SET_CONFIG = _message(9, "flags:H miss_send_len:H")
FLOW_REMOVED = _message(
    11,
    "cookie:Q priority:H reason:B table_id:B duration_sec:I duration_nsec:I idle_timeout:H "
    "hard_timeout:H packet_count:Q byte_count:Q",
    match=MATCH,
)
PORT_STATUS = _message(12, "reason:B=2 7x", port=PORT)
FLOW_MOD = _message(
    14,
    "cookie:Q cookie_mask:Q table_id:B command:B idle_timeout:H hard_timeout:H priority:H "
    f"buffer_id:I={NO_BUFFER} out_port:I={PortNo.ANY} out_group:I={ANY_GROUP} flags:H 2x",
    match=MATCH,
    instructions=INSTRUCTIONS,
)
MULTIPART_REQUEST = _message(18, "multipart_type:H flags:H 4x", body=Rest())
MULTIPART_REPLY = _message(19, "multipart_type:H flags:H 4x", body=Rest())
BARRIER_REQUEST = _message(20)
BARRIER_REPLY = _message(21)
ROLE_REQUEST = _message(24, "role:I 4x generation_id:Q")
ROLE_REPLY = _message(25, "role:I 4x generation_id:Q")
METER_MOD = _message(29, "command:H flags:H meter_id:I", bands=BANDS)

_READ = (
    *(ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, GET_CONFIG_REQUEST, SET_CONFIG, FLOW_MOD),
    *(MULTIPART_REQUEST, BARRIER_REQUEST, ROLE_REQUEST, METER_MOD),
)
REQUESTS: dict[int, Layout | Error] = {
    **{each.type: each for each in _READ},
    4: Error.OFPBRC_BAD_EXPERIMENTER,
    15: Error.OFPGMFC_OUT_OF_GROUPS,
    16: Error.OFPPMFC_EPERM,
    17: Error.OFPTMFC_EPERM,
}
"""Messages that a controller may send after its hello, by type; an error refuses the type."""

# Bodies of multipart requests and answers.
NOTHING = Layout("")
ANYTHING = Layout("", data=Rest())
FLOW_REQUEST = Layout(
    f"table_id:B={ALL_TABLES} 3x out_port:I={PortNo.ANY} out_group:I={ANY_GROUP} 4x cookie:Q "
    "cookie_mask:Q",
    match=MATCH,
)
PORT_REQUEST = Layout("port_no:I 4x")
QUEUE_REQUEST = Layout("port_no:I queue_id:I")
METER_REQUEST = Layout("meter_id:I 4x")

DESCRIPTION = Layout("mfr_desc:256s hw_desc:256s sw_desc:256s serial_num:32s dp_desc:256s")
FLOW_STATS = Layout(
    "length:H table_id:B x duration_sec:I duration_nsec:I priority:H idle_timeout:H "
    "hard_timeout:H flags:H 4x cookie:Q packet_count:Q byte_count:Q",
    match=MATCH,
    instructions=INSTRUCTIONS,
)
AGGREGATE = Layout("packet_count:Q byte_count:Q flow_count:I 4x")
TABLE_STATS = Layout("table_id:B 3x active_count:I lookup_count:Q matched_count:Q")
PORT_STATS = Layout(
    "port_no:I 4x rx_packets:Q tx_packets:Q rx_bytes:Q tx_bytes:Q rx_dropped:Q tx_dropped:Q "
    "rx_errors:Q tx_errors:Q rx_frame_err:Q rx_over_err:Q rx_crc_err:Q collisions:Q "
    "duration_sec:I duration_nsec:I"
)
QUEUE_STATS = Layout(
    "port_no:I queue_id:I tx_bytes:Q tx_packets:Q tx_errors:Q duration_sec:I duration_nsec:I"
)
BAND_STATS = Layout("packet_band_count:Q byte_band_count:Q")
METER_STATS = Layout(
    "meter_id:I length:H 6x flow_count:I packet_in_count:Q byte_in_count:Q duration_sec:I "
    "duration_nsec:I",
    bands=_list(BAND_STATS),
)
METER_CONFIG = Layout("length:H flags:H meter_id:I", bands=BANDS)
METER_FEATURES = Layout("max_meter:I band_types:I capabilities:I max_bands:B max_color:B 2x")
ELEMENT_ID = _structure(0)
"""Identifier of an instruction or action in a property of table features."""
FIELD_ID = Layout("oxm_class:H=0x8000 field_and_mask:B width:B")
PROPERTY = _structure(0, "", 8, ids=Rest())
TABLE_FEATURES = Layout(
    "length:H table_id:B 5x name:32s metadata_match:Q metadata_write:Q config:I max_entries:I",
    properties=_list(PROPERTY),
)
