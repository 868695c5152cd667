"""Network namespaces on this machine: what is allowed, and where their programs are."""

import os
import shutil
import subprocess

import pytest


def can_make_networks() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "nsenter"))):
        return False
    probe = "ip link add name a type veth peer name b"
    return subprocess.run(["unshare", "-n", "sh", "-c", probe], capture_output=True).returncode == 0


NETWORKS = [
    pytest.mark.process,
    pytest.mark.skipif(not can_make_networks(), reason="this machine allows no network namespaces"),
]
"""Marks of a module whose tests make networks."""
SBIN = "/usr/bin:/bin:/usr/sbin:/sbin"
