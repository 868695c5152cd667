"""Checks of a machine for its fitness for event building, with remedies."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daqloom.base import lazy
from daqloom.base.words import plural
from daqloom.machine.cards import CardSettings, cards_of, examine_card, settings_of
from daqloom.machine.findings import Finding, State
from daqloom.machine.machine import Machine
from daqloom.machine.open_files import raise_to
from daqloom.machine.packages import HEADERS, packages_with

with lazy.imports():
    from daqloom import _engine

OLDEST_KERNEL = (5, 3)
"""First kernel with pidfd_open(2), which detects the end of a unit's process."""
SMALL_SOCKET_BUFFER = 4 << 20
"""Bytes in flight on a connection at 10 Gb/s with a round trip of 3 ms."""
PACED = frozenset({"bbr", "bbr2", "bbr3"})
CLOCK_KEEPERS = frozenset(
    {"chronyd", "ntpd", "ntpsec", "ptp4l", "phc2sys", "timemaster", "systemd-timesyn"}
)
SLOW_WAKE_US = 10
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "pit"})

QUIET = 0.5
"""Load per core up to which a machine counts as quiet."""


@dataclass(frozen=True)
class Needs:
    """Resources that a scenario needs on this machine."""

    transport: str
    open_files: int
    """Open files of the process that needs most."""
    units_here: int
    memory_bytes: int
    """Total size of the buffers of units on this machine (B)."""
    windows: bool
    """Whether phases change at fixed times (`building.change = "window"`)."""
    hosts: int
    spinning: bool
    pinned: bool

    @property
    def registers(self) -> bool:
        """Whether buffers are registered with a network card before use."""
        return "verbs" in self.transport or "efa" in self.transport


def examine(
    machine: Machine,
    transports: Sequence[str],
    needs: Needs | None = None,
    settings: Callable[[str], CardSettings] = settings_of,
) -> list[Finding]:
    """Run all checks; without a scenario, only those that depend on no `needs`. `transports`: see
    `transports_here`; `settings`: function that returns the settings of a network card by name."""
    found = {check: look(machine, needs) for check, look in CHECKS.items()}
    found["transport"] = _transport(needs, transports)
    found["RDMA"] = _rdma(machine, needs)
    cards = [
        each for card in cards_of(machine) for each in examine_card(machine, card, settings(card))
    ]
    return [Finding(check, *verdict) for check, verdict in found.items()] + cards


def transports_here() -> list[str]:
    """Return the possible values of `measure.transport` on this machine."""
    return list(_engine.transport_names())


Verdict = tuple[State, str, str]
"""State, meaning and remedy, as in `Finding`."""


# ---- processors ---------------------------------------------------------------------------------


def _cores(machine: Machine, needs: Needs | None) -> Verdict:
    cores = len(machine.allowed_cores())
    if needs is None or needs.units_here <= cores:
        return "ok", f"{cores} cores are available.", ""
    shared = (
        f"{needs.units_here} {'busy-polling ' if needs.spinning else ''}units share {cores} cores"
    )
    if needs.spinning:
        fix = 'Set measure.waiting = "adaptive", or use fewer units.'
        return "fail", f"{shared}: each waits while others run.", fix
    return (
        "warn",
        f"{shared}: the scheduler alternates them, and a barrier lasts as long as its time slices.",
        "Use fewer units, or more machines (measure.hosts).",
    )


def _load(machine: Machine, needs: Needs | None) -> Verdict:
    load, cores = machine.load()
    means = f"Load {load:.1f} on {plural(cores, 'core')}"
    if load <= QUIET * cores:
        return "ok", f"{means}.", ""
    return (
        "warn",
        f"{means}: other programs run, and real-time measurements lose units.",
        "Let nothing else run, or raise measure.fault_timeout.",
    )


ISOLATE = (
    "Boot with isolcpus=LIST nohz_full=LIST rcu_nocbs=LIST and set measure.cores = LIST; leave the "
    "first core to the system."
)


def _isolation(machine: Machine) -> set[int]:
    return set(machine.cores("sys/devices/system/cpu/isolated"))


def _isolated_cores(machine: Machine, needs: Needs | None) -> Verdict:
    if isolated := _isolation(machine):
        return "ok", f"{len(isolated)} cores run only what is pinned to them.", ""
    return "warn", "None: other programs can interrupt data threads for milliseconds.", ISOLATE


