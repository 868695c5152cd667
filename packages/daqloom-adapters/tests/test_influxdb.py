"""Tests of counters from InfluxDB, where a collector stores them."""

import json
import time

import pytest

from daqloom.device.adapter import PortCount
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom_adapters import influxdb
from daqloom_adapters.influxdb import InfluxDb
from support.adapter_conformance import check_counts, check_refuses, check_refuses_entry, enter
from support.fake_http import serving, silent, speaking, trickling

pytestmark = pytest.mark.process

PORTS = ("Ethernet1", "Ethernet2")
FIELDS = ("ifHCOutUcastPkts", "ifHCOutOctets", "ifOutDiscards")
LARGEST = (1 << 64) - 1
SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(influxdb, "POLL_S", 0.01)


def adapter(url, ports=PORTS, credentials=None, **keys):
    return InfluxDb(build(InfluxDb.Options, {"address": url, **keys}, "here"), ports, credentials)


def listed(url, ports=PORTS, **keys):
    return adapter(url, ports, format="line-protocol", **keys)


def row(port, *values, age_s=0.0, **tags):
    """Return the query results of a port, one per field, as collected `age_s` ago."""
    at = time.time_ns() - round(age_s * SECOND)
    return [
        {
            "name": "interface",
            "tags": {"ifName": port, **tags},
            "columns": ["time", field],
            "values": [[at, value]],
        }
        for field, value in zip(FIELDS, values, strict=True)
    ]


def answer(*rows):
    of_fields = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    return json.dumps(
        {
            "results": [
                {"statement_id": number, "series": list(series)} if series else {}
                for number, series in enumerate(of_fields)
            ]
        }
    )


def both():
    return answer(row("Ethernet1", 12, 3456, 0), row("Ethernet2", 2.0, LARGEST, 1e6))


def lines(*rows, age_s=0.0):
    at = time.time_ns() - round(age_s * SECOND)
    return "".join(f"{text} {at}\n" for text in rows)


LINES = (
    "interface,agent_host=tor1,ifName=Ethernet1 "
    'ifHCOutUcastPkts=12i,ifHCOutOctets=3456u,ifAlias="a, \\"b=c"',
    "interface,agent_host=tor1,ifName=Ethernet1 ifOutDiscards=0i",
    "interface,ifName=Ethernet2 ifHCOutUcastPkts=2,ifHCOutOctets=18446744073709551615u,"
    "ifOutDiscards=1e6,up=t",
    "cpu,cpu=cpu0 usage=0.5",
)
COUNTS = {"Ethernet1": PortCount(12, 3456, 0), "Ethernet2": PortCount(2, LARGEST, 1_000_000)}


def test_counters_are_those_stored_of_which_the_last_line_counts():
    with serving(lambda *_: both()) as url, adapter(url) as found:
        assert found.read() == COUNTS
    with serving(lambda *_: lines(*LINES)) as url, listed(url) as found:
        assert found.read() == COUNTS
    with serving(lambda *_: both()) as url:
        check_counts(adapter(url), PORTS)
    with serving(lambda *_: lines(*LINES)) as url:
        check_counts(listed(url), PORTS)
    page = "".join(
        f"interface,ifName=Ethernet1 ifHCOutUcastPkts={value}i,ifHCOutOctets=0i,ifOutDiscards=0i "
        f"{time.time_ns() + 100 * SECOND - age_s * SECOND}\n"
        for value, age_s in ((1, 50), (3, 0), (2, 10))
    )
    with serving(lambda *_: page) as url, listed(url, ["Ethernet1"]) as found:
        assert found.read()["Ethernet1"].sent == 3


def test_the_query():
    asked = []

    def page(path, query, headers):
        asked.append((path, query, headers["Authorization"]))
        return both()

    keys = {"database": "daq", "measurement": 'my "table"', "fresh": "10 s"}
    with serving(page) as url:
        enter(
            adapter(f"{url}/influx/", credentials=Credentials(token="abc"), insecure=True, **keys)
        )
    [(path, query, authorization)] = asked
    assert (path, authorization) == ("/influx/query", "Token abc")
    assert query == {
        "db": "daq",
        "epoch": "ns",
        "q": "; ".join(
            f'SELECT "{field}" FROM "my \\"table\\"" WHERE time > now() - 10000ms '
            "GROUP BY * ORDER BY time DESC LIMIT 1"
            for field in ("ifHCOutOctets", "ifHCOutUcastPkts", "ifOutDiscards")
        ),
    }


def test_series_of_a_port_are_added_up_where_they_match():
    asked = []

    def page(_path, query, _headers):
        asked.append(query["q"])
        return answer(
            row("Ethernet1", 1, 2, 3, agent_host="it's tor1", queue="0"),
            row("Ethernet1", 10, 20, 30, agent_host="it's tor1", queue="1"),
            row("Ethernet1", 100, 200, 300, agent_host="tor2"),
        )

    match = {"agent_host": "it's tor1"}
    with serving(page) as url, adapter(url, ["Ethernet1"], match=match) as found:
        assert found.read() == {"Ethernet1": PortCount(11, 22, 33)}
    assert "WHERE time > now() - 30000ms AND \"agent_host\" = 'it\\'s tor1' GROUP" in asked[0]


