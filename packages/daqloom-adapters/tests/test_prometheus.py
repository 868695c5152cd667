"""Tests of counters from a page of Prometheus metrics."""

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.device.adapter import AdapterError, PortCount
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom_adapters import deadline
from daqloom_adapters.prometheus import Prometheus
from support.adapter_conformance import check_counts, check_refuses_entry, enter
from support.fake_http import serving, silent, speaking, trickling

pytestmark = pytest.mark.process

PORTS = ("eth0", "eth1")
SNMP_EXPORTER = {
    "label": "ifName",
    "sent": "ifHCOutUcastPkts",
    "sent_bytes": "ifHCOutOctets",
    "dropped": "ifOutDiscards",
}
PAGE = """\
# HELP node_network_transmit_packets_total Network device statistic transmit_packets.
# TYPE node_network_transmit_packets_total counter
node_network_transmit_packets_total{device="eth0"} 1.234567e+06
node_network_transmit_packets_total{device="eth1"} 7
node_network_transmit_packets_total{device="lo"} 2.5
# TYPE node_network_transmit_bytes_total counter
node_network_transmit_bytes_total{device="eth0"} 9.007199254740991e+15
node_network_transmit_bytes_total{device="eth1",} 420 1700000000000
# TYPE node_network_transmit_drop_total counter
node_network_transmit_drop_total{device="eth0"} 0
  node_network_transmit_drop_total{device="eth1"}\t18446744073709551615
node_network_up{device="eth0"} 1
process_start_time_seconds 1.7e+09
broken line that nobody asked for
"""


def adapter(url, ports=PORTS, credentials=None, **keys):
    options = build(Prometheus.Options, {"address": url, **keys}, "here")
    return Prometheus(options, ports, credentials)


def page_of(text):
    return serving(lambda *_: text)


def test_counters_are_those_of_the_page_anew_with_each_reading():
    with page_of(PAGE) as url:
        check_counts(adapter(f"{url}/metrics"), PORTS)
    with page_of(PAGE) as url, adapter(url) as found:
        assert found.read() == {
            "eth0": PortCount(1_234_567, 9_007_199_254_740_991, 0),
            "eth1": PortCount(7, 420, (1 << 64) - 1),
        }
    pages = iter([PAGE, PAGE, PAGE.replace("} 7\n", "} 8\n")])
    with serving(lambda *_: next(pages)) as url, adapter(url) as found:
        assert [found.read()["eth1"].sent for _ in range(2)] == [7, 8]


def test_snmp_exporter_with_its_target_and_several_switches():
    asked = []

    def page(path, query, _headers):
        asked.append((path, query))
        return "".join(
            f"# TYPE {name} counter\n"
            + "".join(
                f'{name}{{ifName="Ethernet1\\\\1",queue="{queue}",switch="{switch}"}} {value}\n'
                for queue, switch, value in ((0, "a", 1), (1, "a", 10), (0, "b", 100))
            )
            for name in ("ifHCOutUcastPkts", "ifHCOutOctets", "ifOutDiscards")
        )

    port = "Ethernet1\\1"
    with serving(page) as url:
        whole = f"{url}/snmp?target=tor1&module=if_mib"
        with adapter(whole, [port], **SNMP_EXPORTER, match={"switch": "a"}) as found:
            assert found.read() == {port: PortCount(11, 11, 11)}
        with adapter(whole, [port], **SNMP_EXPORTER) as found:
            assert found.read() == {port: PortCount(111, 111, 111)}
    assert set(map(str, asked)) == {str(("/snmp", {"target": "tor1", "module": "if_mib"}))}


def test_a_peak_counts_where_it_has_risen():
    peaks = iter([(50, 70), (50, 70), (60, 70), (40, 90)])

    def page(*_):
        first, second = next(peaks)
        return PAGE + f'most{{device="eth0",queue="1"}} {first}\nmost{{device="eth1"}} {second}\n'

    with serving(page) as url, adapter(url, peak="most") as found:
        found.begin()
        assert [count.peak_bytes for count in found.read().values()] == [60, None]
        assert [count.peak_bytes for count in found.read().values()] == [None, 90]


def test_a_token_is_sent_as_bearer():
    seen = []
    with serving(lambda *asked: seen.append(asked[2]["Authorization"]) or PAGE) as url:
        enter(adapter(url, credentials=Credentials(token="abc"), insecure=True))
    assert seen == ["Bearer abc"]


def test_unknown_port_and_metric():
    with page_of(PAGE) as url:
        text = check_refuses_entry(adapter(url, ["eth7"]))
        assert text.endswith('there is no port eth7; did you mean "eth1"?')
        text = check_refuses_entry(adapter(url, ["Ethernet"]))
        assert text.endswith("there is no port Ethernet; known are eth0, eth1, lo")
        text = check_refuses_entry(adapter(url, label="port"))
        assert 'no value has the label "port"' in text
    with page_of(PAGE) as url:
        text = check_refuses_entry(adapter(url, ["lo"]))
    assert text.endswith(
        "node_network_transmit_packets_total of lo is 2.5; expected a count from 0 on"
    )
    with page_of(PAGE.replace("} 2.5\n", "} 2\n")) as url:
        text = check_refuses_entry(adapter(url, ["lo"]))
    assert text.endswith("port lo has no node_network_transmit_bytes_total")
    with page_of(PAGE) as url:
        text = check_refuses_entry(adapter(url, sent="node_network_up_total"))
    assert text.endswith('did you mean "node_network_up"?')


@pytest.mark.parametrize(
    "value",
    ["NaN", "+Inf", "-1", "0.5", "1e300", "9" * 400, "1_0", "", "x", "18446744073709551616"],
)
def test_values_that_are_no_counts(value):
    with page_of(PAGE.replace("} 7\n", f"}} {value}\n")) as url:
        check_refuses_entry(adapter(url))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>not found</html>\n",
        PAGE[:-1],
        PAGE + 'node_network_transmit_drop_total{device="eth0"} 0\n',
        PAGE + "node_network_transmit_drop_total{" + '"\\' * 100_000 + "\n",
        PAGE + "node_network_transmit_drop_total{,,} 1\n",
        PAGE + 'node_network_transmit_drop_total{device="\x1b[0m\n',
        PAGE + "\udcff\n",
    ],
    ids=["empty", "html", "cut", "twice", "long", "labels", "quote", "binary"],
)
def test_garbage(text):
    with page_of(text) as url:
        assert check_refuses_entry(adapter(url)).isprintable()


@given(st.text(st.sampled_from('{}",=\\ \t#1ade_\n'), max_size=40))
def test_any_line_is_read_or_refused(text):
    found = adapter("http://tor1/")
    with contextlib.suppress(AdapterError):
        found._parse([f"node_network_transmit_drop_total{text}"])


def test_the_timeout_is_for_reading_the_page_too(monkeypatch):
    # The clock advances by 1 s per call: the page arrives in time, but not all lines are parsed.
    clock = itertools.count()
    monkeypatch.setattr(deadline.time, "monotonic", lambda: float(next(clock)))
    samples = "".join(f'node_network_transmit_drop_total{{device="e{n}"}} 0\n' for n in range(9000))
    with page_of(PAGE.replace("broken", "# broken") + samples) as url:
        assert "30 s" in check_refuses_entry(adapter(url, timeout="30 s"))


@pytest.mark.parametrize("talk", [silent, trickling])
def test_server_that_does_not_come_to_an_end(talk):
    with speaking(talk) as url:
        text = check_refuses_entry(adapter(url, timeout="0.3 s"))
    assert "0.3 s" in text
