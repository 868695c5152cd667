"""How much memory a study takes: the peak of the command and of each of its workers.

Runs `daqloom study run` with two workers. JSON on standard output, in MB of resident memory; what
Dask takes of a worker is measured on one that has nothing to do. Linux only.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

WORKERS = 2
EVERY_S = 0.05

STUDY = """
scenario = "atlas-lab"
methods = ["analyse", "simulate"]
[set]
"run.duration" = "150 ms"
"run.warmup" = "50 ms"
[grid]
"event.rate" = ["4 kHz", "12 kHz"]
"event.size" = ["2 MB", "5 MB"]
"""
IDLE = 'scenario = "small-rack"\nmethods = ["analyse"]\n'


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "study": peaks_mb(Path(folder), STUDY),
            "one_formula": peaks_mb(Path(folder), IDLE),
            "dask_worker_alone": dask_alone_mb(),
        }
    print(json.dumps(report, indent=2))


def peaks_mb(folder: Path, study: str) -> dict[str, float]:
    file = folder / "study.toml"
    file.write_text(study)
    words = ["study", "run", file, "--workers", str(WORKERS), "--store", folder / "store"]
    with subprocess.Popen([sys.executable, "-m", "daqloom", *words], stdout=sys.stderr) as process:
        peaks: dict[str, float] = {}
        while process.poll() is None:
            peaks |= sample(process.pid)
            time.sleep(EVERY_S)
    return peaks


def sample(pid: int) -> dict[str, float]:
    """Peaks so far by the kernel's own count: exact, but for what came after the last sample."""
    peaks = {}
    try:
        command = psutil.Process(pid)
        for child in (command, *command.children()):
            if child is command:
                peaks["command"] = peak_mb(child.pid)
            elif "spawn_main" in " ".join(child.cmdline()):
                peaks[f"worker {child.pid}"] = peak_mb(child.pid)
    except (psutil.NoSuchProcess, FileNotFoundError, KeyError):
        pass  # it has just ended
    return peaks


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return round(int(fields["VmHWM"].split()[0]) * 1024 / 1e6, 1)


def dask_alone_mb() -> float:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        (pid,) = client.run(lambda: __import__("os").getpid()).values()
        return peak_mb(pid)


if __name__ == "__main__":
    main()
