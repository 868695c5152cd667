"""`daqloom doctor` on machines that are made up: folders with the files of /proc and /sys."""

import json
import struct
import subprocess
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load
from daqloom.machine import cards
from daqloom.machine.cards import CardSettings, relaxed_ordering, settings_of
from daqloom.machine.doctor import Finding, Needs, examine
from daqloom.machine.machine import Machine
from daqloom.measure.plan import needs_of
from support.command import invoke
from support.measure.small_runs import DAQLOOM

SHM = "shm /dev/shm tmpfs rw,size={} 0 0\n"


def limits(files: str = "65536  65536", locked: str = "unlimited  unlimited") -> str:
    """Soft and hard limits, as the kernel lists them."""
    return (
        "Limit                     Soft Limit           Hard Limit           Units\n"
        f"Max open files            {files}                files\n"
        f"Max locked memory         {locked}            bytes\n"
    )


GOOD = {
    "proc/loadavg": "3.90 2.00 1.00 4/700 4711\n",
    "sys/devices/system/cpu/online": "0-7\n",
    "proc/meminfo": "MemTotal: 64000000 kB\nMemAvailable:   32000000 kB\nHugePages_Total:  12\n"
    "HugePages_Free: 12\nHugepagesize:   2048 kB\n",
    "proc/self/limits": limits(),
    "proc/self/status": "Name:\tdaqloom\nCpus_allowed_list:\t0-7\n",
    "proc/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,size=8388608k 0 0\n",
    "proc/77/comm": "chronyd\n",
    "proc/irq/24/smp_affinity_list": "0-1\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t67108864\n",
    "proc/sys/net/ipv4/tcp_wmem": "4096\t65536\t67108864\n",
    "proc/sys/net/core/rmem_max": "67108864\n",
    "proc/sys/net/core/wmem_max": "67108864\n",
    "sys/devices/system/cpu/isolated": "2-7\n",
    "sys/devices/system/cpu/nohz_full": "2-7\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/node/online": "0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/shmem_enabled": "always [within_size] advise never\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "sys/class/net/eth0/device/current_link_speed": "16.0 GT/s PCIe\n",
    "sys/class/net/eth0/device/current_link_width": "16\n",
    "sys/class/net/eth0/device/max_link_speed": "16.0 GT/s PCIe\n",
    "sys/class/net/eth0/device/max_link_width": "16\n",
    "sys/class/net/eth0/device/numa_node": "0\n",
    "sys/class/net/eth0/queues/rx-0/rps_cpus": "0\n",
    "sys/class/net/eth0/queues/rx-1/rps_cpus": "0\n",
    "sys/class/net/lo/mtu": "65536\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state2/name": "C6\n",
    "sys/devices/system/cpu/cpu0/power/energy_perf_bias": "6\n",
    "sys/kernel/iommu_groups/3/type": "identity\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz ro quiet amd_iommu=on iommu=pt\n",
}
CARD = CardSettings(receive_descriptors=1024, merges_packets=True)
TRANSPORTS = ["shm", "libfabric:tcp;ofi_rxm", "libfabric:verbs;ofi_rxm"]
MODEST = Needs(
    transport="shm",
    open_files=72,
    units_here=4,
    memory_bytes=10**9,
    windows=False,
    hosts=1,
    spinning=False,
    pinned=False,
)


def machine(root: Path, **changes: str | None) -> Machine:
    """A good one but for these files; None: it has none such."""
    for path, text in {**GOOD, **changes}.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
    return Machine(root)


def findings(where: Machine, needs: Needs | None = None, transports=TRANSPORTS, card=CARD):
    found = examine(where, transports, needs, lambda name: card)
    assert len({finding.check for finding in found}) == len(found)
    return {finding.check: finding for finding in found}


def test_a_good_machine_lacks_nothing(tmp_path: Path) -> None:
    for needs in (None, MODEST):
        found = findings(machine(tmp_path), needs)
        assert {check for check, finding in found.items() if finding.state != "ok"} == set()
        assert not any(finding.fix for finding in found.values())


