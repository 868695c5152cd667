"""Files that a scenario refers to: what they mean, and what is refused."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daqloom.scenario import inputs
from daqloom.scenario.filling import pattern_of


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "input.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_a_histogram_is_read_with_comments_and_blank_lines(file):
    name = file("# bytes weight\n1000 3\n\n2e3\t1.5  # tail\n")
    sizes, weights = inputs.histogram(name)
    assert list(sizes) == [1000, 2000]
    assert list(weights) == [3.0, 1.5]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "900000, 10\n1000000, 80\n1100000, 10\n",
            [(900_000, 10), (1_000_000, 80), (1_100_000, 10)],
        ),
        ("size_kB,count\n900,10\n1000,80\n", [(900_000, 10), (1_000_000, 80)]),
        ("Size [MiB];Entries\n1;2\n", [(1 << 20, 2)]),
        ("9.0e5 10\n1.0e6 80\n", [(900_000, 10), (1_000_000, 80)]),
        ("800000 900000 10\n900000 1000000 80\n", [(850_000, 10), (950_000, 80)]),
        ("low kB,high kB,n\n0,1,3\n", [(500, 3)]),
        ("size (kBytes),count\n900,10\n", [(900_000, 10)]),
        ("Size in kilobytes,count\n900,10\n", [(900_000, 10)]),
        ("Event size (MiB)\tn\n2\t3\n", [(2 << 20, 3)]),
        ("low [kBytes],high [kBytes],count\n800,900,10\n", [(850_000, 10)]),
        ("low,high (kB),count\n800,900,10\n", [(850_000, 10)]),
        ("low high n\n800 900 10\n900 950 1\n", [(850, 10), (925, 1)]),
        ("# run 7\n# size_kB count\n900 10\n", [(900_000, 10)]),
        ("# of at most 100 MB\n900 10\n", [(900, 10)]),
    ],
)
def test_histograms_as_programs_write_them(file, content, expected):
    """Commas, a head line with a unit, and bins, which count with their middles."""
    sizes, weights = inputs.histogram(file(content))
    assert list(zip(sizes, weights, strict=True)) == expected


def test_a_trace_is_read_in_seconds(tmp_path):
    (tmp_path / "arrivals.txt").write_text("0\n1e-4\n1e-4\n0.5\n")
    assert list(inputs.trace(tmp_path / "arrivals.txt")) == [0, 1e-4, 1e-4, 0.5]


PERFTEST = """\
---------------------------------------------------------------------------------------
                    RDMA_Write Latency Test
 Dual-port       : OFF          Device         : mlx5_0
 local address: LID 0x05 QPN 0x0110 PSN 0x9f5a1c
