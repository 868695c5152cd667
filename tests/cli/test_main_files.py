"""Every command that reads a file refuses what is none, in a sentence and at once."""

import os
import signal
from pathlib import Path

import pytest

from support.command import invoke

COMMANDS = (
    "control laptop --set measure.certificates={folder}",
    "show {}",
    "analyse {}",
    "simulate {}",
    "compare {}",
    "measure {}",
    "measure lab-rack --dry-run --set measure.lab=none --set measure.device={}",
    "doctor {}",
    "control {}",
    "control status --address 10.1.2.3:4 --certificates {folder}",
    "unit --control 127.0.0.1:1 --token-file {}",
    "switch run {}",
    "switch check {}",
    "switch file {} --hosts 10.0.0.0/24",
    "lab show {}",
    "lab plan {}",
    "lab probe {}",
    "topology configure {} --bridge daq0 --dry-run",
    "topology check {}",
    "topology draw {}",
    "study plan {}",
    "study run {}",
    "study export-slurm {} --output {folder}/job",
    "study levels {}",
    "study fit {}",
    "study compare {}",
    "report {}",
    "faults log {}",
    "faults log {log} --tests {}",
    "faults cost {} --log {log}",
    "faults cost lhcb-run3-test-20 --log {}",
    "faults draw {} --log {log} -o {folder}/drawn.toml --compress 10",
    "faults draw lhcb-run3-test-20 --log {} -o {folder}/drawn.toml --compress 10",
    "data generate {} -o {folder}",
    "data inspect {}",
    "data check {}",
    "analyse atlas-lab --set event.arrivals=trace --set event.trace={}",
    pytest.param(
        "measure laptop --set measure.source=replay --set measure.source_files={}",
        marks=pytest.mark.process,
    ),
)
LOG = "link,state,start_time,end_time\na,down,0,1\n"
HUNG_S = 60


class HungError(Exception):
    pass


@pytest.fixture(autouse=True)
def _ends():
    """A command that waits for a pipe, or reads a device without end, is interrupted."""

    def end(*_):
        raise HungError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HUNG_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["fifo", "zero", "full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_other_than_regular_files_are_refused(tmp_path: Path, monkeypatch, command, kind) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "log.csv").write_text(LOG)
    given = folder / "ca.pem"  # with the name of a certificate, where a folder of them is named
    if kind == "fifo":
        os.mkfifo(given, 0o600)
    else:
        given.symlink_to(f"/dev/{kind}")
    for name in ("control.pem", "control.key"):
        (folder / name).touch()
    line = command.format(given, folder=folder, log=tmp_path / "log.csv")
    done = invoke(*line.split())
    assert not isinstance(done.exception, HungError)
    assert done.exit_code in (1, 2), done.output
    text = " ".join(done.output.split())
    assert "Traceback" not in text
    assert "regular file" in text, text
