"""A sink that writes the built events (MEPs) of a running unit to an HDF5 file, with one group for
each event and one dataset for each source, named like those of DUNE's trigger records.

python hdf5_sink.py daqloom/RUN/UNIT/output FILE.hdf5
"""

import os
import sys

import h5py
import numpy as np

from daqloom.buffers import BufferReader
from daqloom.data import Mep


def write(file: h5py.File, mep: Mep) -> None:
    """Write the events of a MEP. Sources without data have no dataset."""
    for i in range(mep.events):
        event = mep.event_id + i
        record = file.create_group(f"TriggerRecord{event:05}.0000")
        record.attrs["complete"] = mep.is_complete
        raw = record.create_group("RawData")
        for source, entry in enumerate(mep.entries):
            mfp = mep.mfp(source)
            if mfp is not None:
                kind, payload = mfp.fragments[i]
                data = raw.create_dataset(
                    f"SourceID_0x{entry.source_id:08x}", data=np.frombuffer(payload, np.uint8)
                )
                data.attrs["type"] = kind


def main(name: str, path: str) -> None:
    """Write MEPs until the unit ends. The file appears when it is complete."""
    reader = BufferReader(name)
    meps = 0
    with h5py.File(f"{path}.part", "w") as file:
        while not reader.is_at_end:
            piece = reader.next()
            if piece is None:
                if reader.is_abandoned:
                    break
                reader.wait(timeout_s=1)
                continue
            write(file, Mep.decode(piece[1]))
            reader.acknowledge()
            meps += 1
    os.replace(f"{path}.part", path)
    print(f"{meps} MEPs")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
