"""Checks of packets and of their files: each fault is found at its place."""

from daqloom import _engine
from daqloom.data import Mep, MepState, Mfp, generators
from daqloom.data.check import check_file
from support.small_packets import EXAMPLE, small


def test_check_finds_faults_of_mfps_and_recorded_data_are_not_generated_ones(tmp_path):
    source = generators(small())[0]
    packet = bytearray(source.generate(100))
    right = _engine.check_mfp(source, 100, packet)
    assert (right.fault, right.mfps, right.fragments) == (None, 1, 50)
    assert right.fragment_bytes == Mfp.decode(packet).sizes.sum()
    packet[-1 - 50] ^= 1
    wrong = _engine.check_mfp(source, 100, packet)
    assert wrong.offset == len(packet) - 51
    assert wrong.source_id == 0
    assert _engine.check_mfp(source, 150, source.generate(100)).fault == "event number"
    path = tmp_path / "a.mfp"
    path.write_bytes(EXAMPLE * 2)
    checked = check_file(path)
    assert (checked.fault_count, checked.is_generated) == (0, False)
    assert check_file(path, generated=True).fault_count == 2


def test_a_mep_of_generated_mfps_is_checked():
    sources = generators(small())
    built = [(s.source_id, MepState.COMPLETE, s.generate(100)) for s in sources]
    check = _engine.check_mep(sources, Mep(2, 100, 50, built).encode())
    assert (check.fault, check.mfps, check.absent, check.fragments) == (None, 8, 0, 400)
    built[3] = (3, MepState.MISSING, b"")
    check = _engine.check_mep(sources, Mep(2, 100, 50, built).encode())
    assert (check.fault, check.mfps, check.absent) == (None, 7, 1)
    built[3] = (3, MepState.COMPLETE, sources[4].generate(100))
    assert _engine.check_mep(sources, Mep(2, 100, 50, built).encode()).fault == "source id"


def mep_file(path, change=lambda number, mfps: mfps):
    sources = generators(small())
    packets = []
    for number in range(3):
        built = [(s.source_id, MepState.COMPLETE, s.generate(50 * number)) for s in sources]
        packets.append(Mep(number, 50 * number, 50, change(number, built)).encode())
    path.write_bytes(b"".join(packets))
    return packets


def test_check_counts_the_mfps_that_meps_lack(tmp_path):
    path = tmp_path / "a.mep"
    absent = [(source, MepState.MISSING, b"") for source in range(8)]
    mep_file(path, lambda number, mfps: [*mfps[:number], *absent[number:]])
    checked = check_file(path)
    assert (checked.packets, checked.mfps, checked.missing) == (3, 3, 21)
    assert (checked.is_generated, checked.fault_count) == (True, 0)


def test_check_finds_mfps_in_the_wrong_mep(tmp_path):
    path = tmp_path / "a.mep"
    later = generators(small())[5].generate(100)
    packets = mep_file(path, lambda _, mfps: [*mfps[:5], (5, MepState.COMPLETE, later), *mfps[6:]])
    checked = check_file(path)
    assert checked.fault_count == 2
    [first, second] = checked.faults
    assert first.reason == "MFP with first event 100 instead of 0, the value in its MEP"
    assert (first.source, first.event) == (5, 0)
    assert first.offset == Mep.decode(packets[0]).entries[5].offset
    assert second.offset == len(packets[0]) + Mep.decode(packets[1]).entries[5].offset


def test_check_finds_a_flipped_byte_in_a_mep(tmp_path):
    path = tmp_path / "a.mep"
    packets = mep_file(path)
    entry = Mep.decode(packets[1]).entries[6]
    place = len(packets[0]) + entry.offset
    data = bytearray(path.read_bytes())
    mfp = Mfp.decode(data[place:])
    start = mfp.nbytes - sum(-(-size // 4) * 4 for size in mfp.sizes[20:].tolist())
    data[place + start + 3] ^= 0x20
    path.write_bytes(data)
    [fault] = check_file(path).faults
    assert (fault.offset, fault.reason) == (place + start + 3, "fragment bytes")
    assert (fault.source, fault.event) == (6, 50 + 20)
