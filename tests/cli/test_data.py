"""`daqloom data`: what it prints, what it writes, and what it says when something is wrong."""

import json

import pytest

from daqloom.data import Mep, MepState, Mfp
from support.command import commands

invoke, _, printed, _, refused = commands("data", silent=True)
DAMAGED = 1
SMALL = [
    "lhcb-10-percent",
    *("--set", "readout.units=2"),
    *("--set", "readout.streams=1"),
    *("--set", "event.packing=40"),
    *("--set", "event.groups=[]"),
]
"""Two sources of 40 fragments."""


@pytest.fixture
def files(tmp_path):
    printed("generate", *SMALL, "-o", tmp_path, "--mfps", 3)
    return sorted(tmp_path.iterdir())


def test_generate_writes_a_file_for_each_source_the_same_for_the_same_seed(tmp_path):
    said = printed("generate", *SMALL, "-o", tmp_path / "new", "--mfps", 3)
    paths = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in paths] == ["source-0.mfp", "source-1.mfp"]
    assert said.startswith(f"{tmp_path / 'new'}: 2 files of 3 MFPs each, 120 events, ")
    mfp = Mfp.decode(paths[1].read_bytes())
    assert (mfp.source_id, mfp.event_id, len(mfp)) == (1, 0, 40)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        printed("generate", *SMALL, "-o", tmp_path / name, "--seed", seed)
    a, b, c = ((tmp_path / name / "source-0.mfp").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_inspect_counts_all_packets_and_lists_the_requested_number(files):
    record = json.loads(printed("inspect", files[1], "--json"))
    assert record["kind"] == "mfp"
    assert record["damage"] is None
    assert [each["first_event"] for each in record["packets"]] == [0, 40, 80]
    assert {each["source"] for each in record["packets"]} == {1}
    first = Mfp.decode(files[1].read_bytes())
    assert record["packets"][0]["smallest"] == first.sizes.min()
    assert record["packets"][0]["largest"] == first.sizes.max()
    assert record["packets"][0]["mean"] == pytest.approx(first.sizes.mean())
    assert record["packets"][1]["offset"] == first.nbytes
    assert record["totals"]["packets"] == 3
    assert record["totals"]["events"] == record["totals"]["parts"] == 120
    assert record["totals"]["nbytes"] == files[1].stat().st_size
    said = printed("inspect", files[0], "--limit", 1)
    assert "and 2 more (--limit)" in said
    assert "3 MFPs, 120 events, 120 fragments; " in said


def test_inspect_names_where_a_file_is_damaged(files):
    size = files[0].stat().st_size
    files[0].write_bytes(files[0].read_bytes()[:-1])
    done = invoke("inspect", files[0], "--json")
    assert done.exit_code == DAMAGED
    record = json.loads(done.stdout)
    assert record["totals"]["packets"] == 2
    assert record["damage"] in done.stderr
    at = record["totals"]["nbytes"]
    assert f"{files[0]}, byte {at}: a packet of {size - at} bytes is cut off" in done.stderr


def test_inspect_and_check_go_on_behind_a_damaged_packet(files):
    data = bytearray(files[0].read_bytes())
    size = Mfp.decode(data).nbytes
    data[size] ^= 0xFF  # the magic of the second packet
    files[0].write_bytes(data)
    second = Mfp.decode(memoryview(data)[:size]).nbytes
    done = invoke("inspect", files[0], "--json")
    assert done.exit_code == DAMAGED
    record = json.loads(done.stdout)
    assert [each["first_event"] for each in record["packets"]] == [0, 80]
    [left] = record["skipped"]
    assert (left["offset"], left["nbytes"]) == (second, record["skipped_bytes"])
    assert record["totals"]["nbytes"] + record["skipped_bytes"] == len(data)
    checked = invoke("check", files[0])
    assert checked.exit_code == DAMAGED
    assert "damaged, 1 fault in 2 packets" in checked.stdout
    assert f"skipped {record['skipped_bytes']:,} bytes in 1 place" in checked.stdout


def test_inspect_lists_meps(tmp_path, files):
    path = tmp_path / "a.mep"
    mfps = [Mfp.decode(file.read_bytes()).encode() for file in files]
    complete = [(source, MepState.COMPLETE, mfp) for source, mfp in enumerate(mfps)]
    whole = Mep(5, 0, 40, complete).encode()
    lacking = Mep(6, 0, 40, [complete[0], (1, MepState.MISSING, b"")]).encode()
    path.write_bytes(whole + lacking)
    record = json.loads(printed("inspect", path, "--json"))
    assert record["kind"] == "mep"
    first, second = record["packets"]
    assert (first["number"], first["parts"], first["missing"]) == (5, 2, 0)
    assert (first["smallest"], first["largest"]) == (min(map(len, mfps)), max(map(len, mfps)))
    assert (second["number"], second["parts"], second["missing"]) == (6, 1, 1)
    assert "2 MEPs, 80 events, 3 MFPs, 1 missing; " in printed("inspect", path)


def test_check_finds_generated_files_whole_and_reports_every_cut_and_garbage(files):
    said = printed("check", *files)
    assert said.startswith("2 of 2 files intact: 6 packets, ")
    assert said.endswith("; generated fragments checked byte for byte in 2\n")
    data = files[0].read_bytes()
    for damaged in (data[:-1], data[:30], data[:3], b"\0" * 64, data + b"x"):
        files[0].write_bytes(damaged)
        done = invoke("check", files[0])
        assert done.exit_code == DAMAGED, done.output
        assert "0 of 1 files intact" in done.stdout


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9, 0.999])
def test_check_names_a_flipped_byte(files, place):
    data = bytearray(files[1].read_bytes())
    at = int(place * len(data))
    data[at] ^= 0x40
    files[1].write_bytes(data)
    done = invoke("check", *files, "--json")
    assert done.exit_code == DAMAGED
    assert done.stderr == ""
    whole, damaged = json.loads(done.stdout)["files"]
    assert whole["fault_count"] == 0
    assert damaged["file"] == str(files[1])
    [fault] = damaged["faults"]
    if fault["reason"] in ("fragment bytes", "padding"):
        assert (fault["offset"], fault["source"]) == (at, 1)
        assert 0 <= fault["event"] < 120
    said = invoke("check", *files).stdout
    assert f"{files[1]}: damaged, 1 fault" in said
    assert f"byte {fault['offset']}" in said
    assert "1 of 2 files intact" in said