def test_a_reading_waits_for_a_later_collection():
    ages = iter([15.0, 15.0, 15.0, 0.0])
    with (
        serving(lambda *_: answer(row("Ethernet1", 1, 2, 3, age_s=next(ages, 0.0)))) as url,
        adapter(url, ["Ethernet1"]) as found,
    ):
        assert found.read() == {"Ethernet1": PortCount(1, 2, 3)}
        assert next(ages, None) is None


def test_values_that_are_too_old_or_not_there():
    with serving(lambda *_: answer(row("Ethernet1", 1, 2, 3, age_s=31))) as url:
        text = check_refuses_entry(adapter(url, ["Ethernet1"]))
        assert "Ethernet1 was collected" in text
        enter(adapter(url, ["Ethernet1"], fresh="1000 s"))
    with serving(lambda *_: lines(*LINES, age_s=31)) as url:
        assert "none came since" in check_refuses_entry(listed(url))
    stored = answer(row("Ethernet1", 1, 2, 3))
    with serving(lambda *_: stored) as url:
        found = adapter(url, ["Ethernet1"], fresh="0.3 s")
        assert "none came since" in check_refuses(found.read)
    with serving(lambda *_: answer()) as url:
        text = check_refuses_entry(adapter(url))
    assert 'nothing of the last 30 s has the tag "ifName"' in text


def test_unknown_port_and_field():
    with serving(lambda *_: both()) as url:
        text = check_refuses_entry(adapter(url, ["Ethernet9"]))
        assert "there is no port Ethernet9; did you mean" in text
        text = check_refuses_entry(adapter(url, dropped="drops"))
        assert text.endswith("port Ethernet1 has no drops")


@pytest.mark.parametrize("value", [-1, 0.5, 1 << 64, 10**400, None, "7", True, [1]])
def test_values_that_are_no_counts(value):
    with serving(lambda *_: answer(row("Ethernet1", value, 2, 3))) as url:
        check_refuses_entry(adapter(url, ["Ethernet1"]))


def test_query_that_is_refused():
    message = "database not found: my-secret \x1b[0m"
    known = Credentials(token="my-secret")
    for refusal in ({"error": message}, {"results": [{"statement_id": 0, "error": message}]}):
        page = json.dumps(refusal)
        with serving(lambda *_, page=page: page) as url:
            text = check_refuses_entry(adapter(url, credentials=known, insecure=True), "my-secret")
            assert "database not found: ***" in text
            assert text.isprintable()


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<html>\x1b[0m",
        "[]",
        "[" * 100_000,
        '{"results": {}}',
        '{"results": [{"series": [{"tags": {"ifName": 1}}]}]}',
        '{"results": [{"series": [{"columns": ["time"], "values": [[1, 2]]}]}]}',
        '{"results": [{"series": [{"columns": ["time"], "values": [["now"]]}]}]}',
        '{"results": [{"series": [{"columns": ["a"], "values": [[1]]}]}]}',
        '{"results": [{"series": [{"columns": ["time"], "values": [[1%s]]}]}]}' % ("0" * 400),
        '{"results": [{"series": [{"columns": ["time"], "values": []}]}]}',
        '{"results": [{"partial": true}]}',
        "{}",
    ],
)
def test_garbage(page):
    with serving(lambda *_: page) as url:
        assert check_refuses_entry(adapter(url)).isprintable()


@pytest.mark.parametrize(
    "page",
    [
        "",
        "interface,ifName=Ethernet1 ifOutDiscards=1i\n",
        "interface,ifName=Ethernet1 ifOutDiscards=1i 12",
        "interface,ifName= ifOutDiscards=1i 12\n",
        'interface,ifName=Ethernet1 a="b 12\n',
        "interface\n",
        "interface,ifName=Ethernet1\x1b[0m ifOutDiscards= 12\n",
        "interface" + "," * 100_000 + "\n",
        "interface,a=" + "\\" * 100_000 + "\n",
        "interface" + ",a=b" * 100_000 + "\n",
        'interface a="' + '\\"' * 100_000 + "\n",
    ],
)
def test_garbage_lines(page):
    with serving(lambda *_: page) as url:
        assert check_refuses_entry(listed(url)).isprintable()


@pytest.mark.parametrize("talk", [silent, trickling])
@pytest.mark.parametrize("kind", ["query", "line-protocol"])
def test_server_that_does_not_come_to_an_end(talk, kind):
    with speaking(talk) as url:
        text = check_refuses_entry(adapter(url, format=kind, timeout="0.3 s"))
    assert "0.3 s" in text
