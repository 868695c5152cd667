"""Equal-cost multipath in scenarios: links of flows, and seeds of the hash."""

import pytest

from daqloom.scenario import ScenarioError
from daqloom.study.methods import methods
from support.small_fabrics import small

SPINES = 4
HOSTS = range(8)
"""Hosts of a pod."""
FLOW = {"size": "1 KiB", "messages": 1, "transport": "udp"}
FLOWS = {
    f"flows__from{source}to{destination}__{key}": value
    for source in HOSTS
    for destination in range(8, 16)
    for key, value in (FLOW | {"source": source, "destination": destination}).items()
}
"""Flows from each host of one pod to each of the other."""


def bytes_of_ports(**changes: object) -> dict[str, int]:
    """Two pods of two leaves and four spines, each below four cores of its own."""
    scenario = small(
        building__protocol="none",
        network__technology="ethernet",
        network__shape="fat-tree",
        network__pods=2,
        network__hosts_per_leaf=4,
        network__spines=SPINES,
        network__cores=4,
        network__switch__radix=16,
        run__duration="200 us",
        run__warmup="0 s",
        **FLOWS | changes,
    )
    ports = methods.simulate(scenario).series["ports"]
    return dict(zip(ports["name"], ports["bytes"], strict=True))


def used(carried: dict[str, int]) -> list[str]:
    """Ports in use from spines of the first pod to cores."""
    up = {f"spine{spine:02} port {port}" for spine in range(SPINES) for port in range(13, 17)}
    return sorted(up & {name for name, size in carried.items() if size})


def test_switches_of_two_levels_use_all_links_unless_they_have_a_common_seed() -> None:
    """64 flows on 16 links: one without a flow has a chance of (15 / 16)^64 = 1.6 %."""
    assert len(used(bytes_of_ports())) >= 14
    # A leaf sends the flows of one value of the hash to spine i, whose way to core i they take.
    found = used(bytes_of_ports(network__hash_seed="common"))
    assert found == [f"spine{spine:02} port {13 + spine}" for spine in range(SPINES)]
    first = bytes_of_ports(run__seed=1)
    assert first == bytes_of_ports(run__seed=1)
    assert first != bytes_of_ports(run__seed=2)


ROUTED = {"network__shape": "fat-tree", "network__routing": "d-mod-k"}


@pytest.mark.parametrize(
    "changes", [{"network__technology": "infiniband"}, {"network__technology": "ethernet"} | ROUTED]
)
def test_a_network_without_ecmp_has_no_seed_of_a_hash(changes: dict[str, object]) -> None:
    with pytest.raises(ScenarioError, match=r"network.hash_seed means nothing with network\."):
        small(network__hash_seed="common", **changes)
