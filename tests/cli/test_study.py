"""The commands of studies as a person gives them: interrupted, killed, starved, mistyped."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import Result

from daqloom.cli.console import study as study_console
from daqloom.cli.console.terminal import BAD_INPUT, FAILED, INTERRUPTED
from daqloom.study import StudyError
from daqloom.study.file.load import load_study, shipped_studies
from daqloom.study.run.dataset import open_study
from daqloom.study.store.store import Store
from support import small_studies
from support.command import invoke
from support.small_studies import GRID as STUDY

COMMAND = [sys.executable, "-m", "daqloom", "study"]

ALL = 6 + 12
LONG = STUDY.replace("seeds = 2", "seeds = 10").replace('"30 ms"', '"100 ms"')
ALL_LONG = 6 + 60
"""About a second on one core: time for a signal to come while it runs."""
PROGRESS = rf"\d+ of {ALL_LONG}: .*"
SEARCH = small_studies.search("2 kB", "3 kB", "100 B")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(STUDY)
    (tmp_path / "long.toml").write_text(LONG)
    return tmp_path


def study(folder: Path, *words: str) -> Result:
    """A command that nothing happens to, in this process."""
    with chdir(folder):
        return invoke("study", *words)


@contextmanager
def begun(folder: Path, *words: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, as a shell starts it; killed if it stays."""
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,  # type: ignore[call-overload]
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def await_cells(store: Path, number: int, process: subprocess.Popen[str]) -> None:
    """Returns when the store holds so many cells."""
    while not (store / "format.json").exists() or len(held(store)) < number:
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.02)


def held(store: Path) -> list[str]:
    with Store.open(store, create=False) as opened:
        assert opened.damage == []
        return opened.keys()


def numbers(file: Path, store: Path) -> dict[str, bytes]:
    """Every number of the dataset, bit for bit."""
    dataset = open_study(file, store=store)
    return {str(name): dataset[name].values.tobytes() for name in dataset.data_vars}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The numbers of the long study, of which the other is a part, computed in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "long.toml").write_text(LONG)
    small_studies.complete(load_study(folder / "long.toml"), folder / "store")
    return numbers(folder / "long.toml", folder / "store")


def test_plan_and_run_agree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_console, "ANNOUNCED_FROM_S", 0.0)
    plan = study(folder, "plan", "mine.toml")
    assert f"answers   0 of {ALL} complete" in plan.stdout
    assert f"runs      0 done, {ALL} to do" in plan.stdout
    done = study(folder, "run", "mine.toml", "--workers", "1")
    summary = f"mine: {ALL} answers from {ALL} runs computed and 0 reused\n"
    assert (done.exit_code, done.stdout) == (0, summary)
    first, *more = done.stderr.splitlines()  # progress
    assert first == f"0 of {ALL}: 0 runs computed, 0 reused, about 0 s on one core ahead"
    assert all(re.match(rf"\d+ of {ALL}: ", line) for line in more)
    plan = study(folder, "plan", "mine.toml")
    assert f"answers   {ALL} of {ALL} complete" in plan.stdout
    assert f"runs      {ALL} done, 0 to do" in plan.stdout
    assert "about 0 s" in plan.stdout


def test_a_plan_mentions_that_runs_may_be_extended(folder: Path) -> None:
    text = STUDY + '[equilibrium]\nlongest = "60 ms"\n'
    (folder / "settled.toml").write_text(text)
    plan = study(folder, "plan", "settled.toml")
    assert f"0 done, {ALL} to do, and longer ones where they do not settle\n" in plan.stdout
    done = study(folder, "run", "settled.toml", "--workers", "1")
    assert done.stdout.startswith(f"settled: {ALL} answers from ")
    assert f"{ALL} of {ALL} complete" in study(folder, "plan", "settled.toml").stdout


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.process
def test_an_interruption_is_one_sentence_and_loses_nothing(folder, undisturbed, workers, sent):
    words = ("run", "long.toml", "--workers", workers)
    with begun(folder, *words, "--store", "cut") as process:
        await_cells(folder / "cut", 4, process)
        os.killpg(process.pid, sent)
        output, log = process.communicate()
    *progress, last = log.splitlines()
    assert (process.returncode, output) == (INTERRUPTED, ""), log
    assert last == (
        "daqloom: interrupted; computed results are in the store; "
        "the same command continues from there"
    )
    assert all(re.fullmatch(PROGRESS, line) for line in progress)
    before = len(held(folder / "cut"))
    assert 4 <= before < ALL_LONG
    resumed = study(folder, "run", "long.toml", "--workers", "1", "--store", "cut")
    assert f"{ALL_LONG - before} runs computed and {before} reused" in resumed.stdout
    assert numbers(folder / "long.toml", folder / "cut") == undisturbed


