"""Packets of event data: multi-fragment packets (MFPs), multi-event packets (MEPs), their files.

>>> from daqloom.data import Mfp
>>> packet = Mfp(event_id=7, source_id=3, fragments=((1, b"ABCDE"), (1, b"FG"))).encode()
>>> Mfp.decode(packet).sizes
array([5, 2], dtype=uint16)

Malformed packets raise ValueError with one sentence. See docs/reference/data-formats.md.
"""

from daqloom.data.check import check_file
from daqloom.data.files import packets
from daqloom.data.generator import generators
from daqloom.data.mep import Mep, MepEntry, MepState
from daqloom.data.mfp import Mfp
from daqloom.data.recording import CheckedRecording, check_recording
from daqloom.data.recover import Recovery, UnfinishedFile, recover, unfinished_files

__all__ = [
    "CheckedRecording",
    "Mep",
    "MepEntry",
    "MepState",
    "Mfp",
    "Recovery",
    "UnfinishedFile",
    "check_file",
    "check_recording",
    "generators",
    "packets",
    "recover",
    "unfinished_files",
]