---------------------------------------------------------------------------------------
#, usec
1, 0.91
2, 0.9
3, 1.25
4, 0.9
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 2       5          0.90           1.25         0.91     	       0.99
---------------------------------------------------------------------------------------
"""


@pytest.mark.parametrize(
    ("content", "latencies", "counts"),
    [
        (PERFTEST, [0.9, 0.91, 1.25], [2, 1, 1]),
        (PERFTEST.replace("\n", "\r\n"), [0.9, 0.91, 1.25], [2, 1, 1]),
        ("# usec\n1.5\n\n0.5  # quick\n1.5\n", [0.5, 1.5], [1, 2]),
        ("2 10\n1 5\n2 1\n", [1, 2], [5, 11]),
        ("0\n", [0], [1]),
    ],
)
def test_latencies_are_read_however_they_are_written(file, content, latencies, counts):
    found, seen = inputs.latencies(file(content))
    assert list(found) == pytest.approx([us * 1e-6 for us in latencies], rel=1e-12)
    assert list(seen) == counts


REFUSED: dict[Any, list[tuple[Any, str]]] = {
    inputs.histogram: [
        ("", "has no sizes"),
        ("# nothing\n", "has no sizes"),
        ("1000\n", "line 1 .* expected `bytes weight`"),
        ("1000 1\n2000 x\n", "line 2 .* expected `bytes weight`"),
        ("1000 1 1\n", "edges of a bin must ascend"),
        ("1000 1 1\n2000 1\n", "edges of a bin must ascend"),
        ("1000,1\n2000,1,1\n", "line 2 .* expected `bytes weight`"),
        ("size_TB,count\n1,1\n", "expected a title with a unit"),
        ("size (kbit),count\n8,1\n", "expected a title with a unit"),
        ("size (Mb),count\n8,1\n", "expected a title with a unit"),
        ("size (4 KiB pages),count\n8,1\n", "expected a title with a unit"),
        ("size_words,count\n8,1\n", "expected a title with a unit"),
        ("log10(size),count\n5,1\n", "expected a title with a unit"),
        ("size,kB\n900,10\n", "expected a title with a unit"),
        ("count,size_kB\n10,900\n", "expected a title with a unit"),
        ("low_kB,high_MB,count\n800,0.9,10\n", "expected a title with a unit"),
        ("bin,size,count\n1,900000,10\n", "expected a title with a unit"),
        ("# sizes in kB\n900 10\n", "line 1 .* expected a title with a unit"),
        ("# size_kb n\n900 10\n", "line 1 .* expected a title with a unit"),
        ("1 900000 10\n2 1000000 80\n", "line 2 .* overlaps that of line 1"),
        ("100 300 5\n200 400 5\n", "line 2 .* overlaps that of line 1"),
        ("200 400 5\n100 300 5\n", "line 1 .* overlaps that of line 2"),
        ("0 1\n", "whole bytes"),
        ("-5 1\n", "whole bytes"),
        ("1.5 1\n", "whole bytes"),
        ("nan 1\n", "expected `bytes weight`"),
        ("1000 inf\n", "expected `bytes weight`"),
        ("1000 -1\n", "weight must be 0 to 1e18"),
        ("1000 0\n", "only zero weights"),
        ("1000 1e308\n", "weight must be 0 to 1e18"),
        (b"\x00\x01\x02", "binary file"),
        (b"\xff\xfe1000 1", "binary file"),
    ],
    inputs.trace: [
        ("", "has no times"),
        ("0\n0\n", "only arrivals at 0 s"),
        ("1\n0.5\n", "line 2 .* must not decrease"),
        ("-1\n", "0 to 1e\\+06 s"),
        ("2e6\n", "0 to 1e\\+06 s"),
        ("soon\n", "expected a time in seconds"),
        ("nan\n", "expected a time in seconds"),
    ],
    inputs.latencies: [
        ("", "has no latencies"),
        ("# nothing\n", "has no latencies"),
        ("fast\n", "line 1 .* expected a latency in us"),
        ("1\n2 3\n", "line 2 .* expected a latency in us, or a latency and a count"),
        ("1 2 3\n", "line 1 .* expected a latency in us, or"),
        ("1, 0.9\n", "line 1 .* expected a latency in us"),
        ("-1\n", "line 1 .* must be 0 to 1e\\+06 us"),
        ("2e6\n", "must be 0 to 1e\\+06 us"),
        ("nan\n", "expected a latency in us"),
        ("1 -1\n", "its count, a whole number up to 1e18"),
        ("# Size   Latency (us)\n0   1.05\n1   1.07\n", "line 2 .* its count, a whole number"),
        ("1 0\n", "only zero counts"),
        ("#, cycles\n1, 2000\n", "line 1 .* measure without -C"),
        ("#, usec\n", "line 1 .* samples below this line"),
        ("#, usec\n1, 0.9\n3, 0.9\n", "line 3 .* expected sample 2"),
        ("#, usec\n1, quick\n", "line 2 .* expected a latency in us"),
        ("#, usec\n1, 1\n#, usec\n1, 1\n", "line 3 .* only one list"),
        (b"\x00\x01\x02", "binary file"),
        (
            " #bytes #iterations    t_min[usec]    t_max[usec]\n 2  20000  0.88  6.84\n",
            "a summary, without single latencies; ib_write_lat prints them with -U",
        ),
        (
            " #bytes     #iterations    BW peak[Gb/sec]\n 65536      1000    181.95\n",
            "bandwidths of another program, such as ib_write_bw; expected latencies; measure with "
            "ib_write_lat -U",
        ),
    ],
}


@pytest.mark.parametrize(
    ("read", "content", "reason"),
    [(read, *each) for read, cases in REFUSED.items() for each in cases],
)
def test_a_file_of_other_contents_is_refused_with_file_and_line(file, read, content, reason):
    with pytest.raises(ValueError, match=reason):
        read(file(content))


def test_files_and_their_latencies_are_bounded(file, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_LATENCIES", 3)
    with pytest.raises(ValueError, match="more than 3 latencies"):
        inputs.latencies(file("1\n" * 4))
    monkeypatch.setattr(inputs, "LARGEST_FILE_BYTES", 1 << 10)
    assert len(inputs.trace(file("1\n" * 512))) == 512
    with pytest.raises(ValueError, match="larger than 1 KiB"):
        inputs.trace(file("1\n" * 513))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"missing\.txt cannot be read: no such file"):
        inputs.trace(tmp_path / "missing.txt")
    with pytest.raises(ValueError, match="is a folder"):
        inputs.trace(tmp_path / ".")
    with pytest.raises(ValueError, match="null"):
        inputs.trace(tmp_path / "a\0b")
    os.mkfifo(tmp_path / "fifo")
    for waiting in ("fifo", "/dev/zero"):
        with pytest.raises(ValueError, match="not a regular file"):
            inputs.trace(tmp_path / waiting)
    with pytest.raises(ValueError, match="cannot be read: file name too long"):
        inputs.trace(tmp_path / ("x" * 4000))


@example(content=b";")
@given(content=st.one_of(st.binary(max_size=200), st.text("0123456789.e-+ \n#", max_size=200)))
def test_any_content_is_read_or_is_a_value_error(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    path = folder / f"any-{os.getpid()}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (inputs.histogram, inputs.trace):
        with contextlib.suppress(ValueError):
            read(path)
    with contextlib.suppress(ValueError):
        pattern_of(path.name, folder)
