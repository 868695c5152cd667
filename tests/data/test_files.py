"""Files of packets: what is read back, and where a damaged file ends."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daqloom.data import generators, packets
from daqloom.data.generated import write_files
from support.small_packets import EXAMPLE, small


def test_a_file_gives_back_its_packets(tmp_path):
    source = generators(small())[2]
    [path] = write_files([source], tmp_path, 4)
    expected = [source.generate(50 * number) for number in range(4)]
    assert path.name == "source-2.mfp"
    assert [packet for _, packet in packets(path)] == expected
    assert [offset for offset, _ in packets(path)] == np.cumsum(
        [0, *map(len, expected[:3])]
    ).tolist()
    assert path.read_bytes() == b"".join(expected)


@given(st.data())
def test_a_file_of_anything_ends_with_a_sentence_or_is_whole(tmp_path_factory, data):
    whole = EXAMPLE * 3
    cut = data.draw(st.integers(0, len(whole)))
    damaged = bytearray(whole[:cut])
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=3)):
        if at < cut:
            damaged[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("files") / "a.mfp"
    path.write_bytes(damaged)
    read, sentence = all_of(path)
    assert damaged.startswith(read)
    if sentence:
        assert sentence.startswith(f"{path}, byte {len(read)}: ")
    else:
        assert read == damaged


def all_of(path) -> tuple[bytes, str]:
    """The packets of a file, and why there are no more."""
    read = b""
    try:
        for offset, packet in packets(path):
            assert offset == len(read)
            read += packet
    except ValueError as error:
        return read, str(error)
    return read, ""