@pytest.mark.process
def test_a_worker_that_is_killed_is_not_noticed(folder: Path) -> None:
    """Nor that another command has computed a third before."""
    words = ("run", "long.toml", "--store", "s")
    study(folder, *words, "--workers", "1", "--part", "0/3")
    before = len(held(folder / "s"))
    assert before == ALL_LONG // 3
    with begun(folder, *words, "--workers", "2") as process:
        await_cells(folder / "s", before + 3, process)
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        workers[0].kill()
        output, log = process.communicate()
    assert process.returncode == 0
    computed = f"{ALL_LONG - before} runs computed and {before} reused"
    assert output == f"long: {ALL_LONG} answers from {computed}\n"
    assert all(re.fullmatch(PROGRESS, line) for line in log.splitlines())
    assert len(held(folder / "s")) == ALL_LONG


@pytest.mark.process
def test_two_commands_share_a_store(folder: Path) -> None:
    words = ("run", "mine.toml", "--workers", "1", "--store", "both")
    with begun(folder, *words) as one, begun(folder, *words) as other:
        for process in (one, other):
            output, log = process.communicate()
            assert (process.returncode, log) == (0, "")
            assert output.startswith(f"mine: {ALL} answers from ")
    study(folder, "run", "mine.toml", "--workers", "1", "--store", "alone")
    assert sorted(held(folder / "both")) == sorted(held(folder / "alone"))
    file = folder / "mine.toml"
    assert numbers(file, folder / "both") == numbers(file, folder / "alone")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.process
def test_a_cell_that_fails_is_named_and_the_rest_is_computed(folder: Path, workers: str) -> None:
    text = STUDY.replace('["500 kB", "1 MB"]', '["500 kB", "1 B", "1 MB"]')
    (folder / "odd.toml").write_text(text)
    done = study(folder, "run", "odd.toml", "--workers", workers, "--store", "s", "--quiet")
    assert done.exit_code == FAILED
    assert done.stdout == f"odd: {ALL} answers from {ALL} runs computed and 0 reused, 9 failed\n"
    lines = [line for line in done.stderr.splitlines() if line.startswith("daqloom: ")]
    assert len(lines) == 9
    assert lines[0].startswith("daqloom: analyse, seed 1, event.rate = 200 Hz, event.size = 1 B: ")
    plan = study(folder, "plan", "odd.toml", "--store", "s")
    assert "refused   9 points; the first: event.size = 1 B is less" in plan.stdout


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.process
def test_a_disk_that_fills_stops_the_run_and_loses_nothing(folder: Path, workers: str) -> None:
    """A file may grow to 4.15 kB: too little for runs with more than ten events, which are not the
    first, however two workers share them."""
    (folder / "mine.toml").write_text(STUDY.replace("seeds = 2", "seeds = 5"))
    whole = 6 + 30

    def starve() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4150, 4150))

    words = ("run", "mine.toml", "--store", "s", "--workers")
    with begun(folder, *words, workers, preexec_fn=starve) as process:
        output, log = process.communicate()
    *_, last = log.splitlines()
    assert (process.returncode, output) == (FAILED, "")
    assert re.fullmatch(
        r"daqloom: cannot write /\S+: file too large; nothing stored so far is lost: "
        r"make space and give the same command again",
        last.replace("write s/", f"write {folder}/s/"),
    )
    stored = len(held(folder / "s"))
    assert 0 < stored < whole
    resumed = study(folder, *words, "1")
    assert resumed.stdout.endswith(f"and {stored} reused\n")
    assert len(held(folder / "s")) == whole


def test_searches_without_a_boundary_or_a_metric_are_named(folder: Path) -> None:
    (folder / "none.toml").write_text(SEARCH)
    done = study(folder, "run", "none.toml", "--workers", "1", "--store", "s")
    assert done.exit_code == 0
    assert done.stderr == (
        "daqloom: 1 of 1 searches found no boundary within 2 kB to 3 kB: at 1 it does not hold "
        "even at 3 kB. They are kept and flagged; use wider bounds to find one.\n"
    )
    again = study(folder, "run", "none.toml", "--workers", "1", "--store", "s")
    assert (again.exit_code, again.stderr) == (0, done.stderr)
    status = open_study(folder / "none.toml", store=folder / "s")["boundary_status"]
    assert status.item() == "never"
    (folder / "none.toml").write_text(SEARCH.replace("packets_dropped", "packets_droped"))
    found = study(folder, "run", "none.toml")
    assert (found.exit_code, found.stdout) == (BAD_INPUT, "")
    assert re.fullmatch(r"daqloom: none\.toml: [^\n]*packets_droped[^\n]*\n", found.stderr)
    assert not (folder / "daqloom-store").exists()