def test_check_names_the_first_faults_and_counts_all(tmp_path):
    printed("generate", *SMALL, "-o", tmp_path, "--mfps", 30)
    path = tmp_path / "source-0.mfp"
    data = bytearray(path.read_bytes())
    at = 0
    while at < len(data):
        size = Mfp.decode(memoryview(data)[at:]).nbytes
        at += size
        data[at - 8] ^= 1  # of the last fragment
    path.write_bytes(data)
    done = invoke("check", path)
    assert done.exit_code == DAMAGED
    assert "damaged, 30 faults" in done.stdout
    assert done.stdout.count("  byte ") == 10
    assert "and 20 more" in done.stdout


def test_other_files_than_packets_are_bad_input(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for command in ("check", "inspect"):
        assert "no such file or directory" in refused(command, tmp_path / "none.mfp")
        assert "byte 0: neither an MFP nor a MEP" in refused(command, tmp_path / "notes.txt")
    assert "not a regular file" in refused("inspect", tmp_path)
    assert "has no files that end in .mfp or .mep" in refused("check", tmp_path)
    (tmp_path / "file").write_text("")
    done = invoke("generate", *SMALL, "-o", tmp_path / "file")
    assert done.exit_code == 1
    assert f"cannot write {tmp_path / 'file'}" in done.stderr


def test_a_scenario_that_has_no_mfps_is_bad_input(tmp_path):
    assert "pulls fragments" in refused("generate", "atlas-lab", "-o", tmp_path)
    sentence = refused("generate", *SMALL, "-o", tmp_path, "--set", "event.packing=70000")
    assert "event.packing = 70000" in sentence
    assert "at most 65535" in sentence
    assert list(tmp_path.iterdir()) == []
