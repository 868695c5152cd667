"""Equal senders at a full tail-drop port: hosts' jitter and the spread of retransmission timeouts
share its losses."""

import math
from collections.abc import Sequence

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods

STAR: dict[str, object] = {
    "building.protocol": "none",
    "network.technology": "ethernet",
    "network.shape": "fat-tree",
    "network.leaves": 1,
    "network.spines": 1,
    "network.spine_links": 1,
    "network.routing": "minimal",
    "network.links.rate": "100 Gb/s",
    "network.links.delay": "500 ns",
    "transport.kind": "rdma",
    "network.switch.leaf.model": "drop-tail",
    "network.switch.leaf.queue_packets": 100,
    "run.warmup": "0 s",
}
UDP: dict[str, object] = {"transport": "udp", "size": "1 KiB", "outstanding": 512}
LOCKSTEP = {"hosts.jitter": 0.0}
JITTER = {"hosts.jitter": "4.0"}
INFINITE = {"network.switch.leaf.model": "infinite"}


def star(
    senders: int, flow: dict[str, object], duration: str, starts: Sequence[int] = (), **more: object
) -> Scenario:
    """Equal flows from each of so many hosts to one more, at times in nanoseconds; further keys
    with two underscores for a dot."""
    hosts = {"hosts.count": senders + 1, "network.hosts_per_leaf": senders + 1}
    keys = STAR | hosts | {"network.switch.radix": senders + 2, "run.duration": duration}
    for n in range(senders):
        start = f"{starts[n]} ns" if starts else "0 s"
        whole = {"source": n, "destination": senders, "start": start, **flow}
        keys |= {f"flows.s{n}.{key}": value for key, value in whole.items()}
    keys |= {key.replace("__", "."): value for key, value in more.items()}
    return override(Scenario(), keys)


def of_flows(result: Result, name: str) -> list[float]:
    values = result.metrics[name]
    return [values[flow] for flow in sorted(values)]


