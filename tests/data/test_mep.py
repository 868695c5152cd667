"""Multi-event packets: encoding, decoding, and refused values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.data import Mep, MepState, Mfp
from support.small_packets import EXAMPLE


def example_mep() -> Mep:
    states = MepState.COMPLETE, MepState.MISSING, MepState.EMPTY
    mfps = zip((0x2801, 0x2802, 0x2803), states, (EXAMPLE, b"", b""), strict=True)
    return Mep(number=7, event_id=0x1000, events=3, mfps=mfps)


def test_a_mep_has_its_mfps_in_a_table():
    mep = Mep.decode(example_mep().encode())
    assert (mep.number, mep.event_id, mep.events, len(mep)) == (7, 0x1000, 3, 3)
    assert not mep.is_complete
    # 40 bytes of header and 16 for each source; then the MFPs, at multiples of 8.
    first = mep.entries[0]
    assert (first.offset, first.nbytes) == (88, 52)
    assert (first.source_id, first.state) == (0x2801, MepState.COMPLETE)
    assert mep.nbytes == 88 + 56
    assert mep.mfp(0) == Mfp.decode(EXAMPLE)
    assert mep.mfp(1) is None
    assert mep.mfp(2) is None
    assert repr(mep) == "Mep(number=7, event_id=4096, 3 events, 3 sources, 144 bytes)"


@given(
    st.lists(
        st.tuples(st.integers(0, 2**16 - 1), st.sampled_from(MepState), st.binary(max_size=30)),
        max_size=10,
    )
)
def test_a_mep_comes_back_as_it_was(mfps):
    mfps = [
        (source, state, b"" if state == MepState.EMPTY else data) for source, state, data in mfps
    ]
    mep = Mep.decode(Mep(1, 2, 3, mfps).encode())
    assert [(entry.source_id, entry.state) for entry in mep.entries] == [m[:2] for m in mfps]
    expected = [data if state == MepState.COMPLETE else b"" for _, state, data in mfps]
    assert [bytes(mep.place(source)) for source in range(len(mep))] == expected


def test_a_mep_that_is_cut_off_or_has_more_than_an_empty_source_can_have_is_refused():
    packet = example_mep().encode()
    for size in range(len(packet)):
        with pytest.raises(ValueError, match="MEP"):
            Mep.decode(packet[:size])
    with pytest.raises(ValueError, match="empty, with 1 bytes; expected none"):
        Mep(1, 2, 3, [(1, MepState.EMPTY, b"x")])
