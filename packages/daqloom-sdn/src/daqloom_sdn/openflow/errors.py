"""Errors of OpenFlow 1.3.5 with which a switch refuses requests of controllers."""

from enum import Enum


class Error(Enum):
    """Type and code of each error that this switch sends (section 7.4.4)."""

    OFPHFC_INCOMPATIBLE = 0, 0
    OFPBRC_BAD_VERSION = 1, 0
    OFPBRC_BAD_TYPE = 1, 1
    OFPBRC_BAD_MULTIPART = 1, 2
    OFPBRC_BAD_EXPERIMENTER = 1, 3
    OFPBRC_EPERM = 1, 5
    OFPBRC_BAD_LEN = 1, 6
    OFPBRC_BUFFER_UNKNOWN = 1, 8
    OFPBRC_IS_SLAVE = 1, 10
    OFPBRC_BAD_PORT = 1, 11
    OFPBRC_MULTIPART_BUFFER_OVERFLOW = 1, 13
    OFPBAC_BAD_TYPE = 2, 0
    OFPBAC_BAD_OUT_PORT = 2, 4
    OFPBAC_TOO_MANY = 2, 7
    OFPBAC_BAD_QUEUE = 2, 8
    OFPBIC_UNKNOWN_INST = 3, 0
    OFPBIC_UNSUP_INST = 3, 1
    OFPBIC_BAD_TABLE_ID = 3, 2
    OFPBIC_UNSUP_METADATA = 3, 3
    OFPBMC_BAD_TYPE = 4, 0
    OFPBMC_BAD_LEN = 4, 1
    OFPBMC_BAD_NW_ADDR_MASK = 4, 4
    OFPBMC_BAD_WILDCARDS = 4, 5
    OFPBMC_BAD_FIELD = 4, 6
    OFPBMC_BAD_VALUE = 4, 7
    OFPBMC_BAD_MASK = 4, 8
    OFPBMC_BAD_PREREQ = 4, 9
    OFPBMC_DUP_FIELD = 4, 10
    OFPFMFC_TABLE_FULL = 5, 1
    OFPFMFC_BAD_TABLE_ID = 5, 2
    OFPFMFC_OVERLAP = 5, 3
    OFPFMFC_BAD_COMMAND = 5, 6
    OFPFMFC_BAD_FLAGS = 5, 7
    OFPGMFC_OUT_OF_GROUPS = 6, 3
    OFPPMFC_EPERM = 7, 4
    OFPTMFC_EPERM = 8, 2
    OFPQOFC_BAD_PORT = 9, 0
    OFPQOFC_BAD_QUEUE = 9, 1
    OFPSCFC_BAD_FLAGS = 10, 0
    OFPRRFC_STALE = 11, 0
    OFPRRFC_BAD_ROLE = 11, 2
    OFPMMFC_METER_EXISTS = 12, 1
    OFPMMFC_INVALID_METER = 12, 2
    OFPMMFC_UNKNOWN_METER = 12, 3
    OFPMMFC_BAD_COMMAND = 12, 4
    OFPMMFC_BAD_FLAGS = 12, 5
    OFPMMFC_BAD_RATE = 12, 6
    OFPMMFC_BAD_BAND = 12, 8
    OFPMMFC_OUT_OF_METERS = 12, 10
    OFPMMFC_OUT_OF_BANDS = 12, 11


class RefusedError(Exception):
    """A request is refused; the switch answers it with `error`."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.name)
        self.error = error
