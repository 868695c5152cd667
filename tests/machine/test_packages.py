"""Packages of distributions, as `daqloom doctor` names them."""

import shutil
import subprocess

import pytest

from daqloom.machine.packages import PACKAGES, packages_with


def test_distributions_without_the_package_are_left_out() -> None:
    assert packages_with("chronyd") == "Debian and Ubuntu: chrony; RHEL: chrony"
    assert packages_with("libfabric").endswith("; RHEL: libfabric; conda-forge: libfabric")


@pytest.mark.process
@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="not on Debian")
def test_debian_has_these_packages() -> None:
    named = {name for each in PACKAGES.values() for name in each.debian.split()}
    known = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True)
    if "libfabric1" not in known.stdout.split():
        return  # lists of packages have not been fetched
    assert named <= set(known.stdout.split())
