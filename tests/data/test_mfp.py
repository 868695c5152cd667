"""Multi-fragment packets: encoding, decoding, and refused values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.data import Mep, Mfp
from support.small_packets import EXAMPLE

FRAGMENTS = [(1, b"ABCDE"), (2, b"FGHIJKLM"), (3, b"NOPQ")]


def test_an_mfp_is_encoded_and_decoded_as_in_the_worked_example():
    mfp = Mfp(event_id=0x1000, source_id=0x2801, fragments=FRAGMENTS)
    assert mfp.encode() == EXAMPLE
    assert repr(mfp) == "Mfp(source_id=0x2801, event_id=4096, 3 fragments, 52 bytes)"
    mfp = Mfp.decode(EXAMPLE + b"more")
    assert (mfp.event_id, mfp.source_id, mfp.align, mfp.version) == (0x1000, 0x2801, 2, 3)
    assert mfp.types.tolist() == [1, 2, 3]
    assert mfp.sizes.tolist() == [5, 8, 4]
    assert [(kind, bytes(payload)) for kind, payload in mfp] == FRAGMENTS
    assert mfp.nbytes == 52
    assert bytes(mfp.fragments[-1][1]) == b"NOPQ"


def test_a_decoded_packet_is_a_read_only_view():
    packet = bytearray(EXAMPLE)
    mfp = Mfp.decode(packet)
    packet[32] = ord("X")
    assert bytes(mfp.fragments[0][1]) == b"XBCDE"
    with pytest.raises(TypeError):
        mfp.fragments[0][1][0] = 0
    with pytest.raises(ValueError, match="read-only"):
        mfp.sizes[0] = 3


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 9),
    st.integers(0, 255),
    st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=70)), max_size=20),
)
def test_an_mfp_comes_back_as_it_was(event_id, source_id, align, version, fragments):
    mfp = Mfp.decode(Mfp(event_id, source_id, fragments, align, version).encode())
    assert (mfp.event_id, mfp.source_id) == (event_id, source_id)
    assert (mfp.align, mfp.version) == (align, version)
    assert [(kind, bytes(payload)) for kind, payload in mfp] == fragments


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda tail: b"\xce\x40" + tail))
def test_bytes_that_are_no_packet_are_refused_in_one_line(data):
    for decode, head in ((Mfp.decode, data), (Mep.decode, b"MEP1" + data)):
        try:
            decode(head)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017


@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 255))
def test_an_mfp_with_any_other_byte_is_refused_or_stays_within_its_memory(at, byte):
    changed = bytearray(EXAMPLE)
    changed[at] = byte
    try:
        mfp = Mfp.decode(changed)
    except ValueError:
        return
    assert sum(len(payload) for _, payload in mfp) <= len(EXAMPLE)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"event_id": 2**64}, "MFP with event_id 18446744073709551616; expected 0 to"),
        ({"source_id": -1}, "MFP with source_id -1; expected 0 to 65535"),
        ({"align": 17}, "MFP align 17; give 0 to 16"),
        ({"fragments": [(256, b"")]}, "MFP with type 256; expected 0 to 255"),
        ({"fragments": [(1, bytes(65_536))]}, "MFP fragment of 65536 bytes; give at most 65535"),
        ({"fragments": [(1, b"")] * 65_536}, "MFP of 65536 fragments; give at most 65535"),
    ],
)
def test_values_that_do_not_fit_an_mfp_are_refused(changes, sentence):
    given = {"event_id": 0, "source_id": 0, "fragments": []} | changes
    with pytest.raises(ValueError, match=sentence):
        Mfp(**given)
