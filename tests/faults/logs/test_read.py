"""Logs of link failures: the content of each format, and logs with damage."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daqloom.faults import FaultsError
from daqloom.faults.logs import read
from daqloom.faults.logs.change import LogContent, Outage, Port, PortCounters
from daqloom.faults.logs.clock import Calendar, iso_s
from daqloom.faults.logs.opensm_log import NAMELESS
from daqloom.faults.logs.read import LONGEST_LINE, read_logs
from daqloom.faults.statistics.dataset import errors_dataset
from daqloom.faults.statistics.errors import LinkErrors, errors_by_link
from daqloom.faults.statistics.failure import failures_of
from daqloom.faults.statistics.links import Links
from daqloom.faults.statistics.periods import read_periods
from daqloom.topology.formats.load import load_cabling
from support.repository import DATA

LOGS = DATA / "faults"
CASES = LOGS / "cases"


def content(folder: Path, text: str, name: str = "log", year: int = 2024) -> LogContent:
    path = folder / name
    path.write_text(text)
    return read_logs([path], year)


def at_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_opensm_names_the_links_that_were_taken_down_and_up() -> None:
    """Written by OpenSM 3.3.23 while ibsim took links down for some 3 s, two of them for 6 s."""
    fabric, _ = load_cabling(LOGS / "ibnetdiscover.txt")
    found = read_logs([LOGS / "opensm-debug.log"], 2026)
    failures = failures_of(found, Links(fabric)).failures
    down = [(f.link, round(f.end_s - f.begin_s)) for f in failures if f.end_s]
    assert down == [
        ("leaf1 port 3 - spine0 port 3", 3),
        ("leaf1 port 2 - host3", 3),
        ("leaf2 port 5 - spine1 port 5", 6),
        ("leaf2 port 6 - spine1 port 6", 6),
        ("leaf0 port 3 - spine0 port 1", 3),
    ]
    assert failures[0].begin_s == at_s("2026-11-25 18:54:38.230539")


def test_by_default_opensm_names_hosts_only_and_in_debug_logs_ports() -> None:
    found = read_logs([LOGS / "opensm.log"], 2026)
    changes = [(change.port.node, change.is_up) for change in found.changes]
    assert changes == [("host3", False), ("host3", True)]
    assert found.lines[NAMELESS] == 16
    found = read_logs([LOGS / "opensm-debug.log"], 2026)
    failures = failures_of(found, Links(cables=found.cables)).failures
    assert [f.link for f in failures if f.link.startswith("0x200001")] == [
        "0x200001 port 3 - 0x200003 port 3"
    ]
    assert all(f.end_s is not None for f in failures if "0x20" in f.link and "0x10" not in f.link)


def test_lines_without_a_year_go_on_into_the_next_one(tmp_path: Path) -> None:
    calendar = Calendar(2023)
    december = calendar.at_s("Dec", 31, "23:59:59")
    january = calendar.at_s("Jan", 1, "00:00:01.5")
    assert (december, january) == (at_s("2023-12-31 23:59:59"), at_s("2024-01-01 00:00:01.5"))
    assert calendar.at_s("Feb", 30, "00:00:00") is None
    assert calendar.at_s("Foo", 1, "00:00:00") is None
    rows = "1000,a,down\n1010,a,up\n400,a,down\n410,a,up\n"
    assert content(tmp_path, "time,port,state\n" + rows).lines["clock step"] == 1


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("time,port,duration,cause", "1000,leaf0 port 3,90,dirty"),
        ("begin;link;duration;cause", '1000;"leaf0 port 3";1.5 min;dirty'),
        ("Time\tNode\tPort\tDuration\tCause", "1970-01-01T00:16:40Z\tleaf0\t3\t0:01:30\tdirty"),
        ("begin,end,link,cause", "1000,1090,leaf0/3,dirty"),
    ],
)
def test_a_table_of_failures(tmp_path: Path, head: str, row: str) -> None:
    found = content(tmp_path, f"{head}\n{row}\n")
    assert found.outages == [Outage(1000, 1090, Port("leaf0", "3"), "dirty")]


def test_rows_that_are_malformed_too_long_or_have_no_end_are_counted(tmp_path: Path) -> None:
    assert content(tmp_path, "begin,end,link\n1000,,a\n").outages[0].end_s is None
    rows = "x,a,down\n1000,,down\n1000,a,sideways\n1000,a\n" + 4 * "1000,a,down\n"
    found = content(tmp_path, "time,port,state\n" + rows)
    assert (found.lines["malformed"], found.lines["used"]) == (4, 4)
    expected = "a time, a port, and a state, a duration or an end"
    assert found.first_malformed == f'line 2: "x,a,down"; expected {expected}'
    long = "x" * (3 * LONGEST_LINE)
    found = content(tmp_path, f"time,port,state\n1000,a,down\n{long}\n1030,a,up\n")
    assert found.lines["too long"] == 1
    assert len(found.changes) == 2


def counts(symbol: int, downed: int, recovery: int) -> dict[str, int]:
    names = "SymbolErrorCounter", "LinkDownedCounter", "LinkErrorRecoveryCounter"
    return dict(zip(names, (symbol, downed, recovery), strict=True))


def test_counters(tmp_path: Path) -> None:
    queried = (
        'Errors for 0x200011 "leaf17"\n'
        "   GUID 0x200011 port ALL: [SymbolErrorCounter == 12]\n"
        "   GUID 0x200011 port 21: [SymbolErrorCounter == 5] [LinkDownedCounter == 3] "
        "[LinkErrorRecoveryCounter == 1] [VL15Dropped == 7]\n"
    )
    found = content(tmp_path, queried)
    expected = counts(5, 3, 1) | {"VL15Dropped": 7}
    assert found.counters == [PortCounters(Port("0x200011", "21"), expected)]
    assert found.names == {"0x200011": "leaf17"}
    printed = (
        "# Port counters: Lid 43 port 21 (CapMask: 0x5A00)\nPortSelect:......................21\n"
        "CounterSelect:...................0x0000\n"
        "SymbolErrorCounter:..............7\nLinkErrorRecoveryCounter:........0\n"
        "LinkDownedCounter:...............2\nPortXmitData:....................178791657\n"
    )
    [port] = content(tmp_path, printed).counters
    assert port.port == Port("lid 43", "21")
    assert port.counts == counts(7, 2, 0)


def test_errors_are_those_of_both_ends_known_by_name_or_lid() -> None:
    """A link that went down was down at both ends; each end counts what it receives."""
    ends = {Port("leaf0", "21"): Port("spine0", "1"), Port("spine0", "1"): Port("leaf0", "21")}
    counters = [
        PortCounters(Port(node, number), counts(*values))
        for node, number, *values in (
            ("leaf0", "1", 40, 0, 0),
            ("leaf0", "21", 99, 9, 9),
            ("leaf0", "21", 30, 3, 1),
            ("spine0", "1", 12, 3, 2),
            ("leaf0", "2", 0, 0, 0),
        )
    ]
    errors = errors_by_link(counters, Links(cables=ends))
    assert errors == [
        LinkErrors("leaf0 port 21 - spine0 port 1", counts(42, 3, 2)),
        LinkErrors("leaf0 port 1", {"SymbolErrorCounter": 40}),
    ]
    table = errors_dataset(errors)
    assert table["symbol_errors"].sel(link="leaf0 port 1").item() == 40
    assert table["LinkDownedCounter"].values.tolist() == [3, 0]
    assert table.sizes["link"] == 2
    # LID 3 is the only switch of the network, as `perfquery` names it.
    folder = CASES / "11-ibqueryerrors"
    fabric, _ = load_cabling(folder / "net")
    links = Links(fabric)
    found = read_logs([folder / "perf.txt"])
    expected = LinkErrors("MF0;sw1:SX6036/U1 port 6 - hostC mlx4_0", counts(12, 1, 3))
    assert errors_by_link(found.counters, links) == [expected]


def test_several_files_packed_or_not_are_one_log(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,port,state\n1000,a,down\n")
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write("time,port,state\n1030,a,up\n")
    found = read_logs([tmp_path / "a.csv", tmp_path / "b.csv.gz"])
    [failure] = failures_of(found, Links()).failures
    assert (failure.begin_s, failure.end_s) == (1000, 1030)


def test_files_that_are_no_logs_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FaultsError, match="is no supported log; the first line is"):
        content(tmp_path, "Lorem ipsum\n")
    with pytest.raises(FaultsError, match=r"the table with the columns time, port, colour has no"):
        content(tmp_path, "time,port,colour\n")
    with pytest.raises(FaultsError, match=r"cannot read .*: no such file"):
        read_logs([tmp_path / "missing"])
    packed = gzip.compress(b"time,port,state\n" * 99)
    for damaged in (packed[:40], packed[:20] + b"?" + packed[21:], b"time,port,state\n"):
        (tmp_path / "broken.gz").write_bytes(damaged)
        with pytest.raises(FaultsError, match=r"cannot be unpacked: .*damaged or no \.gz"):
            read_logs([tmp_path / "broken.gz"])


@pytest.mark.parametrize("name", ["/dev/zero", "fifo", "folder"])
def test_only_regular_files_are_opened(tmp_path: Path, name: str) -> None:
    """A FIFO without a writer would block, a device never ends."""
    path = tmp_path / name
    if name == "fifo":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    with pytest.raises(FaultsError, match="not a regular file"):
        read_logs([path])
    if name != "folder":
        with pytest.raises(FaultsError, match="not a regular file"):
            read_periods(path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(tmp_path / "letters.gz", "wb") as file:
        for _ in range(24):
            file.write(b"x" * (1 << 20))
    with pytest.raises(FaultsError, match="has a line of more than 16 MiB"):
        read_logs([tmp_path / "letters.gz"])
    monkeypatch.setattr(read, "LARGE", 1 << 20)
    with gzip.open(tmp_path / "lines.gz", "wb") as file:
        file.write(b"time,port,state\n" + b"\n" * (2 << 20))
    with pytest.raises(FaultsError, match="unpacks to more than 400 times its size"):
        read_logs([tmp_path / "lines.gz"])


SAMPLES = [
    (LOGS / "opensm-debug.log").read_bytes()[:4000],
    b"Mar  4 08:00:00 leaf1 swss: Port Ethernet48 oper state set from up to down\n" * 20,
    b"time,port,state,cause\n1000,a,down,x\n1030,a,up,x\n" * 20,
    b'Errors for 0x1 "a"\n   GUID 0x1 port 1: [LinkDownedCounter == 3]\n' * 20,
]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_logs_are_never_fatal(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes are replaced, cut out and repeated."""
    text = bytearray(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(0, 20))):
        place = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 50))
        text[place : place + cut] = data.draw(st.binary(max_size=50))
    path = tmp_path / "damaged"
    path.write_bytes(bytes(text))
    try:
        found = read_logs([path], 2024)
    except FaultsError:
        return
    failures = failures_of(found, Links(cables=found.cables))
    assert sum(failures.unpaired.values()) <= len(found.changes) + len(found.outages)
    assert all(f.end_s is None or f.end_s >= f.begin_s for f in failures.failures)


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = iso_s(text)
    assert found is None or isinstance(found, float)