def _tickless_cores(machine: Machine, needs: Needs | None) -> Verdict:
    tickless = set(machine.cores("sys/devices/system/cpu/nohz_full"))
    if tickless and _isolation(machine) <= tickless:
        return "ok", f"{len(tickless)} cores have no timer tick.", ""
    return "warn", "The timer interrupts data threads 100 to 1000 times a second.", ISOLATE


def _interrupts(machine: Machine, needs: Needs | None) -> Verdict:
    interrupted = {
        core
        for irq in machine.names("proc/irq")
        if irq.isdigit()
        for core in machine.cores(f"proc/irq/{irq}/smp_affinity_list")
    }
    disturbed = sorted(interrupted & _isolation(machine))
    if not disturbed:
        return "ok", "No device interrupts isolated cores.", ""
    return (
        "warn",
        f"Devices may interrupt isolated cores: {', '.join(map(str, disturbed[:8]))}.",
        "Write the other cores to /proc/irq/N/smp_affinity_list, and stop irqbalance or ban these "
        "cores (IRQBALANCE_BANNED_CPULIST).",
    )


def _clock_rate(machine: Machine, needs: Needs | None) -> Verdict:
    folder = "sys/devices/system/cpu"
    governors = {
        machine.text(f"{folder}/{core}/cpufreq/scaling_governor")
        for core in machine.names(folder)
        if re.fullmatch(r"cpu\d+", core)
    } - {""}
    bias = machine.number(f"{folder}/cpu0/power/energy_perf_bias") or 0  # 15: saves power
    if governors <= {"performance"} and bias > 6:
        means = f"The firmware prefers saving power (bias {bias} of 15)."
        return "warn", means, "Choose performance in the BIOS setup, or run `cpupower set -b 0`."
    if governors <= {"performance"}:
        what = "performance" if governors else "fixed by the firmware or the virtual machine"
        return "ok", f"The governor is {what}.", ""
    return (
        "warn",
        f"The governor is {', '.join(sorted(governors))}: cores start slowly after idling.",
        f"Run `cpupower frequency-set -g performance` ({packages_with('cpupower')}).",
    )


def _numa(machine: Machine, needs: Needs | None) -> Verdict:
    nodes = machine.cores("sys/devices/system/node/online")
    if len(nodes) <= 1 or (needs and needs.pinned):
        means = f"{max(len(nodes), 1)} NUMA node(s), units are pinned or need not be."
        return "ok", means, ""
    return (
        "warn",
        f"{len(nodes)} NUMA nodes: a unit that moves between them reaches its buffers more slowly.",
        'Set measure.cores = "auto", or the cores of the node that the network card is on.',
    )


def _idle_states(machine: Machine, needs: Needs | None) -> Verdict:
    folder = "sys/devices/system/cpu/cpu0/cpuidle"
    slow = {
        machine.text(f"{folder}/{state}/name")[:16]: latency_us
        for state in machine.names(folder)
        if (latency_us := machine.number(f"{folder}/{state}/latency") or 0) > SLOW_WAKE_US
        and machine.text(f"{folder}/{state}/disable") != "1"
    }
    if not slow:
        return "ok", "Idle cores wake up fast, or a virtual machine hides their states.", ""
    means = f"Idle cores take up to {max(slow.values())} us to wake up ({', '.join(slow)})."
    fix = f"Run `cpupower idle-set -D {SLOW_WAKE_US}`, or limit C-states in the BIOS setup."
    return "warn", means, fix


def _iommu(machine: Machine, needs: Needs | None) -> Verdict:
    groups = "sys/kernel/iommu_groups"
    translated = sum(
        machine.text(f"{groups}/{group}/type").startswith("DMA") for group in machine.names(groups)
    )
    if not translated:
        return "ok", "It is off, or passes DMA through.", ""
    options = re.findall(r"\b(?:intel_|amd_)?iommu=\S{1,40}", machine.text("proc/cmdline"))
    at_boot = " ".join(options) or "no option"
    means = (
        f"It translates the DMA of {plural(translated, 'group')} of devices ({at_boot} at boot)."
    )
    return "warn", means, "Boot with iommu=pt, or switch the IOMMU off in the BIOS setup."


# ---- memory -------------------------------------------------------------------------------------


def _memory(machine: Machine, needs: Needs | None) -> Verdict:
    free = machine.memory("MemAvailable") or 0
    free_gb = f"{free / 1e9:.1f} GB"
    if needs is None:
        return "ok", f"{free_gb} are free.", ""
    taken = f"Buffers of {needs.units_here} units take {needs.memory_bytes / 1e9:.1f}"
    if needs.memory_bytes <= free:
        return "ok", f"{taken} of the {free_gb} that are free.", ""
    return (
        "fail",
        f"{taken} GB, and {free_gb} are free: the kernel kills a unit that runs out of memory.",
        "Reduce measure.stream_buffer and measure.output_buffer, or use fewer units.",
    )


