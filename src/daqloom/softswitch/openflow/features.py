"""What the flow table of a switch can match and do, as controllers ask for it."""

from collections.abc import Iterable

from pyof.foundation.base import GenericStruct
from pyof.foundation.basic_types import BinaryData, Pad
from pyof.v0x04.common.action import ActionHeader, ActionType
from pyof.v0x04.common.flow_instructions import Instruction, InstructionType
from pyof.v0x04.common.flow_match import OxmClass, OxmTLV
from pyof.v0x04.controller2switch.common import Property, TableFeatures
from pyof.v0x04.controller2switch.common import TableFeaturePropType as Kind

from daqloom.softswitch.configure import MOST_ENTRIES
from daqloom.softswitch.openflow.match import WIDTHS

INSTRUCTIONS = (
    InstructionType.OFPIT_APPLY_ACTIONS,
    InstructionType.OFPIT_WRITE_ACTIONS,
    InstructionType.OFPIT_CLEAR_ACTIONS,
    InstructionType.OFPIT_METER,
)
ACTIONS = (ActionType.OFPAT_OUTPUT, ActionType.OFPAT_SET_QUEUE)


ID_BYTES = 4
"""Of an instruction, an action or a field, of which a property has the head only."""


class Ids(Property):
    """What is supported of a kind; in one class for all, as the library's lists take each action as
    longer than it is."""

    ids = BinaryData()

    def __init__(self, kind: Kind, supported: Iterable[GenericStruct] = ()) -> None:
        super().__init__(kind)
        self.ids = BinaryData(b"".join(each.pack()[:ID_BYTES] for each in supported))


class Features(TableFeatures):
    """Features with properties that are packed already: the library does not pad them."""

    properties = BinaryData()


def features_of(table: int) -> Features:
    """Return the features of the switch's only table, by its number."""
    fields = [
        OxmTLV(OxmClass.OFPXMC_OPENFLOW_BASIC, field, oxm_value=bytes(width))
        for field, width in WIDTHS.items()
    ]
    actions = [ActionHeader(kind, ID_BYTES) for kind in ACTIONS]
    properties = [
        Ids(Kind.OFPTFPT_INSTRUCTIONS, [Instruction(kind) for kind in INSTRUCTIONS]),
        Ids(Kind.OFPTFPT_NEXT_TABLES),
        Ids(Kind.OFPTFPT_WRITE_ACTIONS, actions),
        Ids(Kind.OFPTFPT_APPLY_ACTIONS, actions),
        Ids(Kind.OFPTFPT_MATCH, fields),
        Ids(Kind.OFPTFPT_WILDCARDS, fields),
        Ids(Kind.OFPTFPT_WRITE_SETFIELD),
        Ids(Kind.OFPTFPT_APPLY_SETFIELD),
    ]
    return Features(
        table_id=table,
        name="table",
        metadata_match=0,
        metadata_write=0,
        max_entries=MOST_ENTRIES,
        properties=BinaryData(b"".join(_padded(each) for each in properties)),
    )


def _padded(of: Property) -> bytes:
    packed: bytes = of.pack()
    padding: bytes = Pad(-len(packed) % 8).pack()
    return packed + padding
