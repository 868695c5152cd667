"""Logs as JSON lines and as entries of a journal, whose socket the test has."""

import json
import logging
import os
import socket

import pytest

from daqloom.base import log
from daqloom.base.log import LOG, identify, report, start_log


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setenv(log.VARIABLE, "text")
    monkeypatch.setattr(log, "_context", {})
    yield
    start_log("text")


def entries() -> None:
    report("the run is in /runs/1")
    identify(run="r1")
    LOG.warning("%s", "unit 3 is lost: 5 % of\nits time", extra={"event": "unit", "unit": 3})
    identify(unit=7)
    report("no memory", logging.ERROR)


def test_as_text_sentences_are_printed_and_entries_are_not(capsys) -> None:
    entries()
    assert capsys.readouterr().err == "daqloom: the run is in /runs/1\ndaqloom: no memory\n"


def test_json_lines_always_have_the_same_keys(capsys) -> None:
    start_log("json")
    entries()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [list(line) for line in lines] == [
        ["time", "level", "run", "unit", "event", "message"]
    ] * 3
    assert [tuple(line.values())[1:] for line in lines] == [
        ("info", None, None, None, "the run is in /runs/1"),
        ("warning", "r1", 3, "unit", "unit 3 is lost: 5 % of\nits time"),
        ("error", "r1", 7, None, "no memory"),
    ]
    assert all(line["time"].endswith("+00:00") and len(line["time"]) == 29 for line in lines)
    assert os.environ[log.VARIABLE] == "json"  # for child processes


def fields(entry: bytes) -> dict[str, str]:
    """The fields of an entry, as the journal reads them."""
    found = {}
    while entry:
        line, _, rest = entry.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(rest[:8], "little")
            value, rest = rest[8 : 8 + size], rest[8 + size + 1 :]
        found[name.decode()] = value.decode()
        entry = rest
    return found


@pytest.mark.process
def test_the_journal_gets_fields(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(log, "JOURNAL", str(tmp_path / "socket"))
    with pytest.raises(FileNotFoundError):
        start_log("journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(log.JOURNAL)
        journal.settimeout(60)
        start_log("journal")
        entries()
        report("x" * 10 * log.LONGEST)
        found = [fields(journal.recv(1 << 20)) for _ in range(4)]
    common = {"SYSLOG_IDENTIFIER": "daqloom"}
    assert found[:3] == [
        common | {"PRIORITY": "6", "MESSAGE": "the run is in /runs/1"},
        common
        | {"PRIORITY": "4", "MESSAGE": "unit 3 is lost: 5 % of\nits time"}
        | {"DAQLOOM_RUN": "r1", "DAQLOOM_UNIT": "3", "DAQLOOM_EVENT": "unit"},
        common
        | {"PRIORITY": "3", "MESSAGE": "no memory", "DAQLOOM_RUN": "r1", "DAQLOOM_UNIT": "7"},
    ]
    assert len(found[3]["MESSAGE"]) == log.LONGEST
    report("nobody reads it")  # the journal restarts


@pytest.mark.process
def test_a_full_journal_delays_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(log, "JOURNAL", str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(log.JOURNAL)
        start_log("journal")
        for number in range(10_000):
            report(f"entry {number}")
        journal.setblocking(False)
        assert fields(journal.recv(1 << 20))["MESSAGE"] == "entry 0"
