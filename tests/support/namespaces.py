"""What this machine allows of network namespaces, and where their programs are."""

import os
import shutil
import subprocess


def can_make_networks() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "nsenter"))):
        return False
    probe = "ip link add name a type veth peer name b"
    return subprocess.run(["unshare", "-n", "sh", "-c", probe], capture_output=True).returncode == 0


SBIN = "/usr/bin:/bin:/usr/sbin:/sbin"
