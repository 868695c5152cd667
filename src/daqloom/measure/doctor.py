"""What a machine lacks for event building, and how to mend it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from daqloom.measure.machine import Machine
from daqloom.measure.open_files import files_of_a_control, files_of_a_unit, raise_to
from daqloom.scenario.models import Scenario

OLDEST_KERNEL = (5, 3)
"""First kernel with pidfd_open(2), which reports the end of a unit's process."""
SMALL_SOCKET_BUFFER = 4 << 20
"""Bytes that a connection at 10 Gb/s has in flight within 3 ms."""
PACED = frozenset({"bbr", "bbr2", "bbr3"})
CLOCK_KEEPERS = frozenset(
    {"chronyd", "ntpd", "ntpsec", "ptp4l", "phc2sys", "timemaster", "systemd-timesyn"}
)
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "pit"})

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """The finding of one check."""

    check: str
    state: State
    """warn: events are built, but more slowly or less steadily; fail: they cannot be built, or
    hardly."""
    means: str
    """One sentence: what is there and what follows from it."""
    fix: str = ""
    """The remedy; empty where none is needed."""


@dataclass(frozen=True)
class Needs:
    """The resources that a scenario needs on this machine."""

    transport: str
    open_files: int
    """Open files of the process that has most."""
    units_here: int
    memory_bytes: int
    """Size of the buffers of this machine's units."""
    windows: bool
    """Whether phases change by time."""
    hosts: int
    spinning: bool
    pinned: bool

    @property
    def registers(self) -> bool:
        """Whether buffers are registered with a network card."""
        return "verbs" in self.transport or "efa" in self.transport


