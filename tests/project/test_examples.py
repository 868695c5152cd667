"""The examples of a source and a sink of one's own, in C++ and Python, against a served buffer."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest
import zmq

from daqloom.buffers import BufferReader, BufferWriter, ServedBuffer
from daqloom.data import Mep, MepState, Mfp
from support.repository import ROOT

pytestmark = pytest.mark.process

PACKING = 5


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"daqloom/{request.node.name[:40]}/{os.getpid()}/stream-0"


@pytest.fixture
def served(name: str) -> Iterator[ServedBuffer]:
    with ServedBuffer(name, bytes=4096, pieces=16) as buffer:
        yield buffer


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ examples, built against the engine that `make` has built, as it is installed."""
    engine = ROOT / "build" / "release"
    if not (engine / "engine" / "libdaqloom_live.a").exists():
        pytest.fail("build/release has no engine: make module-release builds it")
    folder = tmp_path_factory.mktemp("examples")

    def cmake(*arguments: str | Path) -> None:
        done = subprocess.run(["cmake", *arguments], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    cmake("--install", engine, "--prefix", folder / "installed")
    for example in ("source", "sink", "hook", "gpu"):
        # Neither optimised nor with symbols: quick, and a compiler cache knows it the next time.
        options = ("-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_PREFIX_PATH={folder / 'installed'}")
        cmake("-S", ROOT / "examples" / example, "-B", folder / example, *options)
        cmake("--build", folder / example)
    return folder


def started(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def finished(process: subprocess.Popen[str]) -> str:
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, err
    return out


def read_all(name: str) -> list[tuple[int, bytes]]:
    reader = BufferReader(name)
    pieces = []
    while not reader.is_at_end and reader.wait(60) and not reader.is_at_end:
        piece = reader.next()
        assert piece is not None
        pieces.append((piece[0], bytes(piece[1])))
        reader.acknowledge()
    return pieces


def expect_counted_events(pieces: list[tuple[int, bytes]], source_id: int, mfps: int) -> None:
    assert [tag for tag, _ in pieces] == list(range(mfps))
    for tag, packet in pieces:
        mfp = Mfp.decode(packet)
        assert (mfp.event_id, mfp.source_id) == (tag * PACKING, source_id)
        events = range(tag * PACKING, (tag + 1) * PACKING)
        assert [bytes(payload) for _, payload in mfp.fragments] == [
            f"event {event}".encode() for event in events
        ]


def write_meps(name: str, meps: int) -> int:
    """MEPs of two sources, of which one is missing in every third; their bytes of source 2."""
    writer = BufferWriter(name)
    total = 0
    for number in range(meps):
        event = number * PACKING
        mfps = []
        for source in (1, 2):
            fragments = tuple((1, b"x" * (7 * source + number % 5)) for _ in range(PACKING))
            packet = Mfp(event_id=event, source_id=source, fragments=fragments).encode()
            lost = source == 1 and number % 3 == 0
            state = MepState.MISSING if lost else MepState.COMPLETE
            mfps.append((source, state, b"" if lost else packet))
            total += len(packet) if source == 2 else 0
        mep = Mep(number, event, PACKING, mfps).encode()
        while (room := writer.reserve(len(mep))) is None:
            assert writer.wait(60)
        room[:] = mep
        writer.commit(number, len(mep))
    writer.close()
    return total


def test_python_source_brings_its_packets(served: ServedBuffer, name: str) -> None:
    source = started(sys.executable, ROOT / "examples/source.py", name, "3", str(PACKING), "100")
    pieces = read_all(name)
    assert finished(source) == "100 MFPs\n"
    expect_counted_events(pieces, 3, 100)


def test_python_sink_takes_built_events(served: ServedBuffer, name: str) -> None:
    sink = started(sys.executable, ROOT / "examples/sink.py", name)
    total = write_meps(name, 30)
    out = finished(sink)
    assert f"source 2: {total} bytes\n" in out
    assert out.endswith("30 MEPs\n")


def test_hdf5_sink_writes_events_by_name(served: ServedBuffer, name: str, tmp_path: Path) -> None:
    path = tmp_path / "events.hdf5"
    sink = started(sys.executable, ROOT / "examples/hdf5_sink.py", name, str(path))
    write_meps(name, 6)
    assert finished(sink) == "6 MEPs\n"
    with h5py.File(path) as file:
        assert list(file) == [f"TriggerRecord{event:05}.0000" for event in range(6 * PACKING)]
        for number in range(6):
            record = file[f"TriggerRecord{number * PACKING:05}.0000"]
            sources = {1, 2} if number % 3 else {2}  # source 1 is missing in every third
            assert record.attrs["complete"] == (len(sources) == 2)
            assert set(record["RawData"]) == {f"SourceID_0x{each:08x}" for each in sources}
            payload = record["RawData/SourceID_0x00000002"][()].tobytes()
            assert payload == b"x" * (14 + number % 5)
    assert not list(tmp_path.glob("*.part"))


def test_zeromq_source_packs_messages(served: ServedBuffer, name: str, tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/fragments"
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.bind(address)
        source = started(
            *(sys.executable, ROOT / "examples/zeromq_source.py"), name, "3", str(PACKING), address
        )
        for event in range(100 * PACKING):
            socket.send(f"event {event}".encode())
        socket.send(b"")
        pieces = read_all(name)
        assert finished(source) == "100 MFPs\n"
    expect_counted_events(pieces, 3, 100)


def test_zeromq_sink_sends_meps(served: ServedBuffer, name: str, tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/meps"
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.bind(address)
        sink = started(sys.executable, ROOT / "examples/zeromq_sink.py", name, address)
        write_meps(name, 30)
        packets = list(iter(socket.recv, b""))
        assert finished(sink) == "30 MEPs\n"
    assert [Mep.decode(packet).number for packet in packets] == list(range(30))


def test_c_source_brings_its_packets(served: ServedBuffer, name: str, examples: Path) -> None:
    source = started(examples / "source/my_source", name, "4", str(PACKING), "1000")
    pieces = read_all(name)
    assert finished(source) == "1000 MFPs\n"
    expect_counted_events(pieces, 4, 1000)


def test_c_sink_takes_built_events(served: ServedBuffer, name: str, examples: Path) -> None:
    sink = started(examples / "sink/my_sink", name)
    write_meps(name, 30)
    out = finished(sink)
    assert out.endswith("incomplete: 10\n")
    assert sum(int(line.split(": ")[1]) for line in out.splitlines()[:-1]) == 30


def test_gpu_sink_finds_a_buffer_that_can_be_registered(
    name: str, served: ServedBuffer, examples: Path
) -> None:
    sink = started(examples / "gpu/my_gpu_sink", name, "64")
    write_meps(name, 30)
    assert (
        finished(sink) == "no GPU: 1 pages could be registered\n30 MEPs at multiples of 64 bytes\n"
    )


def test_gpu_sink_ends_at_a_mep_that_is_not_aligned(
    name: str, served: ServedBuffer, examples: Path
) -> None:
    sink = started(examples / "gpu/my_gpu_sink", name, "4096")
    writer = BufferWriter(name)
    for tag in range(2):
        room = writer.reserve(100)
        assert room is not None
        writer.commit(tag, 100)
    _, err = sink.communicate(timeout=60)
    assert sink.returncode == 1
    text = "MEP 1 starts at no multiple of 4096 bytes; set measure.output_alignment"
    assert err == f"my_gpu_sink: {text}\n"


def test_c_examples_report_a_missing_argument(examples: Path, name: str) -> None:
    sink = started(examples / "sink/my_sink")
    _, err = sink.communicate(timeout=60)
    assert sink.returncode == 1
    assert err == "my_sink: give the name of a buffer\n"


def test_a_c_hook_answers_or_blocks(examples: Path, tmp_path: Path) -> None:
    hook = examples / "hook/my_hook"
    assert finished(started(hook, tmp_path, "0")).endswith(" GB left\n")
    full = started(hook, tmp_path, "1e9")
    _, err = full.communicate(timeout=60)
    assert full.returncode == 1
    assert err.startswith(f"{tmp_path} has ")


def test_the_headers_of_sources_and_sinks_are_installed_without_those_of_tests(
    examples: Path,
) -> None:
    engine = ROOT / "engine"
    installed = examples / "installed" / "include" / "daqloom"
    assert {path.relative_to(installed) for path in installed.rglob("*.*")} == {
        path.relative_to(engine)
        for folder in ("base", "live", "protocol")
        for path in (engine / folder).rglob("*.hpp")
        if not path.name.endswith("_test.hpp")
    }


def test_folders_of_the_engine_for_examples_can_be_built_alone(tmp_path):
    words = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(tmp_path)]
    folders = "-DDAQLOOM_ENGINE_FOLDERS=base;live;protocol"
    subprocess.run([*words, folders], check=True, capture_output=True, timeout=300)
    targets = subprocess.run(
        ["ninja", "-C", str(tmp_path), "-t", "targets", "all"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    libraries = set(re.findall(r"libdaqloom_(\w+)\.a:", targets))
    assert libraries == {"base", "live", "protocol"}


def test_pkg_config_names_the_installed_headers_and_libraries(examples: Path) -> None:
    installed = examples / "installed"
    [file] = installed.rglob("daqloom.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(file.parent)}

    def pkg_config(*options: str) -> list[str]:
        command = ["pkg-config", *options, "daqloom"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    flags = pkg_config("--cflags", "--libs")
    [libraries] = [Path(flag[2:]) for flag in flags if flag.startswith("-L")]
    for flag in flags:
        if flag.startswith("-ldaqloom"):
            assert (libraries / f"lib{flag[2:]}.a").exists()
    folders = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    assert any((folder / "daqloom/live/memory/buffer_client.hpp").exists() for folder in folders)
    assert any((folder / "live/memory/buffer_client.hpp").exists() for folder in folders)
    [version] = pkg_config("--modversion")
    assert re.fullmatch(r"\d+\.\d+\.\d+[\w.]*", version)
