"""Files of packets: packets read back, and damaged places skipped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.data import Mfp, generators, packets
from daqloom.data.files import DamagedPart
from daqloom.data.generator import write_files
from support.small_packets import small


def test_a_file_gives_back_its_packets(tmp_path):
    source = generators(small())[2]
    [path] = write_files([source], tmp_path, 4)
    expected = [source.generate(50 * number) for number in range(4)]
    assert path.name == "source-2.mfp"
    assert [packet for _, packet in packets(path)] == expected
    starts = np.cumsum([0, *map(len, expected[:3])]).tolist()
    assert [offset for offset, _ in packets(path)] == starts
    assert path.read_bytes() == b"".join(expected)


@given(st.data())
def test_each_byte_of_any_file_is_read_or_skipped(tmp_path_factory, data):
    whole = b"".join(Mfp(event, 3, [(1, b"fragment")] * 2).encode() for event in range(0, 8, 2))
    cut = data.draw(st.integers(0, len(whole)))
    damaged = bytearray(whole[:cut])
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=3)):
        if at < cut:
            damaged[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("files") / "a.mfp"
    path.write_bytes(damaged)
    pieces: list[tuple[int, bytes]] = []
    read = packets(path, skip=lambda left: pieces.append(piece(damaged, left)))
    try:
        pieces += list(read)
    except ValueError as error:  # without a whole packet
        assert str(error).startswith(f"{path}, byte 0: ")  # noqa: PT017
        assert not pieces
        return
    assert b"".join(bytes_ for _, bytes_ in sorted(pieces)) == damaged


def piece(whole: bytearray, left: DamagedPart) -> tuple[int, bytes]:
    assert left.nbytes > 0
    return left.offset, bytes(whole[left.offset : left.offset + left.nbytes])


def test_packets_behind_a_damaged_one_are_read_with_a_warning(tmp_path):
    path = tmp_path / "a.mfp"
    each = [Mfp(event, 3, [(1, b"fragment")] * 2).encode() for event in range(0, 20, 2)]
    damaged = bytearray(b"".join(each))
    damaged[4 * len(each[0])] ^= 1
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match=f"{len(each[0])} bytes were skipped"):
        read = [packet for _, packet in packets(path)]
    assert read == each[:4] + each[5:]
