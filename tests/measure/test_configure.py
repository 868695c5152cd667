"""Configuration of a unit that has a network device."""

from pathlib import Path

import pytest

from daqloom.deployment.scenarios import override
from daqloom.machine.machine import Machine
from daqloom.measure import configure
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.models import Scenario
from support.measure.live_nodes import TOKEN
from support.measure.live_nodes import configure as order_of
from support.measure.small_runs import small


def with_device(device: str, transport: str) -> Scenario:
    units = [{"unit": unit, "host": "here", "device": device} for unit in range(3)]
    table = {"hosts.placement": "table", "hosts.units": units}
    return override(small(transport=transport), table)


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a card that has interface and RDMA device, and one with neither."""
    for name in ("bus/pci/devices/0000:c1:00.0", "class/net/ibp193s0/device"):
        for below in ("net/ibp193s0/mtu", "infiniband/mlx5_1/node_type"):
            (tmp_path / "sys" / name / below).parent.mkdir(parents=True)
            (tmp_path / "sys" / name / below).write_text("1\n")
    (tmp_path / "sys/bus/pci/devices/0000:00:00.0").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:00:00.0/class").write_text("0x060000\n")
    monkeypatch.setattr(configure, "Machine", lambda: Machine(tmp_path))


@pytest.mark.process
@pytest.mark.parametrize("device", ["0000:c1:00.0", "ibp193s0"])
@pytest.mark.parametrize(
    ("transport", "bind", "domain"),
    [
        ("tcp", "ibp193s0", ""),
        ("libfabric:tcp", "ibp193s0", ""),
        ("libfabric:verbs", "ibp193s0", "mlx5_1"),
        ("shm", "ibp193s0", "mlx5_1"),  # uses neither
    ],
)
def test_a_device_gives_its_interface_to_tcp_and_its_domain_to_libfabric(
    sysfs: None, device: str, transport: str, bind: str, domain: str
) -> None:
    scenario = with_device(device, transport)
    config = configure.live_config(scenario, order_of(1, units=3), TOKEN)
    assert (config.bind, config.domain) == (bind, domain)


@pytest.mark.process
def test_a_device_without_interface_cannot_carry_tcp(sysfs: None) -> None:
    scenario = with_device("0000:00:00.0", "tcp")
    with pytest.raises(MeasureError, match=r"0000:00:00.0 has no interface, and TCP requires one"):
        configure.live_config(scenario, order_of(1, units=3), TOKEN)
