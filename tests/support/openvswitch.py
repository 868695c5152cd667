"""A real ovsdb-server and its tools, in a folder of their own; skips where they are missing."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None or not SCHEMA.exists():
        pytest.skip("Open vSwitch is not installed")
    return found


@contextmanager
def process(folder: Path, name: str, *words: str) -> Iterator[None]:
    """A program of Open vSwitch, from when it is ready."""
    pid = folder / f"{name}.pid"
    subprocess.run(
        [program(name), *words, "--detach", "--no-chdir", f"--pidfile={pid}"],
        env=os.environ
        | {f"OVS_{each}DIR": str(folder) for each in ("RUN", "LOG", "DB", "SYSCONF")},
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


@contextmanager
def database(folder: Path, *more: str) -> Iterator[None]:
    """A database without a switch."""
    subprocess.run(
        [program("ovsdb-tool"), "create", str(folder / "conf.db"), str(SCHEMA)],
        check=True,
        timeout=60,
    )
    with process(
        folder,
        "ovsdb-server",
        *(str(folder / "conf.db"), f"--remote=punix:{folder}/db", f"--unixctl={folder}/ctl"),
        *(f"--log-file={folder}/log", *more),
    ):
        yield


def vsctl(folder: Path, *words: str, wait: bool = False) -> str:
    """Run `ovs-vsctl`; to wait, as it does by itself, is until the switch has done all."""
    command = [program("ovs-vsctl"), f"--db=unix:{folder}/db", "--timeout=30"]
    done = subprocess.run(
        [*command, *([] if wait else ["--no-wait"]), *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