@pytest.mark.parametrize(
    ("change", "words", "says"),
    [
        (('"event.rate"', '"event.rat"'), ("plan",), 'did you mean "event.rate"'),
        (("[repeat]", "[search]"), ("run",), "search"),
        ((), ("run", "--part", "3/2"), "--part 3/2: expected I/N"),
        ((), ("run", "--scheduler", "nonsense://x"), "there is no Dask scheduler"),
        ((), ("run", "--store", "/sys/store", "--workers", "1"), "cannot write /sys/store"),
        ((), ("run", "--store", "mine.toml", "--workers", "1"), "it is a file"),
        ((), ("plan", "--store", "newer"), "is a store of format 99"),
        ((), ("run", "--store", "newer"), "is a store of format 99"),
    ],
)
def test_a_mistake_is_one_sentence(folder, change, words, says) -> None:
    (folder / "newer").mkdir()
    (folder / "newer" / "format.json").write_text('{"daqloom-store": 99}')
    (folder / "mine.toml").write_text(STUDY.replace(*change) if change else STUDY)
    found = study(folder, words[0], "mine.toml", *words[1:])
    assert (found.exit_code, found.stdout) == (BAD_INPUT, "")
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("daqloom: ")
    assert says in found.stderr
    assert os.listdir(folder / "newer") == ["format.json"]


@pytest.mark.process
def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daqloom.study.run import workers

    monkeypatch.setattr(workers, "CONNECT_S", "0.1 s")
    says = r"^--scheduler tcp://127\.0\.0\.1:1: there is no Dask scheduler .*tcp://node1:8786"
    with pytest.raises(StudyError, match=says):
        workers.DaskExecutor(tmp_path, address="tcp://127.0.0.1:1")


@pytest.fixture
def cluster() -> Iterator[Callable[[str, *tuple[str, ...]], subprocess.Popen[str]]]:
    """Starts processes of a site's Dask cluster; its scheduler says its address first."""
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
        command += ["--host", "127.0.0.1", "--no-dashboard"]
        log = subprocess.PIPE if kind == "scheduler" else subprocess.DEVNULL
        started.append(subprocess.Popen(command, stderr=log, text=True))
        return started[-1]

    yield start
    for process in reversed(started):
        process.kill()
        process.communicate()


@pytest.mark.process
def test_a_sites_cluster(folder, cluster, tmp_path) -> None:
    scheduler = cluster("scheduler", "--port", "0")
    lines = iter(scheduler.stderr.readline, "")
    address = next(found[0] for line in lines if (found := re.search(r"tcp://[0-9.:]+", line)))
    threading.Thread(target=scheduler.stderr.read, daemon=True).start()
    words = ("--scheduler", address, "--store", "s")
    with begun(folder, "run", "mine.toml", *words) as process:
        assert process.stderr.readline() == (
            "daqloom: the scheduler has no worker yet; waiting for the first\n"
        )
        local = ("--local-directory", str(tmp_path / "scratch"))
        for threads in ("1", "2"):
            cluster("worker", address, "--no-nanny", "--nthreads", threads, *local)
        output, log = process.communicate()
    assert process.returncode == 0
    assert output == f"mine: {ALL} answers from {ALL} runs computed and 0 reused\n"
    assert all(re.fullmatch(rf"\d+ of {ALL}: .*", line) for line in log.splitlines())
    assert len(held(folder / "s")) == ALL
    with begun(folder, "run", "long.toml", *words) as process:
        await_cells(folder / "s", ALL + 4, process)
        scheduler.kill()
        output, log = process.communicate()
    assert (process.returncode, output) == (FAILED, "")
    *progress, last = log.splitlines()
    assert not [line for line in progress if not re.fullmatch(PROGRESS, line)], log
    assert last == (
        "daqloom: the Dask scheduler has gone; computed results are in the store, "
        "the same command continues"
    )


def test_a_shipped_study_is_printed_as_the_file_that_it_is(folder: Path) -> None:
    for name, path in shipped_studies().items():
        found = study(folder, "show", name)
        assert (found.exit_code, found.stdout) == (0, path.read_text())
    assert study(folder, "show", "no-such").exit_code == BAD_INPUT


def test_the_list_names_every_study_with_its_title_and_the_published_figure(folder: Path) -> None:
    found = study(folder, "list")
    assert (found.exit_code, found.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert list(lines) == list(shipped_studies())
    for name, shown in lines.items():
        made = load_study(name)
        assert shown == made.title + (f" ({made.figure})" if made.figure else "")
    assert lines["atlas-min-buffer"].endswith("(ATLAS study, figs. 4 to 6)")
    listed = json.loads(study(folder, "list", "--json").stdout)["studies"]
    assert {each["name"]: each["figure"] for each in listed}["lhcb-barriers"] == (
        "event-builder paper, fig. 12"
    )
    for name in shipped_studies():
        made = load_study(name)
        assert made.figure or not re.match(r"Figs?\. \d", made.description.strip()), name
