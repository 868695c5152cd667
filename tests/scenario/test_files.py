"""Named files: a byte order mark at the beginning of a text changes nothing of what is read."""

import gzip
import os
from pathlib import Path

import pytest

from daqloom.control.unit_program import read_token
from daqloom.device.credentials import credentials_of
from daqloom.faults.logs.read import read_logs
from daqloom.faults.statistics.periods import read_periods
from daqloom.scenario import inputs
from daqloom.scenario.file.load import load
from daqloom.scenario.filling import pattern_of
from daqloom.topology.dump_lines import lines_of
from daqloom.topology.formats.load import load_cabling
from support.repository import DATA

MARK = b"\xef\xbb\xbf"
REFUSED = ("dmesg.log", "old2009.txt")
FILES = sorted(path for path in (DATA / "faults" / "cases").glob("*/*") if path.is_file())
LOGS = [path for path in FILES if path.name not in REFUSED]
CABLING = sorted(
    {
        path.parent if path.name.endswith((".lldp.txt", ".lldp.json")) else path
        for path in (DATA / "cabling").rglob("*")
        if path.suffix in (".txt", ".lst", ".json", ".toml")
        and path.name not in ("slurm.txt", "hostfile.txt", *REFUSED)
    }
)
READERS = {
    "histogram": (lambda name, folder: inputs.histogram(folder / name), b"900000 10\n1000000 80\n"),
    "latencies": (
        lambda name, folder: inputs.latencies(folder / name),
        b"#, usec\n1, 1.42\n2, 1.47\n",
    ),
    "trace": (lambda name, folder: inputs.trace(folder / name), b"0.5\n1.5\n"),
    "filling": (pattern_of, b'{"beam1": [1, 0], "beam2": [1, 0]}'),
    "scenario": (lambda name, folder: load(folder / name).readout.units, b"[readout]\nunits = 3\n"),
    "periods": (
        lambda name, folder: read_periods(folder / name),
        b"2024-03-04T10:00/2024-03-04T11:00\n",
    ),
    "order": (lambda name, folder: list(lines_of(folder / name)), b"node001\nnode002\n"),
    "credentials": (
        lambda name, folder: credentials_of(folder / name, {}),
        b'user = "daq"\npassword = "x"\n',
    ),
    "token": (lambda name, folder: read_token({}, folder / name), b"0f" * 16 + b"\n"),
}


def both(folder: Path, name: str, content: bytes) -> tuple[Path, Path]:
    """The folders of the same file without a mark and with it."""
    found = folder / "plain", folder / "marked"
    for place, mark in zip(found, (b"", MARK), strict=True):
        place.mkdir(exist_ok=True)
        path = place / name
        packed = path.suffix == ".gz"
        path.write_bytes(gzip.compress(mark + content) if packed else mark + content)
        path.chmod(0o600)
        os.utime(path, (1.7e9, 1.7e9))  # the year of logs without years
    return found


@pytest.mark.parametrize("reader", READERS)
def test_inputs_with_a_mark(tmp_path: Path, reader: str) -> None:
    read, content = READERS[reader]
    plain, marked = (read("input.toml", each) for each in both(tmp_path, "input.toml", content))
    assert marked == plain


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_logs_with_a_mark(tmp_path: Path, path: Path, ending: str) -> None:
    name = path.name + ending
    plain, marked = (read_logs([each / name]) for each in both(tmp_path, name, path.read_bytes()))
    assert marked == plain


@pytest.mark.parametrize("path", CABLING, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_cabling_with_a_mark(tmp_path: Path, path: Path) -> None:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        plain, marked = both(tmp_path, file.name, file.read_bytes())
    name = "" if path.is_dir() else path.name
    assert load_cabling(marked / name)[0].cables == load_cabling(plain / name)[0].cables


def test_a_mark_alone_is_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "marked").write_bytes(MARK)
    with pytest.raises(ValueError, match="has no sizes"):
        inputs.histogram(tmp_path / "marked")
