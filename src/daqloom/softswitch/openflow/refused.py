"""Why a request of a controller is refused: the protocol's own errors."""

from enum import IntEnum

from pyof.v0x04.asynchronous import error_msg
from pyof.v0x04.asynchronous.error_msg import ErrorType

# The codes of one error's type say nothing of it: here are both together.
_TYPES: dict[type[IntEnum], ErrorType] = {
    error_msg.BadRequestCode: ErrorType.OFPET_BAD_REQUEST,
    error_msg.BadActionCode: ErrorType.OFPET_BAD_ACTION,
    error_msg.BadInstructionCode: ErrorType.OFPET_BAD_INSTRUCTION,
    error_msg.BadMatchCode: ErrorType.OFPET_BAD_MATCH,
    error_msg.FlowModFailedCode: ErrorType.OFPET_FLOW_MOD_FAILED,
    error_msg.GroupModFailedCode: ErrorType.OFPET_GROUP_MOD_FAILED,
    error_msg.HelloFailedCode: ErrorType.OFPET_HELLO_FAILED,
    error_msg.MeterModFailedCode: ErrorType.OFPET_METER_MOD_FAILED,
    error_msg.PortModFailedCode: ErrorType.OFPET_PORT_MOD_FAILED,
    error_msg.QueueOpFailedCode: ErrorType.OFPET_QUEUE_OP_FAILED,
    error_msg.RoleRequestFailedCode: ErrorType.OFPET_ROLE_REQUEST_FAILED,
    error_msg.SwitchConfigFailedCode: ErrorType.OFPET_SWITCH_CONFIG_FAILED,
    error_msg.TableModFailedCode: ErrorType.OFPET_TABLE_MOD_FAILED,
}


class RefusedError(Exception):
    """A request is answered by an error."""

    def __init__(self, code: IntEnum) -> None:
        super().__init__(code.name)
        self.code = code

    @property
    def type(self) -> ErrorType:
        """Type of the error."""
        return _TYPES[type(self.code)]
