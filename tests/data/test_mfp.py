"""Packets of event data, generated data, and files of packets."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom import _engine
from daqloom.data import Mep, MepState, Mfp, generators, packets
from daqloom.data.check import check_file
from daqloom.data.generated import write_files
from daqloom.output import OutputError
from daqloom.scenario.errors import ScenarioError
from daqloom.topology.loaded import load

EXAMPLE = bytes.fromhex(
    "ce40 0300 34000000 0010000000000000 0128 02 03"
    "010203 00 0500 0800 0400 0000"
    "4142434445 000000 464748494a4b4c4d 4e4f5051"
)
SMALL = ("readout.units=4", "readout.streams=2", "event.packing=50", "event.groups=[]")
"""Eight sources of 50 fragments."""


def small(*overrides):
    return load("lhcb-10-percent", [*SMALL, *overrides])


def test_an_mfp_is_encoded_as_in_the_worked_example():
    fragments = [(1, b"ABCDE"), (2, b"FGHIJKLM"), (3, b"NOPQ")]
    mfp = Mfp(event_id=0x1000, source_id=0x2801, fragments=fragments)
    assert mfp.encode() == EXAMPLE
    assert repr(mfp) == "Mfp(source_id=0x2801, event_id=4096, 3 fragments, 52 bytes)"


def test_an_mfp_is_decoded_as_in_the_worked_example():
    mfp = Mfp.decode(EXAMPLE + b"more")
    assert (mfp.event_id, mfp.source_id, mfp.align, mfp.version) == (0x1000, 0x2801, 2, 3)
    assert mfp.types.tolist() == [1, 2, 3]
    assert mfp.sizes.tolist() == [5, 8, 4]
    assert [(kind, bytes(payload)) for kind, payload in mfp] == [
        (1, b"ABCDE"),
        (2, b"FGHIJKLM"),
        (3, b"NOPQ"),
    ]
    assert mfp.nbytes == 52
    assert bytes(mfp.fragments[-1][1]) == b"NOPQ"


def test_what_is_decoded_is_a_view_that_cannot_be_written():
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
def test_bytes_that_are_no_packet_are_refused(data):
    for decode, head in ((Mfp.decode, data), (Mep.decode, b"MEP1" + data)):
        assert "\n" not in refusal(decode, head)


def refusal(decode, data) -> str:
    """The sentence; empty if it was decoded."""
    try:
        decode(data)
    except ValueError as error:
        return str(error)
    return ""


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
def test_what_an_mfp_cannot_say_is_refused(changes, sentence):
    given = {"event_id": 0, "source_id": 0, "fragments": []} | changes
    with pytest.raises(ValueError, match=sentence):
        Mfp(**given)


def example_mep() -> Mep:
    return Mep(
        number=7,
        event_id=0x1000,
        events=3,
        mfps=[
            (0x2801, MepState.COMPLETE, EXAMPLE),
            (0x2802, MepState.MISSING, b""),
            (0x2803, MepState.EMPTY, b""),
        ],
    )


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


def splitmix(source: int, event: int) -> int:
    """The hash that generated fragments begin with, as splitmix64 publishes it."""
    z = event + 0x9E3779B97F4A7C15 * (source + 1) & 2**64 - 1
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return z ^ z >> 31


def test_a_generated_fragment_is_words_of_a_hash_cut_off_at_its_size():
    source = generators(small("event.fragment_size=19 B", 'event.fragment_sizes="fixed"'))[3]
    mfp = Mfp.decode(source.generate(1_000))
    assert (mfp.source_id, mfp.event_id, len(mfp)) == (3, 1_000, 50)
    for place, (_, payload) in enumerate(mfp):
        first = splitmix(3, 1_000 + place)
        words = [first + i * 0x9E3779B97F4A7C15 & 2**64 - 1 for i in range(3)]
        assert bytes(payload) == b"".join(word.to_bytes(8, "little") for word in words)[:19]


def test_sources_of_a_scenario_have_its_sizes():
    groups = "[{sources = 4, share = 1.0}, {sources = 4, share = 3.0}]"
    sources = generators(small(f"event.groups={groups}", "event.fragment_size=100 B"))
    assert [source.source_id for source in sources] == list(range(8))
    # A quarter of 8 · 100 B in four sources, three quarters in the other four.
    for source, mean in zip(sources, [50] * 4 + [150] * 4, strict=True):
        sizes = [Mfp.decode(source.generate(50 * n)).sizes for n in range(20)]
        assert np.mean(sizes) == pytest.approx(mean, abs=5 * (mean / 1000) ** 0.5)


def test_sizes_follow_the_seed():
    first, again = (generators(small(), seed=5)[0].generate(0) for _ in range(2))
    assert first == again
    assert generators(small(), seed=6)[0].generate(0) != first


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["event.packing=65536"],
            "event.packing = 65536: an MFP counts its fragments in",
        ),
        (
            ["event.fragment_size=70 kB"],
            "event.fragment_size: a source's fragments have 70000 bytes",
        ),
    ],
)
def test_a_scenario_whose_mfps_cannot_be_is_refused(overrides, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        generators(small(*overrides))


def test_the_largest_mfps_that_a_scenario_can_say_have_a_packet_size():
    scenario = small("event.fragment_size=60 kB", "event.packing=65535")
    assert 65_535 * 60_000 < generators(scenario)[0].largest < 2**32


def test_a_rack_has_no_mfps():
    with pytest.raises(ScenarioError, match="atlas-lab pulls fragments"):
        generators(load("atlas-lab"))


def test_check_names_what_is_wrong_with_an_mfp():
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


def test_no_file_is_begun_where_there_is_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OutputError, match=r"has 1e-06 GB left, and the files take .*e-05 GB"):
        write_files(generators(small())[:1], tmp_path, 10)
    assert list(tmp_path.iterdir()) == []


def mep_file(path, change=lambda number, mfps: mfps):
    sources = generators(small())
    packets = []
    for number in range(3):
        built = [(s.source_id, MepState.COMPLETE, s.generate(50 * number)) for s in sources]
        packets.append(Mep(number, 50 * number, 50, change(number, built)).encode())
    path.write_bytes(b"".join(packets))
    return packets


def test_check_reads_meps_and_counts_what_they_lack(tmp_path):
    path = tmp_path / "a.mep"
    mep_file(
        path,
        lambda number, mfps: [
            *mfps[:number],
            *[(m[0], MepState.MISSING, b"") for m in mfps[number:]],
        ],
    )
    checked = check_file(path)
    assert (checked.packets, checked.mfps, checked.missing) == (3, 3, 21)
    assert checked.is_generated
    assert checked.fault_count == 0


def test_check_sees_mfps_in_the_wrong_mep(tmp_path):
    path = tmp_path / "a.mep"
    later = generators(small())[5].generate(100)
    packets = mep_file(
        path, lambda number, mfps: [*mfps[:5], (5, MepState.COMPLETE, later), *mfps[6:]]
    )
    checked = check_file(path)
    assert checked.fault_count == 2
    [first, second] = checked.faults
    assert first.reason == "MFP with first event 100 instead of 0, as its MEP says"
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


def test_recorded_data_are_not_taken_for_generated_ones(tmp_path):
    path = tmp_path / "a.mfp"
    path.write_bytes(EXAMPLE * 2)
    checked = check_file(path)
    assert (checked.fault_count, checked.is_generated) == (0, False)
    assert check_file(path, generated=True).fault_count == 2
