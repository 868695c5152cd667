"""A Slurm cluster of this machine, for as long as a test lasts."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
missing = [tool for tool in SLURM if shutil.which(tool) is None]

# With a short MinJobAge `sbatch --wait` asks every 2 s, otherwise less and less often.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MinJobAge=5
{nodes}
PartitionName=all Nodes={names} Default=YES State=UP
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=400 "
    "State=UNKNOWN"
)
NEEDS = [
    pytest.mark.process,
    pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a Slurm of one's own needs root"),
]
"""Marks of a test with a cluster."""


def free_ports(number: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def daemon(command: list[str | Path], until: bytes) -> Iterator[None]:
    """Runs a daemon in the foreground, from the line on with which it says that it is ready."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        output = b""
        try:
            while until not in output:
                line = process.stdout.readline()
                assert line, output
                output += line
            rest = threading.Thread(target=process.stdout.read)
            rest.start()
            yield
        finally:
            process.terminate()
            process.wait()
        rest.join()


@contextmanager
def cluster(folder: Path, *names: str, cpus: int = 1) -> Iterator[dict[str, str]]:
    """Nodes of these names, by default one of the name of this machine; yields the environment for
    the programs of Slurm."""
    folder.mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    names = names or (host,)
    controller, *ports = free_ports(1 + len(names))
    nodes = [
        NODE.format(name=name, host=host, port=port, cpus=cpus)
        for name, port in zip(names, ports, strict=True)
    ]
    text = CONFIGURATION.format(
        host=host,
        controller=controller,
        folder=folder,
        nodes="\n".join(nodes),
        names=",".join(names),
    )
    configuration = folder / "slurm.conf"
    configuration.write_text(text)
    options = {"key-file": key, "socket": folder / "munge", "seed-file": folder / "seed"}
    options |= {"pid-file": folder / "munged.pid"}
    munge = ["munged", "--foreground", "--force", *(f"--{k}={v}" for k, v in options.items())]
    with ExitStack() as daemons:
        for command, until in (
            (munge, b"Created"),
            (["slurmctld", "-D", "-f", configuration], b"Running as primary controller"),
            *(
                (["slurmd", "-D", "-N", name, "-f", configuration], b"slurmd started")
                for name in names
            ),
        ):
            daemons.enter_context(daemon(command, until))
        yield os.environ | {"SLURM_CONF": str(configuration)}
