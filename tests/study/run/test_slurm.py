"""A study as a Slurm job array: by a shell in its place, and by Slurm where it is installed."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.file.load import load_study
from daqloom.study.run.executor import InProcess
from daqloom.study.run.runner import Progress, run
from daqloom.study.run.slurm import job_array
from daqloom.study.store.store import Store
from support.command import invoke
from support.slurm_cluster import cluster, missing
from support.small_studies import POINTS as STUDY

pytestmark = pytest.mark.process

ELEMENTS = 3


def exported(folder: Path, name: str = "small", output: str = "job.sh", *options: str) -> Path:
    """The script of a study, written by the command line."""
    (folder / f"{name}.toml").write_text(STUDY)
    words = ["study", "export-slurm", f"{name}.toml", "--store", "store"]
    words += ["--elements", str(ELEMENTS), "--memory", "300", *options, "--output", output]
    with chdir(folder):
        assert invoke(*words).exit_code == 0
    return folder / output


def completed(folder: Path, name: str = "small") -> Progress:
    """Run the rest of the study after the array."""
    with Store.open(folder / "store", create=False) as store:
        return run(load_study(folder / f"{name}.toml"), store, InProcess(store))


def test_a_shell_in_place_of_slurm_fills_the_store(tmp_path: Path) -> None:
    folder = tmp_path / "it's a study"
    folder.mkdir()
    script = exported(folder, name="two words")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    computed = 0
    for element in range(ELEMENTS):
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(element)}
        done = subprocess.run(
            ["bash", script], env=environment, cwd=elsewhere, check=True, capture_output=True
        )
        computed += int(done.stdout.split(b" runs computed")[0].split()[-1])
    assert computed == 8
    assert completed(folder, "two words").computed == 0


def test_a_script_without_slurm_or_folder_fails_with_the_reason(tmp_path: Path) -> None:
    script = exported(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "SLURM_ARRAY_TASK_ID"}
    found = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr.startswith("daqloom: --part /3: expected I/N")
    (tmp_path / "small.toml").write_text(STUDY)
    words = ["study", "export-slurm", "small.toml", "--output", "none/job.sh"]
    with chdir(tmp_path):
        refused = invoke(*words)
    assert refused.exit_code == 2
    assert (
        refused.stderr == "daqloom: --output none/job.sh: there is no folder none; make it first\n"
    )
    assert not (tmp_path / "none").exists()


def test_a_name_of_a_study_is_no_line_of_the_script() -> None:
    text = job_array(
        Path("a\ntouch b.toml"), Path("store"), elements=1, quick=True, hours=0.001, memory_mb=1
    )
    assert "#SBATCH --job-name=a-touch-b\n" in text
    assert "#SBATCH --time=1\n" in text
    assert subprocess.run(["bash", "-n"], input=text.encode()).returncode == 0


@pytest.mark.parametrize(
    ("elements", "hours", "memory_mb"),
    [(0, 1.0, 1), (100_001, 1.0, 1), (1, 0.0, 1), (1, float("nan"), 1), (1, float("inf"), 1),
     (1, 1.0, 0)],
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(elements: int, hours: float, memory_mb: int) -> None:
    with pytest.raises(StudyError, match=r"^--(elements|hours|memory) .*: expected [^\n]*$"):
        job_array(
            Path("a.toml"),
            Path("store"),
            elements=elements,
            quick=False,
            hours=hours,
            memory_mb=memory_mb,
        )


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with cluster(tmp_path / "slurm") as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        yield


@pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")
@pytest.mark.skipif(os.geteuid() != 0, reason="a Slurm of one's own needs root")
def test_slurm_fills_the_store(tmp_path: Path, slurm: None) -> None:
    script = exported(tmp_path, "small", "job.sh", "--hours", "0.2")
    output = tmp_path / "%a.out"
    submitted = ["sbatch", "--wait", f"--output={output}", script]
    subprocess.run(submitted, cwd=tmp_path, check=True, capture_output=True)
    printed = [(tmp_path / f"{element}.out").read_text() for element in range(ELEMENTS)]
    assert [line.count("\n") for line in printed] == [1, 1, 1]
    assert sum(int(line.split(" runs computed")[0].split()[-1]) for line in printed) == 8
    assert completed(tmp_path).computed == 0