def _hugepages(machine: Machine, needs: Needs | None) -> Verdict:
    shared = machine.chosen("sys/kernel/mm/transparent_hugepage/shmem_enabled")
    if shared in ("always", "within_size", "force"):
        return "ok", f"Shared memory uses huge pages ({shared}).", ""
    return (
        "warn",
        "Shared memory is mapped in pages of 4 KiB: mapping buffers takes longer, and copies miss "
        "the TLB.",
        "echo within_size > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
    )


def _reserved_pages(machine: Machine, needs: Needs | None) -> Verdict:
    size, free = machine.memory("Hugepagesize"), machine.memory("HugePages_Free")
    means = (
        f"{free} free pages of {size >> 20} MiB for the software switch, "
        f"{free * size / 1e6:.0f} MB."
        if size and free
        else "None is reserved; only the software switch needs them, or runs.huge_pages = false, "
        "with which it is slower (echo 512 > /proc/sys/vm/nr_hugepages reserves 1 GiB)."
    )
    return "ok", means, ""


def _locked_memory(machine: Machine, needs: Needs | None) -> Verdict:
    limit = machine.limit("Max locked memory")
    required = needs.memory_bytes / needs.units_here if needs and needs.registers else 0
    if limit is None or limit >= max(required, 1 << 30):
        return "ok", "The limit allows registering buffers with a network card.", ""
    return (
        "fail" if limit < required else "warn",
        f"A process may lock {limit / 1e6:.0f} MB: too little to register buffers with an RDMA "
        "card; other transports do not need it.",
        "Put `* - memlock unlimited` into /etc/security/limits.d/daqloom.conf and log in anew "
        "(Slurm: PropagateResourceLimitsExcept=MEMLOCK).",
    )


def _dev_shm(machine: Machine, needs: Needs | None) -> Verdict:
    size = machine.size_of_tmpfs("/dev/shm")
    if size is None or size >= 1 << 30:
        return "ok", "/dev/shm is large enough, or as large as memory allows.", ""
    return (
        "warn",
        f"/dev/shm holds {size / 1e6:.0f} MB: daqloom's own buffers are elsewhere, but those of "
        "libfabric:shm and Open MPI are in it.",
        "mount -o remount,size=4G /dev/shm (containers: --shm-size 4g).",
    )


# ---- network ------------------------------------------------------------------------------------


def _congestion_control(machine: Machine, needs: Needs | None) -> Verdict:
    control = machine.text("proc/sys/net/ipv4/tcp_congestion_control")
    if control not in PACED:
        return "ok", f"{control or 'the default'}.", ""
    return (
        "warn",
        f"{control} paces its sending: on loopback and within a data centre its throughput is a "
        "fifth to a half below that of cubic.",
        "sysctl -w net.ipv4.tcp_congestion_control=cubic; or for one route: ip route change ROUTE "
        'congctl cubic; or, less effective, measure.congestion = "cubic".',
    )


SOCKET_BUFFERS = ("core.rmem_max", "core.wmem_max", "ipv4.tcp_rmem", "ipv4.tcp_wmem")


def _socket_buffers(machine: Machine, needs: Needs | None) -> Verdict:
    small = []
    for name in SOCKET_BUFFERS:
        limits = machine.text(f"proc/sys/net/{name.replace('.', '/')}").split()
        if limits and int(limits[-1]) < SMALL_SOCKET_BUFFER:
            small.append(f"net.{name}")
    if not small:
        return "ok", "They may grow to 4 MiB and more.", ""
    return (
        "warn",
        f"{', '.join(small)} below 4 MiB: one connection cannot saturate a fast network with a "
        "long round-trip time.",
        "sysctl -w net.core.rmem_max=67108864 net.core.wmem_max=67108864 "
        "net.ipv4.tcp_rmem='4096 131072 67108864' net.ipv4.tcp_wmem='4096 65536 67108864'",
    )


