"""Packages of distributions that contain what a machine lacks."""

from collections.abc import Mapping
from typing import NamedTuple


class Packages(NamedTuple):
    """Names of the package in each distribution; empty if it has none."""

    debian: str
    rhel: str
    conda: str = ""


HEADERS = "libfabric's headers"
PACKAGES: Mapping[str, Packages] = {
    "bridge": Packages("iproute2", "iproute"),
    "chronyd": Packages("chrony", "chrony"),
    "cpupower": Packages("linux-cpupower", "kernel-tools"),
    "DPDK": Packages(
        "libdpdk-dev g++ cmake libexpected-dev libfmt-dev", "dpdk-devel gcc-c++ cmake fmt-devel"
    ),
    "ethtool": Packages("ethtool", "ethtool"),
    "ip": Packages("iproute2", "iproute"),
    "ibstat": Packages("infiniband-diags", "infiniband-diags"),
    "libfabric": Packages("libfabric1", "libfabric", "libfabric"),
    HEADERS: Packages("libfabric-dev", "libfabric-devel", "libfabric"),
    "nft": Packages("nftables", "nftables"),
    "nsenter": Packages("util-linux", "util-linux"),
    "pango": Packages("libpangoft2-1.0-0", "pango", "pango"),
    "ptp4l": Packages("linuxptp", "linuxptp"),
    "tc": Packages("iproute2", "iproute-tc"),
    "unshare": Packages("util-linux", "util-linux"),
    "verbs": Packages("rdma-core ibverbs-providers", "rdma-core libibverbs"),
}
"""Program or library → packages with it. Drivers are the kernel's, and no package for conda."""


def packages_with(thing: str) -> str:
    """Return the packages with a program or a library, such as
    `Debian and Ubuntu: chrony; RHEL: chrony`."""
    found = PACKAGES[thing]
    names = {"Debian and Ubuntu": found.debian, "RHEL": found.rhel, "conda-forge": found.conda}
    return "; ".join(f"{where}: {name}" for where, name in names.items() if name)