LACKS = [
    ("proc/loadavg", "4.10 2.00 1.00 4/700 4711\n", "load", "measure.fault_timeout"),
    ("sys/devices/system/cpu/isolated", "\n", "isolated cores", "isolcpus"),
    ("sys/devices/system/cpu/nohz_full", "(null)\n", "tickless cores", "nohz_full"),
    ("proc/irq/24/smp_affinity_list", "0-7\n", "interrupts", "smp_affinity_list"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n", "clock rate", "cpupo"),
    ("sys/devices/system/node/online", "0-1\n", "NUMA", "measure.cores"),
    (
        "sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
        "hugepages",
        "within_size",
    ),
    ("proc/self/limits", limits(locked="65536  65536"), "locked memory", "memlock"),
    ("proc/self/limits", limits(files="512   512"), "open files", "nofile 4096"),
    ("proc/self/limits", limits(files="512   1023"), "open files", "nofile 4096"),
    ("proc/mounts", f"shm /x tmpfs rw 0 0\n{SHM.format('65536k')}", "/dev/shm", "remount"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n", "TCP congestion control", "cubic"),
    ("proc/sys/net/core/rmem_max", "212992\n", "socket buffers", "rmem_max"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096 16384 2097152\n", "socket buffers", "tcp_wmem"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "clock", "tsc"),
    ("proc/77/comm", "bash\n", "clock synchronisation", "chronyd"),
    ("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n", "RDMA", "ibstat"),
    ("sys/class/net/eth0/device/current_link_width", "8\n", "eth0: PCIe", "slot"),
    ("sys/class/net/eth0/device/current_link_speed", "8.0 GT/s PCIe\n", "eth0: PCIe", "slot"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133\n", "C-states", "idle-set -D 10"),
    ("sys/devices/system/cpu/cpu0/power/energy_perf_bias", "15\n", "clock rate", "BIOS"),
    ("sys/kernel/iommu_groups/7/type", "DMA-FQ\n", "IOMMU", "iommu=pt"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", None, "eth0: receive queues", "ethtool -L"),
]


@pytest.mark.parametrize(("path", "text", "check", "fix"), LACKS)
def test_each_lack_is_reported_with_its_fix_and_nothing_else_is(tmp_path, path, text, check, fix):
    found = findings(machine(tmp_path, **{path: text}))
    assert {name for name, finding in found.items() if finding.state != "ok"} == {check}
    assert found[check].state == "warn"
    assert fix in found[check].fix
    assert found[check].means.endswith(".")


def test_isolated_cores_are_to_be_those_near_the_card(tmp_path: Path) -> None:
    two = {
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node0/cpulist": "0-7\n",
        "sys/devices/system/node/node1/cpulist": "8-15\n",
    }
    near = findings(machine(tmp_path / "near", **two))["eth0: NUMA node"]
    assert (near.state, "0-7" in near.means) == ("ok", True)
    far = {"sys/class/net/eth0/device/numa_node": "1\n"}
    told = findings(machine(tmp_path / "far", **two, **far))["eth0: NUMA node"]
    assert (told.state, "8-15" in told.fix) == ("warn", True)


def test_settings_of_a_card_are_findings_if_driver_and_kernel_report_them(tmp_path: Path) -> None:
    where = machine(tmp_path)
    assert "ethtool -K eth0 gro off" in findings(where)["eth0: offloads"].means
    short = findings(where, card=CardSettings(receive_descriptors=64))
    assert "ethtool -G eth0" in short["eth0: descriptors"].fix
    assert "eth0: offloads" not in short
    assert "eth0: descriptors" not in findings(where, card=CardSettings())
    assert settings_of("lo").receive_descriptors is None
    assert settings_of("lo").merges_packets is not None
    assert settings_of("absent0") == CardSettings()


def test_a_processor_that_sleeps_deeply_is_named_with_its_states(tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu/cpu0/cpuidle"
    slow = {f"{folder}/state2/latency": "133\n"}
    assert "133 us to wake up (C6)" in findings(machine(tmp_path, **slow))["C-states"].means
    switched_off = {**slow, f"{folder}/state2/disable": "1\n"}
    assert findings(machine(tmp_path, **switched_off))["C-states"].state == "ok"
    for garbled in ("²", "-1", "1e9", "9" * 40):
        found = findings(machine(tmp_path, **{f"{folder}/state2/latency": garbled}))
        assert found["C-states"].state == "ok"


def test_an_iommu_is_reported_with_its_options(tmp_path: Path) -> None:
    options = "quiet intel_iommu=on,sm_on xiommu=no iommu=strict"
    changes = {"sys/kernel/iommu_groups/9/type": "DMA\n", "proc/cmdline": options}
    means = findings(machine(tmp_path, **changes))["IOMMU"].means
    assert "1 group of devices (intel_iommu=on,sm_on iommu=strict at boot)" in means


def with_capabilities(*capabilities: bytes) -> bytes:
    """Return a PCI configuration space with a list of capabilities of 64 bytes each."""
    space = bytearray(64 + 64 * len(capabilities))
    space[0x34] = 0x40 if capabilities else 0
    for place, capability in enumerate(capabilities):
        begin = 64 + 64 * place
        following = begin + 64 if place + 1 < len(capabilities) else 0
        space[begin : begin + len(capability) + 1] = (
            capability[:1] + bytes([following]) + capability[1:]
        )
    return bytes(space)


POWER = b"\x01"
"""Another capability, as it may come before that of PCI Express (0x10)."""
RELAXED = b"\x10" + bytes(6) + b"\x30\x29"
"""Device control 0x2930: relaxed ordering, payloads of 256 bytes, reads of 512 bytes."""
STRICT = b"\x10" + bytes(6) + b"\x20\x29"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (with_capabilities(RELAXED), True),
        (with_capabilities(POWER, RELAXED), True),
        (with_capabilities(POWER, STRICT), False),
        (with_capabilities(POWER), None),
        (with_capabilities(), None),
        (with_capabilities(RELAXED)[:64], None),  # for users other than root
        (with_capabilities(RELAXED)[:73], None),
        (b"", None),
        (bytes(0x34) + b"\x40" + bytes(11) + b"\x01\x40" + bytes(20), None),  # a loop
        (bytes([255]) * 256, None),
    ],
)
def test_the_ordering_of_writes_is_read_from_the_configuration_space(config, expected) -> None:
    assert relaxed_ordering(config) is expected


def test_a_card_that_keeps_its_writes_in_order_is_a_finding(tmp_path: Path) -> None:
    where = machine(tmp_path)
    config = tmp_path / "sys/class/net/eth0/device/config"
    for capability, state in ((STRICT, "warn"), (RELAXED, "ok")):
        config.write_bytes(with_capabilities(capability))
        assert findings(where)["eth0: ordering"].state == state
    config.write_bytes(with_capabilities())
    assert "eth0: ordering" not in findings(where)


@pytest.mark.parametrize(
    ("delay_us", "state"), [(None, None), (0, "ok"), (8, "ok"), (32, "ok"), (33, "warn")]
)
def test_late_interrupts_are_a_finding(tmp_path: Path, delay_us, state) -> None:
    found = findings(machine(tmp_path), card=CardSettings(interrupt_delay_us=delay_us))
    assert (found["eth0: interrupts"].state if state else None) == state
    assert ("eth0: interrupts" in found) == (state is not None)


@pytest.mark.parametrize(("adapts", "expected"), [(0, 50), (1, 0)])
def test_the_driver_reports_the_delay_of_interrupts(monkeypatch, adapts, expected) -> None:
    values = {1: 50, 5: 7, 10: adapts}  # rx_coalesce_usecs, tx_coalesce_usecs, adaptive
    answer = struct.pack("23I", *(values.get(place, 0) for place in range(23)))

    def driver(card: str, request: bytes) -> bytes | None:
        return answer if struct.unpack_from("I", request) == (0x0E,) else None

    monkeypatch.setattr(cards, "_ethtool", driver)
    assert settings_of("eth0") == CardSettings(interrupt_delay_us=expected)


def test_an_old_kernel_fails_and_a_machine_without_data_does_not(tmp_path: Path) -> None:
    for release, state in (("5.2.21", "fail"), ("4.18.0-553.el8", "fail"), ("5.3.0", "ok")):
        where = machine(tmp_path, **{"proc/sys/kernel/osrelease": release})
        assert findings(where)["kernel"].state == state
    found = findings(Machine(tmp_path))
    assert not [check for check, finding in found.items() if finding.state == "fail"]
    found = findings(machine(tmp_path, **{"proc/self/limits": limits(files="30  72")}), MODEST)
    assert found["open files"].state == "ok"


def with_needs(**changes: object) -> Needs:
    return Needs(**{**vars(MODEST), **changes})


@pytest.mark.parametrize(
    ("needs", "check", "state"),
    [
        (with_needs(units_here=9), "cores", "warn"),
        (with_needs(units_here=9, spinning=True), "cores", "fail"),
        (with_needs(memory_bytes=33 * 10**9), "memory", "fail"),
        (with_needs(open_files=65537), "open files", "fail"),
        (with_needs(transport="libfabric:efa"), "transport", "fail"),
        (with_needs(transport="libfabric:tc"), "transport", "fail"),
        (with_needs(transport="libfabric:tcp"), "transport", "ok"),
        (with_needs(transport="libfabric:verbs"), "RDMA", "ok"),
    ],
)
def test_a_scenario_has_needs(tmp_path: Path, needs: Needs, check: str, state: str) -> None:
    assert findings(machine(tmp_path), needs)[check].state == state


def test_a_missing_requirement_of_a_scenario_fails(tmp_path: Path) -> None:
    down = {"sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n", "proc/77/comm": "bash\n"}
    where = machine(tmp_path, **down, **{"proc/self/limits": limits(locked="1000000  1000000")})
    needs = with_needs(transport="libfabric:verbs", windows=True, hosts=2, units_here=2)
    found = findings(where, needs)
    assert {check for check, finding in found.items() if finding.state == "fail"} == {
        "RDMA",
        "clock synchronisation",
        "locked memory",
    }
    buffers = {"measure.stream_buffer": "1 MB", "measure.output_buffer": "10 MB"}
    scenario = load("laptop", buffers | {"readout.streams": 2, "readout.units": 4})
    # Four nodes, each with two streams of 1 MB and an output of 10 MB.
    assert needs_of(scenario).memory_bytes == 4 * (2 * 1_000_000 + 10_000_000)


def test_the_command_reports_findings_as_json_and_by_its_exit_code() -> None:
    done = invoke("doctor", "laptop", "--json")
    found = [Finding(**finding) for finding in json.loads(done.stdout)]
    assert len(found) > 12
    assert done.exit_code == (1 if any(finding.state == "fail" for finding in found) else 0)
    assert "kernel: " in invoke("doctor").stdout


@pytest.mark.process
def test_a_machine_without_libfabric_gets_an_answer() -> None:
    """An empty file covers that of the library, in a mount namespace."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    library = next(line.split()[-1] for line in cache.stdout.splitlines() if "libfabric" in line)
    cover = f'mount --bind /dev/null {library} && exec "$@"'
    isolated = ("unshare", "--map-root-user", "--mount", "sh", "-c", cover, "sh", *DAQLOOM)
    done = subprocess.run([*isolated, "doctor", "--json"], capture_output=True, text=True)
    assert done.stderr == ""
    findings = [Finding(**finding) for finding in json.loads(done.stdout)]
    [finding] = [each for each in findings if "no libfabric" in each.means]
    assert (finding.state, "libfabric1" in finding.fix) == ("warn", True)
    command = ("measure", "laptop", "--transport", "libfabric:tcp")
    done = subprocess.run([*isolated, *command], capture_output=True, text=True)
    assert done.returncode == 1
    reason = f"libfabric cannot be loaded: {library}: file too short; install it"
    assert reason in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