def jain(shares: Sequence[float]) -> float:
    """The fairness index of Jain: 1 if all are equal, 1/n if one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def worst_deviation(scenario: Scenario, seeds: int) -> float:
    """Largest deviation of a sender's share of losses from that of all, in its standard errors,
    from the scatter of seeds."""
    runs = []
    for seed in range(1, seeds + 1):
        result = methods.simulate(scenario, seed=seed)
        got = of_flows(result, "flow_messages")
        lost = of_flows(result, "flow_messages_lost")
        assert sum(lost) > 0
        total = sum(lost) / (sum(lost) + sum(got))
        runs.append([mine / (mine + other) - total for mine, other in zip(lost, got, strict=True)])
    variance = sum(each**2 for run in runs for each in run) / (seeds * len(runs[0]))
    means = [sum(of_host) / seeds for of_host in zip(*runs, strict=True)]
    return max(map(abs, means)) / math.sqrt(variance / seeds)


@pytest.mark.parametrize("load_", [0.5, 0.0])
@pytest.mark.parametrize("senders", [3, 5, 8])
def test_equal_senders_over_udp_lose_the_same_share(senders: int, load_: float) -> None:
    """Loads of 1.5 and more at a port, and wires that never rest."""
    flow = UDP | ({"load": load_} if load_ else {})
    assert worst_deviation(star(senders, flow, "1 ms"), 5) < 3


def test_eight_senders_at_low_load_and_with_any_starts_lose_the_same_share() -> None:
    assert worst_deviation(star(8, UDP | {"load": 0.2}, "2 ms"), 5) < 3
    starts = (0, 37, 411, 902, 77, 650, 333, 120)
    assert worst_deviation(star(8, UDP, "2 ms", starts), 5) < 3
    assert worst_deviation(star(3, UDP | {"load": 0.5}, "2 ms", starts), 5) < 3


def test_without_jitter_one_of_them_loses_nothing_whatever_the_seed() -> None:
    scenario = star(8, UDP, "1 ms", hosts__jitter=0.0)
    of_seeds = [methods.simulate(scenario, seed=seed) for seed in (1, 2)]
    lost = of_flows(of_seeds[0], "flow_messages_lost")
    assert min(lost) == 0
    assert sorted(lost)[1] > 5000
    assert of_seeds[0].metrics == of_seeds[1].metrics


def writers(senders: int, duration: str, **more: object) -> Scenario:
    flow = {"size": "64 KiB", "outstanding": 16}
    return star(senders, flow, duration, transport__retry_timeout="1 ms", **more)


@pytest.mark.parametrize("senders", [3, 8])
def test_writers_share_a_port_that_drops(senders: int) -> None:
    for seed in (1, 2, 3):
        result = methods.simulate(writers(senders, "60 ms"), seed=seed)
        messages = of_flows(result, "flow_messages")
        assert min(messages) > 0
        assert jain(messages) > 0.8
        assert result.metrics["writes_failed"] == 0


def test_without_jitter_and_spread_writers_meet_again_at_each_timeout() -> None:
    scenario = writers(8, "60 ms", hosts__jitter=0.0, transport__retry_spread=1.0)
    assert min(of_flows(methods.simulate(scenario, seed=1), "flow_messages")) == 0


@pytest.mark.soak
@pytest.mark.parametrize("port", [{}, {"port_limit": "500 kB"}, {"port_limit": "5.2 MB"}])
@pytest.mark.parametrize("senders", [3, 8])
def test_writers_share_a_port_over_twenty_seeds(senders: int, port: dict[str, str]) -> None:
    more = {f"network__switch__leaf__{key}": value for key, value in port.items()}
    if port:
        more["network__switch__leaf__queue_packets"] = 0  # type: ignore[assignment]
    found = []
    for seed in range(1, 21):
        result = methods.simulate(writers(senders, "200 ms", **more), seed=seed)
        messages = of_flows(result, "flow_messages")
        assert min(messages) > 0
        found.append(jain(messages))
    assert sum(found) / len(found) >= 0.9


def test_long_connections_share_a_port_though_clocks_differ() -> None:
    """Rates of 10 Gb/s less and more 50 ppm: without jitter one of three gets a tenth."""
    ppm = enumerate((-50, 7, 50))
    named = [{"end": f"H00-0{n}", "rate": f"{10**10 + each * 10**4} b/s"} for n, each in ppm]
    links = {"network__links__rate": "10 Gb/s", "network__links__named": named}
    flow = {"size": "1 MiB", "outstanding": 4}
    for congestion in ("cubic", "newreno"):
        transport = {"transport__kind": "tcp", "transport__congestion": congestion}
        scenario = star(3, flow, "0.5 s", **transport, **links)
        assert jain(of_flows(methods.simulate(scenario, seed=1), "flow_messages")) > 0.98
        alike = methods.simulate(override(scenario, LOCKSTEP), seed=1)
        assert jain(of_flows(alike, "flow_messages")) < 0.95


def test_without_drops_hosts_have_no_jitter_and_it_reorders_no_frames() -> None:
    """Metrics, events and fingerprint are those without jitter, on Ethernet and on InfiniBand."""
    for name in ("small-rack", "pull-infiniband"):
        scenario = load(name, ["run.duration=20 ms", "run.warmup=5 ms"])
        assert "hosts.jitter" not in scenario.assumptions()
        assert scenario.hosts.jitter == 0
        if scenario.network.technology == "ethernet":
            explicit = methods.simulate(override(scenario, LOCKSTEP))
            assert explicit.metrics == methods.simulate(scenario).metrics
    # Over RDMA a packet that is overtaken is dropped by its receiver, which is counted.
    scenario = star(1, {"size": "10 KiB", "load": 0.5}, "2 ms", transport__retry_timeout="1 ms")
    result = methods.simulate(scenario, seed=1)
    assert result.metrics["packets_dropped"] == 0
    assert result.metrics["retransmissions"] == {"nak": 0, "timeout": 0}
    assert of_flows(result, "flow_messages")[0] > 1000


@pytest.mark.parametrize(
    ("changes", "assumed"),
    [
        ({}, JITTER),
        ({"transport.retry_timeout": "1 ms"}, JITTER | {"transport.retry_spread": "2.0"}),
        ({"transport.kind": "tcp"}, JITTER),
        ({"hosts.jitter": 0.5}, {}),
        ({"hosts.jitter": 0.0}, {}),
        (INFINITE, {}),
        ({"network.links.rate": "1 Gb/s"}, JITTER),
        ({"network.links.rate": "40 Mb/s"}, {}),
        (INFINITE | {"network.switch.named": [{"name": "spine00", "model": "voq"}]}, JITTER),
    ],
)
def test_guesses_about_hosts_at_ports_that_drop_are_assumptions(changes, assumed) -> None:
    scenario = override(star(2, UDP, "1 ms"), changes)
    guesses = {"hosts.jitter", "transport.retry_spread"}
    found = scenario.assumptions()
    assert {key: found[key] for key in guesses & found.keys()} == assumed
    if "hosts.jitter" not in changes:
        assert scenario.hosts.jitter == (4 if assumed else 0)