def needs_of(scenario: Scenario) -> Needs:
    """Return the needs of a scenario. Raises ScenarioError for one that cannot be run live."""
    from daqloom.measure.places import places

    given, where = scenario.measure, places(scenario)
    hosts = len(set(given.hosts)) if given.launch == "ssh" else 1
    stream = min(scenario.readout.buffer, given.stream_buffer)
    readouts, builders = (
        sum(unit >= 0 for unit in units) for units in (where.readouts, where.builders)
    )
    total = readouts * scenario.readout.streams * stream + builders * min(
        scenario.builders.buffer, given.output_buffer
    )
    return Needs(
        transport=given.transport,
        open_files=max(files_of_a_control(where.units), files_of_a_unit(scenario)),
        units_here=-(-where.units // hosts),
        memory_bytes=-(-total // hosts),
        windows=scenario.building.change == "window",
        hosts=hosts,
        spinning=given.waiting == "spinning",
        pinned=bool(given.cores),
    )


def examine(
    machine: Machine, transports: Sequence[str], needs: Needs | None = None
) -> list[Finding]:
    """Run all checks; without a scenario, those of its needs are left out.

    `transports`: see `transports_here`."""
    found = [finding for check in CHECKS for finding in check(machine, needs)]
    return [*found, *_transports(machine, needs, transports)]


def transports_here() -> list[str]:
    """Return the values that measure.transport can have on this machine."""
    from daqloom._engine import transport_names

    return list(transport_names())


Check = Callable[[Machine, Needs | None], Iterator[Finding]]


# ---- processors ---------------------------------------------------------------------------------


def _cores(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    cores = len(machine.allowed_cores())
    if needs is None or needs.units_here <= cores:
        yield Finding("cores", "ok", f"{cores} cores are available.")
    elif needs.spinning:
        yield Finding(
            "cores",
            "fail",
            f"{needs.units_here} busy-polling units share {cores} cores: each waits while others "
            "run.",
            'Set measure.waiting = "adaptive", or use fewer units.',
        )
    else:
        yield Finding(
            "cores",
            "warn",
            f"{needs.units_here} units share {cores} cores: the scheduler alternates them, and a "
            "barrier lasts as long as its time slices.",
            "Use fewer units, or more machines (measure.hosts).",
        )


def _isolated(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    isolated = set(machine.cores("sys/devices/system/cpu/isolated"))
    tickless = set(machine.cores("sys/devices/system/cpu/nohz_full"))
    fix = (
        "Boot with isolcpus=LIST nohz_full=LIST rcu_nocbs=LIST and set measure.cores = LIST; leave "
        "the first core to the system."
    )
    if not isolated:
        yield Finding(
            "isolated cores",
            "warn",
            "None: other programs can interrupt data threads for milliseconds.",
            fix,
        )
    else:
        yield Finding(
            "isolated cores", "ok", f"{len(isolated)} cores run only what is pinned to them."
        )
    if not tickless or isolated - tickless:
        yield Finding(
            "tickless cores",
            "warn",
            "The timer interrupts data threads 100 to 1000 times a second.",
            fix,
        )
    else:
        yield Finding("tickless cores", "ok", f"{len(tickless)} cores have no timer tick.")
    if disturbed := sorted(isolated & _interrupted(machine)):
        yield Finding(
            "interrupts",
            "warn",
            f"Devices may interrupt isolated cores: {', '.join(map(str, disturbed[:8]))}.",
            "Write the other cores to /proc/irq/N/smp_affinity_list, and stop irqbalance or ban "
            "these cores (IRQBALANCE_BANNED_CPULIST).",
        )
    else:
        yield Finding("interrupts", "ok", "No device interrupts isolated cores.")


def _interrupted(machine: Machine) -> set[int]:
    return {
        core
        for irq in machine.names("proc/irq")
        if irq.isdigit()
        for core in machine.cores(f"proc/irq/{irq}/smp_affinity_list")
    }


def _governor(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    folder = "sys/devices/system/cpu"
    governors = {
        machine.text(f"{folder}/{core}/cpufreq/scaling_governor")
        for core in machine.names(folder)
        if re.fullmatch(r"cpu\d+", core)
    } - {""}
    if governors <= {"performance"}:
        what = "performance" if governors else "fixed by the firmware or the virtual machine"
        yield Finding("clock rate", "ok", f"The governor is {what}.")
    else:
        yield Finding(
            "clock rate",
            "warn",
            f"The governor is {', '.join(sorted(governors))}: cores start slowly after idling.",
            "Run `cpupower frequency-set -g performance`.",
        )


def _numa(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    nodes = machine.cores("sys/devices/system/node/online")
    if len(nodes) > 1 and not (needs and needs.pinned):
        yield Finding(
            "NUMA",
            "warn",
            f"{len(nodes)} NUMA nodes: a unit that moves between them reaches its buffers more "
            "slowly.",
            'Set measure.cores = "auto", or the cores of the node that the network card is on.',
        )
    else:
        yield Finding(
            "NUMA", "ok", f"{max(len(nodes), 1)} NUMA node(s), units are pinned or need not be."
        )


# ---- memory -------------------------------------------------------------------------------------


def _memory(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    free = machine.memory("MemAvailable") or 0
    if needs is None:
        yield Finding("memory", "ok", f"{free / 1e9:.1f} GB are free.")
    elif needs.memory_bytes > free:
        yield Finding(
            "memory",
            "fail",
            f"Buffers of {needs.units_here} units take {needs.memory_bytes / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free: the kernel kills a unit that runs out of memory.",
            "Reduce measure.stream_buffer and measure.output_buffer, or use fewer units.",
        )
    else:
        yield Finding(
            "memory",
            "ok",
            f"Buffers of {needs.units_here} units take {needs.memory_bytes / 1e9:.1f} of the "
            f"{free / 1e9:.1f} GB that are free.",
        )


def _hugepages(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    shared = machine.chosen("sys/kernel/mm/transparent_hugepage/shmem_enabled")
    if shared in ("always", "within_size", "force"):
        yield Finding("hugepages", "ok", f"Shared memory uses huge pages ({shared}).")
    else:
        yield Finding(
            "hugepages",
            "warn",
            "Shared memory is mapped in pages of 4 KiB: mapping buffers takes longer, and copies "
            "miss the TLB.",
            "echo within_size > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
        )


def _memlock(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    limit = machine.limit("Max locked memory")
    wanted = needs.memory_bytes / needs.units_here if needs and needs.registers else 0
    if limit is None or limit >= max(wanted, 1 << 30):
        yield Finding(
            "locked memory", "ok", "The limit allows registering buffers with a network card."
        )
        return
    yield Finding(
        "locked memory",
        "fail" if limit < wanted else "warn",
        f"A process may lock {limit / 1e6:.0f} MB: too little to register buffers with an RDMA "
        "card; other transports do not need it.",
        "Put `* - memlock unlimited` into /etc/security/limits.d/daqloom.conf and log in anew "
        "(Slurm: PropagateResourceLimitsExcept=MEMLOCK).",
    )


def _dev_shm(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    size = machine.size_of_tmpfs("/dev/shm")
    if size is not None and size < 1 << 30:
        yield Finding(
            "/dev/shm",
            "warn",
            f"/dev/shm holds {size / 1e6:.0f} MB: daqloom's own buffers are elsewhere, but those "
            "of libfabric:shm and Open MPI are in it.",
            "mount -o remount,size=4G /dev/shm (containers: --shm-size 4g).",
        )
    else:
        yield Finding("/dev/shm", "ok", "/dev/shm is large enough, or as large as memory allows.")


# ---- network ------------------------------------------------------------------------------------


def _congestion(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    control = machine.text("proc/sys/net/ipv4/tcp_congestion_control")
    if control in PACED:
        yield Finding(
            "TCP congestion control",
            "warn",
            f"{control} paces its sending: on loopback and within a data centre its throughput is "
            "a fifth to a half below that of cubic.",
            "sysctl -w net.ipv4.tcp_congestion_control=cubic; or for one route: ip route "
            'change ROUTE congctl cubic; or, less effective, measure.congestion = "cubic".',
        )
    else:
        yield Finding("TCP congestion control", "ok", f"{control or 'the default'}.")


def _socket_buffers(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    small = [
        f"net.core.{name}"
        for name in ("rmem_max", "wmem_max")
        if (machine.number(f"proc/sys/net/core/{name}") or SMALL_SOCKET_BUFFER)
        < SMALL_SOCKET_BUFFER
    ]
    small += [
        f"net.ipv4.{name}"
        for name in ("tcp_rmem", "tcp_wmem")
        if (fields := machine.text(f"proc/sys/net/ipv4/{name}").split())
        and int(fields[-1]) < SMALL_SOCKET_BUFFER
    ]
    if small:
        yield Finding(
            "socket buffers",
            "warn",
            f"{', '.join(small)} below 4 MiB: one connection cannot saturate a fast network with a "
            "long round-trip time.",
            "sysctl -w net.core.rmem_max=67108864 net.core.wmem_max=67108864 "
            "net.ipv4.tcp_rmem='4096 131072 67108864' net.ipv4.tcp_wmem='4096 65536 67108864'",
        )
    else:
        yield Finding("socket buffers", "ok", "They may grow to 4 MiB and more.")


def _transports(
    machine: Machine, needs: Needs | None, transports: Sequence[str]
) -> Iterator[Finding]:
    if needs and not _is_there(needs.transport, transports):
        yield Finding(
            "transport",
            "fail",
            f"{needs.transport} is not available; this machine has {', '.join(transports)}.",
            "Set measure.transport to one of these, or install libfabric's provider.",
        )
    elif not any(name.startswith("libfabric:") for name in transports):
        yield Finding(
            "transport",
            "warn",
            "No libfabric: units of one machine only.",
            "Install libfabric (Debian: libfabric-dev) and build daqloom anew.",
        )
    else:
        yield Finding("transport", "ok", f"{', '.join(transports)}.")
    yield from _rdma(machine, needs)


def _is_there(transport: str, transports: Sequence[str]) -> bool:
    """Return whether a transport is available; as in libfabric, a name includes providers layered
    on it."""
    return any(name == transport or name.startswith(f"{transport};") for name in transports)


def _rdma(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    folder = "sys/class/infiniband"
    ports = [
        f"{card}/ports/{p}"
        for card in machine.names(folder)
        for p in machine.names(f"{folder}/{card}/ports")
    ]
    active = [port for port in ports if "ACTIVE" in machine.text(f"{folder}/{port}/state")]
    wanted = bool(needs and "verbs" in needs.transport)
    if active:
        kinds = {machine.text(f"{folder}/{port}/link_layer") or "unknown" for port in active}
        yield Finding("RDMA", "ok", f"{len(active)} active port(s): {', '.join(sorted(kinds))}.")
    elif ports:
        yield Finding(
            "RDMA",
            "fail" if wanted else "warn",
            f"None of {len(ports)} ports is active.",
            "Check cables and the subnet manager (`ibstat`).",
        )
    else:
        yield Finding(
            "RDMA",
            "fail" if wanted else "ok",
            "There is no RDMA card: libfabric:verbs cannot be used.",
            "Load the card's driver (rdma-core), or use another transport." if wanted else "",
        )


# ---- the system ---------------------------------------------------------------------------------


def _kernel(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    release = machine.text("proc/sys/kernel/osrelease")
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) < OLDEST_KERNEL:
        yield Finding(
            "kernel",
            "fail",
            f"{release} lacks pidfd, which reports the end of a unit's process.",
            "Use Linux 5.3 or later.",
        )
    else:
        yield Finding("kernel", "ok", f"{release or 'unknown'}: it has futex, memfd and pidfd.")


def _open_files(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    limit = machine.limit("Max open files", hard=True)  # which every process of a run asks for
    wanted = needs.open_files if needs else 1024
    if limit is not None and limit < wanted:
        yield Finding(
            "open files",
            "fail" if needs else "warn",
            f"A process may open {limit:.0f} files, and a run may need {wanted}.",
            raise_to(wanted).capitalize() + ".",
        )
    else:
        yield Finding("open files", "ok", "A process may open as many files as it needs.")


def _clock(machine: Machine, needs: Needs | None) -> Iterator[Finding]:
    source = machine.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in SLOW_CLOCKS:
        yield Finding(
            "clock",
            "warn",
            f"{source}: reading the clock takes a system call, and data threads read it often.",
            "Boot with tsc=reliable clocksource=tsc where the processor's counter is invariant.",
        )
    else:
        yield Finding("clock", "ok", f"{source or 'unknown'}.")
    keepers = sorted(machine.programs() & CLOCK_KEEPERS)
    apart = needs is not None and needs.windows and needs.hosts > 1
    if keepers:
        yield Finding(
            "clock synchronisation", "ok", f"{', '.join(keepers)} synchronises the clock."
        )
    else:
        yield Finding(
            "clock synchronisation",
            "fail" if apart else "warn",
            "No program seems to synchronise the clock: time windows over several machines "
            '(building.change = "window") drift apart, and so do timelines.',
            "Run chronyd, or ptp4l and phc2sys where windows are shorter than a millisecond.",
        )


CHECKS: tuple[Check, ...] = (
    _cores,
    _isolated,
    _governor,
    _numa,
    _memory,
    _hugepages,
    _memlock,
    _dev_shm,
    _congestion,
    _socket_buffers,
    _kernel,
    _open_files,
    _clock,
)