def _transport(needs: Needs | None, transports: Sequence[str]) -> Verdict:
    if needs and not _is_there(needs.transport, transports):
        return (
            "fail",
            f"{needs.transport} is not available; this machine has {', '.join(transports)}.",
            "Set measure.transport to one of these, or install libfabric's provider "
            f"({packages_with('libfabric')}; for verbs {packages_with('verbs')}).",
        )
    if any(name.startswith("libfabric:") for name in transports):
        return "ok", f"{', '.join(transports)}.", ""
    fix = (
        f"Install libfabric ({packages_with('libfabric')}); if daqloom was built without its "
        f"headers ({packages_with(HEADERS)}), install these and build daqloom again."
    )
    return "warn", f"{', '.join(transports)}; no libfabric, which RDMA needs.", fix


def _is_there(transport: str, transports: Sequence[str]) -> bool:
    """Return whether a transport is available. A name includes its layers, as in libfabric."""
    other = transport.removeprefix("shm+")
    return any(name == other or name.startswith(f"{other};") for name in transports)


def _rdma(machine: Machine, needs: Needs | None) -> Verdict:
    folder = "sys/class/infiniband"
    ports = [
        f"{folder}/{card}/ports/{port}"
        for card in machine.names(folder)
        for port in machine.names(f"{folder}/{card}/ports")
    ]
    active = [port for port in ports if "ACTIVE" in machine.text(f"{port}/state")]
    required = bool(needs and "verbs" in needs.transport)
    if active:
        kinds = {machine.text(f"{port}/link_layer") or "unknown" for port in active}
        return "ok", f"{len(active)} active port(s): {', '.join(sorted(kinds))}.", ""
    if ports:
        return (
            "fail" if required else "warn",
            f"None of {len(ports)} ports is active.",
            f"Check cables and the subnet manager (`ibstat`; {packages_with('ibstat')}).",
        )
    absent = "There is no RDMA card: libfabric:verbs cannot be used."
    if required:
        fix = f"Load the card's driver ({packages_with('verbs')}), or use another transport."
        return "fail", absent, fix
    return "ok", absent, ""


# ---- the system ---------------------------------------------------------------------------------


def _kernel(machine: Machine, needs: Needs | None) -> Verdict:
    release = machine.text("proc/sys/kernel/osrelease")
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) < OLDEST_KERNEL:
        means = f"{release} lacks pidfd, which reports the end of a unit's process."
        return "fail", means, "Use Linux 5.3 or later."
    return "ok", f"{release or 'unknown'}: it has futex, memfd and pidfd.", ""


def _open_files(machine: Machine, needs: Needs | None) -> Verdict:
    limit = machine.limit("Max open files", hard=True)  # every process raises its soft limit
    required = needs.open_files if needs else 1024
    if limit is None or limit >= required:
        return "ok", "A process may open as many files as it needs.", ""
    return (
        "fail" if needs else "warn",
        f"A process may open {limit:.0f} files, and a run may need {required}.",
        raise_to(required).capitalize() + ".",
    )


def _clock(machine: Machine, needs: Needs | None) -> Verdict:
    source = machine.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source not in SLOW_CLOCKS:
        return "ok", f"{source or 'unknown'}.", ""
    return (
        "warn",
        f"{source}: reading the clock takes a system call, and data threads read it often.",
        "Boot with tsc=reliable clocksource=tsc where the processor's counter is invariant.",
    )


def _synchronisation(machine: Machine, needs: Needs | None) -> Verdict:
    if keepers := sorted(machine.programs() & CLOCK_KEEPERS):
        return "ok", f"{', '.join(keepers)} synchronises the clock.", ""
    return (
        "fail" if needs and needs.windows and needs.hosts > 1 else "warn",
        "No program seems to synchronise the clock: time windows over several machines "
        '(building.change = "window") drift apart, and so do timelines.',
        f"Run chronyd ({packages_with('chronyd')}), or, where windows are shorter than a "
        f"millisecond, ptp4l and phc2sys ({packages_with('ptp4l')}).",
    )


CHECKS: dict[str, Callable[[Machine, Needs | None], Verdict]] = {
    "cores": _cores,
    "load": _load,
    "isolated cores": _isolated_cores,
    "tickless cores": _tickless_cores,
    "interrupts": _interrupts,
    "clock rate": _clock_rate,
    "NUMA": _numa,
    "C-states": _idle_states,
    "IOMMU": _iommu,
    "memory": _memory,
    "hugepages": _hugepages,
    "reserved huge pages": _reserved_pages,
    "locked memory": _locked_memory,
    "/dev/shm": _dev_shm,
    "TCP congestion control": _congestion_control,
    "socket buffers": _socket_buffers,
    "kernel": _kernel,
    "open files": _open_files,
    "clock": _clock,
    "clock synchronisation": _synchronisation,
}
